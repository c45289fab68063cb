"""Schedules: jobs that come back. One that is due is taken by one statement, so that of several servers one makes its job."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, update
from sqlmodel import Session, col

from app.domain.job_schedule import Rhythm
from app.store.job_tables import JobScheduleRow
from app.store.types import is_id


@dataclass(frozen=True)
class NewSchedule:
    """A job and its rhythm."""

    name: str
    kind: str
    parameters: Mapping[str, Any]
    rhythm: Rhythm
    wanted_device: str | None = None
    priority: int = 0
    limit_s: float | None = None
    enabled: bool = True


@dataclass(frozen=True)
class StoredSchedule:
    """A schedule with its number, since when it counts, when it is due and when it was last."""

    id: int
    schedule: NewSchedule
    begun_at: datetime
    next_at: datetime
    last_at: datetime | None


def add(session: Session, schedule: NewSchedule, now: datetime) -> StoredSchedule:
    """Begin a schedule at `now`."""
    row = JobScheduleRow(
        name=schedule.name,
        kind=schedule.kind,
        parameters=dict(schedule.parameters),
        wanted_device=schedule.wanted_device,
        priority=schedule.priority,
        limit_s=schedule.limit_s,
        every_hours=schedule.rhythm.every_hours,
        daily_at=schedule.rhythm.daily_at,
        enabled=schedule.enabled,
        begun_at=now,
        next_at=schedule.rhythm.next_after(now, now),
    )
    session.add(row)
    session.flush()
    return _stored(row)


def get(session: Session, schedule_id: int) -> StoredSchedule | None:
    """The schedule of this number, or None."""
    row = session.get(JobScheduleRow, schedule_id) if is_id(schedule_id) else None
    return _stored(row) if row else None


def every(session: Session) -> list[StoredSchedule]:
    """All of them, oldest first."""
    return [_stored(row) for row in session.scalars(select(JobScheduleRow).order_by(col(JobScheduleRow.id)))]


def due(session: Session, now: datetime) -> list[StoredSchedule]:
    """Those whose time has come."""
    statement = select(JobScheduleRow).where(col(JobScheduleRow.enabled).is_(True), col(JobScheduleRow.next_at) <= now)
    return [_stored(row) for row in session.scalars(statement.order_by(col(JobScheduleRow.next_at)))]


def take(session: Session, schedule: StoredSchedule, now: datetime, *, runs: bool) -> bool:
    """Move it to its next time, if nobody else did; whether this call did. `runs`: a job is made of it now."""
    later = schedule.schedule.rhythm.next_after(schedule.begun_at, now)
    values: dict[str, Any] = {"next_at": later} | ({"last_at": now} if runs else {})
    same = (col(JobScheduleRow.id) == schedule.id, col(JobScheduleRow.next_at) == schedule.next_at)
    return session.scalar(update(JobScheduleRow).where(*same).values(values).returning(col(JobScheduleRow.id))) is not None


def switch(session: Session, schedule_id: int, now: datetime, *, enabled: bool) -> StoredSchedule | None:
    """Turn it on or off; turned on, it is due at its next time from now. None when there is none."""
    row = session.get(JobScheduleRow, schedule_id, with_for_update=True) if is_id(schedule_id) else None
    if row is None:
        return None
    row.enabled = enabled
    if enabled:
        row.next_at = _stored(row).schedule.rhythm.next_after(row.begun_at, now)
    session.flush()
    return _stored(row)


def remove(session: Session, schedule_id: int) -> bool:
    """Delete one; its jobs stay. Whether there was one."""
    if not is_id(schedule_id):
        return False
    gone = delete(JobScheduleRow).where(col(JobScheduleRow.id) == schedule_id).returning(col(JobScheduleRow.id))
    return session.scalar(gone) is not None


def _stored(row: JobScheduleRow) -> StoredSchedule:
    if row.id is None:
        raise ValueError("a schedule without a number")
    rhythm = Rhythm(row.every_hours, row.daily_at)
    found = NewSchedule(row.name, row.kind, row.parameters, rhythm, row.wanted_device, row.priority, row.limit_s, row.enabled)
    return StoredSchedule(row.id, found, row.begun_at, row.next_at, row.last_at)
