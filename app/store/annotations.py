"""Stored annotations: what a person says happened when a run was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select
from sqlmodel import Session, col

from app.store.tables import RunAnnotationRow
from app.store.types import is_id


@dataclass(frozen=True)
class StoredAnnotation:
    """One remark on one run."""

    id: int
    run_id: int
    text: str
    created_at: datetime


def of_runs(session: Session, run_ids: Sequence[int]) -> list[StoredAnnotation]:
    """Those of these runs, in the order they were written. One query."""
    statement = select(RunAnnotationRow).where(col(RunAnnotationRow.run_id).in_(run_ids)).order_by(col(RunAnnotationRow.id))
    return [_stored(row) for row in session.scalars(statement)]


def newest(session: Session, limit: int) -> list[StoredAnnotation]:
    """The ones written last, newest first."""
    statement = select(RunAnnotationRow).order_by(col(RunAnnotationRow.id).desc()).limit(limit)
    return [_stored(row) for row in session.scalars(statement)]


def add(session: Session, run_id: int, text: str, now: datetime) -> StoredAnnotation:
    """Store one; its number is never used again."""
    row = RunAnnotationRow(run_id=run_id, text=text, created_at=now)
    session.add(row)
    session.flush()
    return _stored(row)


def remove(session: Session, number: int) -> bool:
    """Delete one; whether there was one."""
    if not is_id(number):
        return False
    gone = delete(RunAnnotationRow).where(col(RunAnnotationRow.id) == number).returning(col(RunAnnotationRow.id))
    return session.scalar(gone) is not None


def _stored(row: RunAnnotationRow) -> StoredAnnotation:
    if row.id is None:
        raise ValueError("an annotation without a number")
    return StoredAnnotation(row.id, row.run_id, row.text, row.created_at)
