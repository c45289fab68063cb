"""Stored baselines: which run the others of its series are set against. The series follows from the run, so it is stored nowhere twice."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, delete, select
from sqlmodel import Session, col

from app.domain.series import Series
from app.store.series_runs import SERIES_COLUMNS, series_in
from app.store.tables import BaselineRow, RunRow
from app.store.types import is_id


@dataclass(frozen=True)
class StoredBaseline:
    """A named baseline. `series` is that of its run; None when the run no longer says model, hardware or engine."""

    id: int
    name: str
    notes: str
    run_id: int
    series: Series | None
    created_at: datetime
    updated_at: datetime


def every(session: Session, project: str | None = None) -> list[StoredBaseline]:
    """All of them (of a project), the one set last first. One query."""
    statement = _select().order_by(col(BaselineRow.updated_at).desc(), col(BaselineRow.id).desc())
    if project is not None:
        statement = statement.where(col(RunRow.project) == project)
    return [_stored(row[0], series_in(row)) for row in session.execute(statement)]


def get(session: Session, number: int) -> StoredBaseline | None:
    """The baseline of this number, or None."""
    if not is_id(number):
        return None
    row = session.execute(_select().where(col(BaselineRow.id) == number)).one_or_none()
    return None if row is None else _stored(row[0], series_in(row))


def match(baselines: Sequence[StoredBaseline], series: Series | None, run_id: int) -> StoredBaseline | None:
    """The baseline of a run of `series`: itself where it is one, else of those that hold it the one set last, in the order of `every`."""
    itself = next((found for found in baselines if found.run_id == run_id), None)
    if itself is not None or series is None:
        return itself
    return next((found for found in baselines if found.series is not None and found.series.holds(series)), None)


def add(session: Session, run_id: int, name: str, notes: str, now: datetime) -> int:
    """Store a baseline and give its number, which is never used again."""
    row = BaselineRow(run_id=run_id, name=name, notes=notes, created_at=now, updated_at=now)
    session.add(row)
    session.flush()
    if row.id is None:
        raise ValueError("a baseline without a number")
    return row.id


def change(session: Session, number: int, run_id: int | None, name: str | None, notes: str | None, now: datetime) -> None:
    """Change what is given; None stays as it is."""
    row = session.get(BaselineRow, number)
    if row is None:
        raise LookupError(f"there is no baseline {number}")
    row.run_id = row.run_id if run_id is None else run_id
    row.name = row.name if name is None else name
    row.notes = row.notes if notes is None else notes
    row.updated_at = now
    session.add(row)
    session.flush()


def remove(session: Session, number: int) -> bool:
    """Delete one; whether there was one."""
    if not is_id(number):
        return False
    return session.scalar(delete(BaselineRow).where(col(BaselineRow.id) == number).returning(col(BaselineRow.id))) is not None


def _select() -> Select[*tuple[BaselineRow, ...]]:
    return select(BaselineRow, *SERIES_COLUMNS).join(RunRow, col(RunRow.id) == col(BaselineRow.run_id))


def _stored(row: BaselineRow, series: Series | None) -> StoredBaseline:
    if row.id is None:
        raise ValueError("a baseline without a number")
    return StoredBaseline(row.id, row.name, row.notes, row.run_id, series, row.created_at, row.updated_at)
