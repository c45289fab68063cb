"""Jobs as people and tools see them: asked for, estimated, listed, cancelled, followed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session

from app.domain import lease as leases
from app.domain.errors import InvalidRequest, NotFound
from app.domain.lease import QUEUED
from app.domain.text import clean_text
from app.jobs import KINDS, read_parameters
from app.jobs.endpoint_sweep import EndpointSweep
from app.services.context import Context
from app.services.job_fit import Fit, fits, waiting_for
from app.services.profiles import read_book
from app.services.summary import timestamp
from app.store import jobs, targets, workers
from app.store.jobs import JobEvent, NewJob, StoredJob

MOST_WAITING = 10_000


@dataclass(frozen=True)
class JobView:
    """A job, and what it waits for where it waits."""

    job: StoredJob
    waiting_for: str | None

    def as_json(self) -> dict[str, Any]:
        """The job as JSON-ready data, without its points."""
        job, lease = self.job, self.job.lease
        return {
            "id": job.id,
            "kind": job.asked.kind,
            "label": job.asked.label,
            "parameters": dict(job.asked.parameters),
            "priority": job.asked.priority,
            "state": lease.state,
            "reason": lease.reason,
            "waiting_for": self.waiting_for,
            "cancel_requested": lease.cancel_requested,
            "attempt": lease.attempt,
            "lost_workers": lease.lost_workers,
            "wanted_device": job.asked.wanted_device,
            "device": job.last_device,
            "worker": job.last_worker,
            "progress": dict(job.progress) if job.progress is not None else None,
            "run_ids": list(job.run_ids),
            "schedule": job.asked.schedule_id,
            "limit_s": job.asked.limit_s,
            "created_at": timestamp(job.created_at),
            "started_at": timestamp(job.started_at),
            "finished_at": timestamp(job.finished_at),
            "url": f"/jobs/{job.id}",
            "log_url": f"/api/v1/jobs/{job.id}/log",
            "events_url": f"/api/v1/jobs/{job.id}/events",
        }


def asked(
    kind: str,
    parameters: Mapping[str, Any],
    *,
    label: str | None = None,
    priority: int = 0,
    limit_s: float | None = None,
    wanted_device: str | None = None,
) -> NewJob:
    """A job as asked for, its parameters checked and with every default filled in. Raises InvalidRequest by field."""
    if kind not in KINDS:
        raise InvalidRequest("kind", f"There is no kind of job called {clean_text(kind)[:60]}: {', '.join(KINDS)}.")
    values = read_parameters(KINDS[kind], parameters).model_dump(mode="json")
    return NewJob(kind, values, clean_text(label or "") or None, priority, limit_s, wanted_device)


def submit(context: Context, job: NewJob) -> JobView:
    """Put a job into the queue; it waits where no worker can run it yet. Raises UnknownName or InvalidRequest by field."""
    require_names(context, job)
    with context.database.write() as session:
        stored = put(session, job, context.clock.now())
    context.bell.ring()
    return view(context, stored.id)


def put(session: Session, job: NewJob, now: datetime) -> StoredJob:
    """The job, stored. Raises InvalidRequest when too many wait."""
    if jobs.waiting(session) >= MOST_WAITING:
        raise InvalidRequest("kind", f"{MOST_WAITING:,} jobs wait already: cancel some, or start a worker.")
    return jobs.add(session, job, now)


def require_names(context: Context, job: NewJob) -> None:
    """Raise UnknownName or InvalidRequest when the job names a model or a target that is not there."""
    parameters = read_parameters(KINDS[job.kind], job.parameters)
    # A server's own name for its model is the server's matter; elsewhere a model is one of ours.
    if isinstance(parameters, EndpointSweep):
        with context.database.read() as session:
            if targets.named(session, parameters.target) is None:
                known = ", ".join(item.target.name for item in targets.every(session)[:10]) or "none yet"
                raise InvalidRequest("target", f"No target of this name is registered (registered: {known}): register it on /jobs first.")
        return
    model = getattr(parameters, "model", None)
    if model:
        read_book(context).model(str(model))


def estimate(context: Context, job: NewJob) -> list[Fit]:
    """What the job takes on each device that is there, or why it cannot run on it. Nothing is stored."""
    require_names(context, job)
    with context.database.read() as session:
        known = workers.every(session)
    return fits(context, read_book(context), job, known)


def estimate_json(found: Sequence[Fit]) -> dict[str, Any]:
    """Estimates as JSON-ready data."""
    items = [
        {
            "worker": each.place.worker.name,
            "device": each.place.key,
            "device_name": each.place.facts.name,
            "hardware": each.place.facts.hardware,
            "estimate": {**asdict(each.estimate)} if each.estimate is not None else None,
            "refused": each.refusal,
        }
        for each in found
    ]
    able = [each for each in found if each.estimate is not None]
    waits = None if able else "No connected worker can run it now: it would wait."
    return {"devices": items, "waits_for": waits}


def view(context: Context, job_id: int) -> JobView:
    """The job of this number. Raises NotFound."""
    with context.database.read() as session:
        found = jobs.get(session, job_id)
        if found is None:
            raise NotFound(f"There is no job {job_id}.")
        return _views(context, session, [found])[0]


def detail_json(context: Context, job_id: int) -> dict[str, Any]:
    """The job of this number with the points of its attempt. Raises NotFound."""
    found = view(context, job_id)
    return {**found.as_json(), "points": points(context, found)}


def points(context: Context, found: JobView) -> list[dict[str, Any]]:
    """The points that the job's present attempt measured so far."""
    with context.database.read() as session:
        return [dict(point) for point in jobs.points_of(session, found.job.id, found.job.lease.attempt)]


