"""Workers and their tokens: who may take work, when they were heard of last, and on which devices they can do it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select
from sqlmodel import Session, col

from app.store.job_tables import WorkerRow, WorkerTokenRow
from app.store.types import is_id

USER, SERVER = "user", "server"


@dataclass(frozen=True)
class StoredWorker:
    """A worker; `devices` as it described them, `left_at` when it said goodbye."""

    id: int
    name: str
    version: str
    token_id: int | None
    kinds: tuple[str, ...]
    devices: tuple[Mapping[str, Any], ...]
    registered_at: datetime
    seen_at: datetime
    left_at: datetime | None


@dataclass(frozen=True)
class Registration:
    """What a worker says of itself. The two hashes are of secrets that only it knows."""

    identity_sha256: str
    session_sha256: str
    name: str
    version: str
    kinds: tuple[str, ...]
    devices: tuple[Mapping[str, Any], ...]
    token_id: int | None


@dataclass(frozen=True)
class StoredToken:
    """A token without itself: its first characters, and whether it still counts."""

    id: int
    name: str
    shown: str
    origin: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None

    def valid(self, now: datetime) -> bool:
        """True while it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def register(session: Session, told: Registration, now: datetime) -> StoredWorker:
    """The worker of this identity with a new session; the session it had before is over."""
    row = session.scalar(select(WorkerRow).where(col(WorkerRow.identity_sha256) == told.identity_sha256).with_for_update())
    if row is None:
        row = WorkerRow(identity_sha256=told.identity_sha256, session_sha256="", name="", version="", kinds=[], devices=[],
                        registered_at=now, seen_at=now)  # fmt: skip
        session.add(row)
    row.session_sha256, row.token_id = told.session_sha256, told.token_id
    row.name, row.version = told.name, told.version
    row.kinds, row.devices = list(told.kinds), [dict(device) for device in told.devices]
    row.registered_at = row.seen_at = now
    row.left_at = None
    session.flush()
    return _worker(row)


def of_session(session: Session, session_sha256: str) -> StoredWorker | None:
    """The worker whose present session this is."""
    row = session.scalar(select(WorkerRow).where(col(WorkerRow.session_sha256) == session_sha256))
    return _worker(row) if row else None


def of_identity(session: Session, identity_sha256: str) -> StoredWorker | None:
    """The worker of this identity."""
    row = session.scalar(select(WorkerRow).where(col(WorkerRow.identity_sha256) == identity_sha256))
    return _worker(row) if row else None


def seen(session: Session, worker: int, now: datetime, *, left: bool = False) -> None:
    """Note that it was heard of, or that it leaves."""
    row = session.get_one(WorkerRow, worker)
    row.seen_at, row.left_at = now, now if left else None


def every(session: Session) -> list[StoredWorker]:
    """All of them, the one heard of last first."""
    return [_worker(row) for row in session.scalars(select(WorkerRow).order_by(col(WorkerRow.seen_at).desc(), col(WorkerRow.id)))]


def with_token(session: Session, token_id: int) -> list[StoredWorker]:
    """The workers that registered with this token last."""
    return [_worker(row) for row in session.scalars(select(WorkerRow).where(col(WorkerRow.token_id) == token_id))]


def add_token(session: Session, name: str, sha256: str, shown: str, origin: str, expires_at: datetime | None, now: datetime) -> StoredToken:
    """Keep the hash of a token that was just made."""
    row = WorkerTokenRow(name=name, sha256=sha256, shown=shown, origin=origin, created_at=now, expires_at=expires_at)
    session.add(row)
    session.flush()
    return _token(row)


def token_of(session: Session, sha256: str) -> StoredToken | None:
    """The token with this hash, valid or not."""
    row = session.scalar(select(WorkerTokenRow).where(col(WorkerTokenRow.sha256) == sha256))
    return _token(row) if row else None


def used(session: Session, token_id: int, now: datetime) -> None:
    """Note that a token was shown."""
    session.get_one(WorkerTokenRow, token_id).used_at = now


def tokens(session: Session) -> list[StoredToken]:
    """All of them, newest first."""
    return [_token(row) for row in session.scalars(select(WorkerTokenRow).order_by(col(WorkerTokenRow.id).desc()))]


def revoke(session: Session, token_id: int, now: datetime) -> StoredToken | None:
    """Make it count no more; None when there is none."""
    row = session.get(WorkerTokenRow, token_id) if is_id(token_id) else None
    if row is None:
        return None
    row.revoked_at = row.revoked_at or now
    session.flush()
    return _token(row)


def forget_tokens(session: Session, origin: str, names: Sequence[str]) -> None:
    """Delete tokens of this origin and these names; their workers stay."""
    session.execute(delete(WorkerTokenRow).where(col(WorkerTokenRow.origin) == origin, col(WorkerTokenRow.name).in_(names)))


def _worker(row: WorkerRow) -> StoredWorker:
    if row.id is None:
        raise ValueError("a worker without a number")
    devices = tuple(row.devices)
    return StoredWorker(row.id, row.name, row.version, row.token_id, tuple(row.kinds), devices, row.registered_at, row.seen_at, row.left_at)


def _token(row: WorkerTokenRow) -> StoredToken:
    if row.id is None:
        raise ValueError("a token without a number")
    return StoredToken(row.id, row.name, row.shown, row.origin, row.created_at, row.expires_at, row.revoked_at, row.used_at)
