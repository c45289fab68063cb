"""Schedules: jobs that come back, made due by the server's clock; never two of one schedule at once, and what was missed runs once."""

from datetime import datetime
from typing import Any

from app.domain.errors import InvalidRequest, NotFound
from app.domain.text import clean_text
from app.services.context import Context
from app.services.jobs import put, require_names
from app.services.summary import timestamp
from app.store import job_schedules, jobs
from app.store.job_schedules import NewSchedule, StoredSchedule
from app.store.jobs import NewJob

_MOST = 1000


def add(context: Context, schedule: NewSchedule) -> StoredSchedule:
    """Begin a schedule. Raises InvalidRequest or UnknownName for what its jobs could not be."""
    require_names(context, job_of(schedule, None))
    if not clean_text(schedule.name):
        raise InvalidRequest("name", "A schedule needs a name.")
    with context.database.write() as session:
        if len(job_schedules.every(session)) >= _MOST:
            raise InvalidRequest("name", f"{_MOST:,} schedules are the most: delete some.")
        return job_schedules.add(session, schedule, context.clock.now())


def every(context: Context) -> list[StoredSchedule]:
    """All of them."""
    with context.database.read() as session:
        return job_schedules.every(session)


def switch(context: Context, schedule_id: int, *, enabled: bool) -> StoredSchedule:
    """Turn one on or off. Raises NotFound."""
    with context.database.write() as session:
        found = job_schedules.switch(session, schedule_id, context.clock.now(), enabled=enabled)
    if found is None:
        raise _not_there(schedule_id)
    return found


def forget(context: Context, schedule_id: int) -> None:
    """Delete one; its jobs and runs stay. Raises NotFound."""
    with context.database.write() as session:
        if not job_schedules.remove(session, schedule_id):
            raise _not_there(schedule_id)


def run_due(context: Context) -> list[int]:
    """Make the jobs that are due; their numbers. One whose last job still waits or runs is left out this time."""
    now = context.clock.now()
    with context.database.read() as session:
        due = job_schedules.due(session, now)
    made: list[int] = []
    for schedule in due:
        number = _run(context, schedule, now)
        made += [number] if number is not None else []
    if made:
        context.bell.ring()
    return made


def _run(context: Context, schedule: StoredSchedule, now: datetime) -> int | None:
    with context.database.write() as session:
        free = not jobs.unfinished_of_schedule(session, schedule.id)
        if not job_schedules.take(session, schedule, now, runs=free) or not free:
            return None
        return put(session, job_of(schedule.schedule, schedule.id), now).id


def job_of(schedule: NewSchedule, number: int | None) -> NewJob:
    """The job that a schedule makes, under the schedule's name."""
    return NewJob(
        schedule.kind, schedule.parameters, clean_text(schedule.name), schedule.priority, schedule.limit_s, schedule.wanted_device, number
    )


def schedule_json(stored: StoredSchedule) -> dict[str, Any]:
    """A schedule as JSON-ready data."""
    schedule = stored.schedule
    return {
        "id": stored.id,
        "name": schedule.name,
        "kind": schedule.kind,
        "parameters": dict(schedule.parameters),
        "every_hours": schedule.rhythm.every_hours,
        "daily_at": schedule.rhythm.daily_at,
        "wanted_device": schedule.wanted_device,
        "priority": schedule.priority,
        "limit_s": schedule.limit_s,
        "enabled": schedule.enabled,
        "next_at": timestamp(stored.next_at) if schedule.enabled else None,
        "last_at": timestamp(stored.last_at),
    }


def _not_there(schedule_id: int) -> NotFound:
    return NotFound(f"There is no schedule {schedule_id}.")
