"""The queue in the database: what `domain.lease` allows, done so that two who ask at once never both get it.

A claim is one statement. Every other step locks the job's row, asks the domain what follows, and writes that; PostgreSQL locks the row,
SQLite's writers already come one after the other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, exists, func, or_, select, update
from sqlalchemy.orm import aliased
from sqlmodel import Session, col

from app.domain import lease as leases
from app.domain.lease import QUEUED, RUNNING, Lease
from app.store.job_tables import JobEventRow, JobRow
from app.store.types import is_id

# Beyond this many events of one job the log is full: further lines are dropped, states never are.
MOST_EVENTS = 50_000

Step = Callable[[Lease], Lease]


@dataclass(frozen=True)
class NewJob:
    """A job as it is asked for: checked parameters, and the device it must run on (None: any that can)."""

    kind: str
    parameters: Mapping[str, Any]
    label: str | None = None
    priority: int = 0
    limit_s: float | None = None
    wanted_device: str | None = None
    schedule_id: int | None = None


@dataclass(frozen=True)
class StoredJob:
    """A job as it stands. `lease` says who works on it; `last_worker` and `last_device` who did."""

    id: int
    asked: NewJob
    lease: Lease
    last_worker: str | None
    last_device: str | None
    progress: Mapping[str, Any] | None
    run_ids: tuple[int, ...]
    events: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True)
class JobEvent:
    """One thing that happened to a job; `position` orders them."""

    position: int
    attempt: int
    kind: str
    data: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True)
class Claimant:
    """A worker that asks for work, and the device it asks for."""

    worker: int
    name: str
    device: str


def add(session: Session, job: NewJob, now: datetime) -> StoredJob:
    """Put a job into the queue."""
    row = JobRow(
        kind=job.kind,
        label=job.label,
        parameters=dict(job.parameters),
        priority=job.priority,
        limit_s=job.limit_s,
        wanted_device=job.wanted_device,
        schedule_id=job.schedule_id,
        state=QUEUED,
        attempt=0,
        lost_workers=0,
        interruptions=0,
        cancel_requested=False,
        created_at=now,
    )
    session.add(row)
    session.flush()
    _append(session, row, "state", {"state": QUEUED}, now)
    session.flush()
    return _stored(row)


def get(session: Session, job_id: int) -> StoredJob | None:
    """The job of this number, or None."""
    row = session.get(JobRow, job_id) if is_id(job_id) else None
    return _stored(row) if row else None


def page(
    session: Session, *, states: Sequence[str] = (), kind: str | None = None, before: int | None = None, limit: int = 100
) -> list[StoredJob]:
    """Newest first, those with a number below `before`."""
    statement = select(JobRow).order_by(col(JobRow.id).desc()).limit(limit)
    if states:
        statement = statement.where(col(JobRow.state).in_(states))
    if kind is not None:
        statement = statement.where(col(JobRow.kind) == kind)
    if before is not None:
        statement = statement.where(col(JobRow.id) < before)
    return [_stored(row) for row in session.scalars(statement)]


def queue(session: Session, now: datetime, kinds: Sequence[str], devices: Sequence[str], limit: int = 200) -> list[StoredJob]:
    """What can be claimed now by who knows these kinds, on one of these devices: highest priority first, then oldest."""
    statement = select(JobRow).where(
        *_waits(now),
        col(JobRow.kind).in_(kinds),
        or_(col(JobRow.wanted_device).is_(None), col(JobRow.wanted_device).in_(devices)),
    )
    rows = session.scalars(statement.order_by(col(JobRow.priority).desc(), col(JobRow.id)).limit(limit))
    return [_stored(row) for row in rows]


def order(session: Session, now: datetime) -> list[int]:
    """The numbers of all jobs that can be claimed now, in the order of the queue."""
    statement = select(col(JobRow.id)).where(*_waits(now)).order_by(col(JobRow.priority).desc(), col(JobRow.id))
    return list(session.scalars(statement))


def waiting(session: Session) -> int:
    """How many jobs wait."""
    return session.scalar(select(func.count()).select_from(JobRow).where(col(JobRow.state) == QUEUED)) or 0


def running(session: Session) -> list[StoredJob]:
    """Every job that a worker holds."""
    return [_stored(row) for row in session.scalars(select(JobRow).where(col(JobRow.state) == RUNNING).order_by(col(JobRow.id)))]


def unfinished_of_schedule(session: Session, schedule_id: int) -> bool:
    """Whether a job of this schedule waits or runs."""
    found = select(col(JobRow.id)).where(col(JobRow.schedule_id) == schedule_id, col(JobRow.state).in_((QUEUED, RUNNING))).limit(1)
    return session.scalar(found) is not None


def claim(session: Session, claimant: Claimant, among: Sequence[int], now: datetime, lease_s: float) -> StoredJob | None:
    """The first of the jobs `among` that waits, now in this worker's hands; None when there is none, or the device is in use.

    One statement, so that of several who ask at once each gets another job. Raises IntegrityError where two ask for one device at the
    same moment: nobody was given the job that is refused.
    """
    if not among:
        return None
    other = aliased(JobRow)
    in_use = exists().where(col(other.state) == RUNNING, col(other.device) == claimant.device)
    first = (
        select(col(JobRow.id))
        .where(*_waits(now), col(JobRow.id).in_(among), ~in_use)
        .order_by(col(JobRow.priority).desc(), col(JobRow.id))
        .limit(1)
        .with_for_update(skip_locked=True, of=JobRow)
        .scalar_subquery()
    )
    taken = update(JobRow).where(col(JobRow.id) == first, col(JobRow.state) == QUEUED).values(_claimed(claimant, now, lease_s))
    number = session.scalar(taken.returning(col(JobRow.id)), execution_options={"synchronize_session": False})
    if number is None:
        return None
    row = session.get_one(JobRow, number, populate_existing=True)
    told = {"state": RUNNING, "attempt": row.attempt, "worker": claimant.name, "device": claimant.device}
    _append(session, row, "state", told, now)
    session.flush()
    return _stored(row)


def _claimed(claimant: Claimant, now: datetime, lease_s: float) -> dict[str, Any]:
    return {
        "state": RUNNING,
        "attempt": JobRow.attempt + 1,
        "worker_id": claimant.worker,
        "device": claimant.device,
        "last_worker": claimant.name,
        "last_device": claimant.device,
        "lease_until": now + timedelta(seconds=lease_s),
        "not_before": None,
        "reason": None,
        "progress": None,
        "run_ids": [],
        "started_at": now,
    }


def step(session: Session, job_id: int, follow: Step, now: datetime) -> StoredJob | None:
    """What follows by `follow` (a step of `domain.lease`), written; None when there is no such job. What the step raises passes through."""
    row = _locked(session, job_id)
    if row is None:
        return None
    before = _lease(row)
    after = follow(before)
    _write(row, after)
    if after.state != before.state:
        told: dict[str, Any] = {"state": after.state, "attempt": after.attempt}
        _append(session, row, "state", told | ({"reason": after.reason} if after.reason else {}), now)
        row.finished_at = now if after.ended else None
    session.flush()
    return _stored(row)


def report(
    session: Session,
    job_id: int,
    follow: Step,
    events: Sequence[tuple[str, Mapping[str, Any]]],
    now: datetime,
    run_ids: Sequence[int] = (),
) -> StoredJob | None:
    """A step of the lease, with what the worker tells: (kind, data) in order, and the runs its result became. None when there is none."""
    row = _locked(session, job_id)
    if row is None:
        return None
    _write(row, follow(_lease(row)))
    for kind, data in events:
        if kind == "progress":
            row.progress = dict(data)
        if row.events < MOST_EVENTS:
            _append(session, row, kind, data, now)
    row.run_ids = list(dict.fromkeys((*row.run_ids, *run_ids)))
    session.flush()
    return _stored(row)


def forget_runs(session: Session, job_id: int, told: str, now: datetime) -> StoredJob | None:
    """The job without its runs, which a line of its log tells. None when there is no such job."""
    row = _locked(session, job_id)
    if row is None:
        return None
    row.run_ids = []
    _append(session, row, "log", {"level": "info", "text": told}, now)
    session.flush()
    return _stored(row)


def expired(session: Session, now: datetime) -> list[int]:
    """The numbers of running jobs whose worker was not heard of in time."""
    return list(session.scalars(select(col(JobRow.id)).where(col(JobRow.state) == RUNNING, col(JobRow.lease_until) <= now)))


def held_by(session: Session, worker: int) -> list[StoredJob]:
    """What this worker holds."""
    statement = select(JobRow).where(col(JobRow.state) == RUNNING, col(JobRow.worker_id) == worker).order_by(col(JobRow.id))
    return [_stored(row) for row in session.scalars(statement)]


def events_after(session: Session, job_id: int, position: int, *, kinds: Sequence[str] = (), limit: int = 500) -> list[JobEvent]:
    """What happened after `position`, oldest first; only these kinds where some are named."""
    statement = select(JobEventRow).where(col(JobEventRow.job_id) == job_id, col(JobEventRow.position) > position)
    if kinds:
        statement = statement.where(col(JobEventRow.kind).in_(kinds))
    rows = session.scalars(statement.order_by(col(JobEventRow.position)).limit(limit))
    return [JobEvent(row.position, row.attempt, row.kind, row.data, row.at) for row in rows]


def points_of(session: Session, job_id: int, attempt: int) -> list[Mapping[str, Any]]:
    """The points that one attempt measured, in order."""
    statement = select(col(JobEventRow.data)).where(
        col(JobEventRow.job_id) == job_id, col(JobEventRow.kind) == "point", col(JobEventRow.attempt) == attempt
    )
    return list(session.scalars(statement.order_by(col(JobEventRow.position))))


def _waits(now: datetime) -> tuple[Any, ...]:
    ready = or_(col(JobRow.not_before).is_(None), col(JobRow.not_before) <= now)
    return (and_(col(JobRow.state) == QUEUED, ready),)


def _locked(session: Session, job_id: int) -> JobRow | None:
    return session.get(JobRow, job_id, with_for_update=True, populate_existing=True) if is_id(job_id) else None


def _append(session: Session, row: JobRow, kind: str, data: Mapping[str, Any], now: datetime) -> None:
    row.events += 1
    session.add(JobEventRow(job_id=row.id or 0, position=row.events, attempt=row.attempt, kind=kind, data=dict(data), at=now))


def _lease(row: JobRow) -> Lease:
    return Lease(
        state=row.state,
        attempt=row.attempt,
        lost_workers=row.lost_workers,
        interruptions=row.interruptions,
        cancel_requested=row.cancel_requested,
        worker=row.worker_id,
        device=row.device,
        until=row.lease_until,
        not_before=row.not_before,
        reason=row.reason,
    )


def _write(row: JobRow, lease: Lease) -> None:
    row.state, row.attempt = lease.state, lease.attempt
    row.lost_workers, row.interruptions, row.cancel_requested = lease.lost_workers, lease.interruptions, lease.cancel_requested
    row.worker_id, row.device, row.lease_until = lease.worker, lease.device, lease.until
    row.not_before, row.reason = lease.not_before, lease.reason


def _stored(row: JobRow) -> StoredJob:
    if row.id is None:
        raise ValueError("a job without a number")
    asked = NewJob(row.kind, row.parameters, row.label, row.priority, row.limit_s, row.wanted_device, row.schedule_id)
    return StoredJob(
        id=row.id,
        asked=asked,
        lease=_lease(row),
        last_worker=row.last_worker,
        last_device=row.last_device,
        progress=row.progress,
        run_ids=tuple(row.run_ids),
        events=row.events,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )


def lost(job: StoredJob, reason: str) -> Step:
    """The step that takes this very attempt from its worker; a job that went on meanwhile stays as it is."""

    def follow(now_held: Lease) -> Lease:
        same = now_held.state == RUNNING and now_held.attempt == job.lease.attempt and now_held.until == job.lease.until
        return leases.lose(now_held, reason) if same else now_held

    return follow