def page(
    context: Context, *, states: Sequence[str] = (), kind: str | None = None, before: int | None = None, limit: int = 100
) -> tuple[list[JobView], int | None]:
    """Newest first, and the number from which the next page goes on."""
    with context.database.read() as session:
        found = jobs.page(session, states=states, kind=kind, before=before, limit=limit + 1)
        return _views(context, session, found[:limit]), found[limit - 1].id if len(found) > limit else None


def _views(context: Context, session: Session, found: Sequence[StoredJob]) -> list[JobView]:
    if not any(job.lease.state == QUEUED for job in found):
        return [JobView(job, None) for job in found]
    now, known, running = context.clock.now(), workers.every(session), jobs.running(session)
    places = {number: place for place, number in enumerate(jobs.order(session, now))}
    book = read_book(context)
    return [JobView(job, waiting_for(book, job, known, running, places.get(job.id, 0), now)) for job in found]


def cancel(context: Context, job_id: int) -> JobView:
    """Ask for a job's end: at once where it waits, by its worker where it runs. Raises NotFound, Conflict when it ended otherwise."""
    with context.database.write() as session:
        if jobs.step(session, job_id, leases.cancel, context.clock.now()) is None:
            raise NotFound(f"There is no job {job_id}.")
    context.bell.ring()
    return view(context, job_id)


def events_after(context: Context, job_id: int, position: int) -> tuple[list[JobEvent], bool]:
    """What happened after `position`, and whether that is all there will be. Raises NotFound."""
    with context.database.read() as session:
        job = jobs.get(session, job_id)
        if job is None:
            raise NotFound(f"There is no job {job_id}.")
        events = jobs.events_after(session, job_id, position)
    last = events[-1].position if events else position
    return events, job.lease.ended and last >= job.events


def log_lines(context: Context, job_id: int) -> list[str]:
    """What the job's log says, a line each: time, attempt, level, text; changes of state are lines too. Raises NotFound."""
    lines: list[str] = []
    position = 0
    with context.database.read() as session:
        if jobs.get(session, job_id) is None:
            raise NotFound(f"There is no job {job_id}.")
        while found := jobs.events_after(session, job_id, position, kinds=("log", "state")):
            position = found[-1].position
            lines += [log_line(event) for event in found]
    return lines


def log_line(event: JobEvent) -> str:
    """One event of a log as a line."""
    when = timestamp(event.at)
    if event.kind == "state":
        told = f"state: {event.data.get('state')}"
        parts = [f"{key} {event.data[key]}" for key in ("worker", "device", "reason") if event.data.get(key)]
        return f"{when} [{event.attempt}] {told}{', ' + ', '.join(parts) if parts else ''}"
    return f"{when} [{event.attempt}] {event.data.get('level', 'info')}: {event.data.get('text', '')}"
