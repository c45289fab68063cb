"""Registered targets: the servers that endpoint jobs may call, by name."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select
from sqlmodel import Session, col

from app.store.job_tables import TargetRow
from app.store.types import is_id


@dataclass(frozen=True)
class NewTarget:
    """Where requests go: scheme, host, port, the path before `/chat/completions`, and the networks its addresses must lie in.

    `key_ref` names the key that the worker keeps; the key itself is never here. `metrics_path` is None where the server shows none.
    """

    name: str
    scheme: str
    host: str
    port: int
    base_path: str = "/v1"
    metrics_path: str | None = "/metrics"
    networks: tuple[str, ...] = ()
    key_ref: str | None = None


@dataclass(frozen=True)
class StoredTarget:
    """A target with its number."""

    id: int
    target: NewTarget
    created_at: datetime


def add(session: Session, target: NewTarget, now: datetime) -> StoredTarget:
    """Register one. Raises IntegrityError when the name is taken."""
    row = TargetRow(
        name=target.name,
        scheme=target.scheme,
        host=target.host,
        port=target.port,
        base_path=target.base_path,
        metrics_path=target.metrics_path,
        networks=list(target.networks),
        key_ref=target.key_ref,
        created_at=now,
    )
    session.add(row)
    session.flush()
    return _stored(row)


def named(session: Session, name: str) -> StoredTarget | None:
    """The target of this name."""
    row = session.scalar(select(TargetRow).where(col(TargetRow.name) == name))
    return _stored(row) if row else None


def every(session: Session) -> list[StoredTarget]:
    """All of them, by name."""
    return [_stored(row) for row in session.scalars(select(TargetRow).order_by(col(TargetRow.name)))]


def remove(session: Session, target_id: int) -> bool:
    """Delete one; whether there was one."""
    if not is_id(target_id):
        return False
    return session.scalar(delete(TargetRow).where(col(TargetRow.id) == target_id).returning(col(TargetRow.id))) is not None


def _stored(row: TargetRow) -> StoredTarget:
    if row.id is None:
        raise ValueError("a target without a number")
    found = NewTarget(
        row.name, row.scheme, row.host, row.port, row.base_path, row.metrics_path, tuple(row.networks), row.key_ref
    )  # fmt: skip
    return StoredTarget(row.id, found, row.created_at)
