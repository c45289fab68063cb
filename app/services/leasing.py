"""The workers' side of the queue: who registers takes its own leases back, who claims gets one job, who reports holds it."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlmodel import Session

from app.domain import lease as leases
from app.domain.errors import Conflict, ImportRefused, NotAllowed, NotFound, PhaselineError
from app.domain.lease import RUNNING, Lease
from app.domain.plain import to_plain
from app.jobs import Estimate
from app.services.context import Context
from app.services.job_fit import fit, limit_of, places_of
from app.services.job_runs import step
from app.services.measured import profile_of_new_device
from app.services.profiles import ProfileBook, read_book
from app.services.storing import store_files
from app.services.worker_access import sha256_of
from app.store import jobs, targets, workers
from app.store.jobs import Claimant, NewJob, Step, StoredJob
from app.store.workers import Registration, StoredWorker

INTERRUPTED, RELEASED = "interrupted", "released"
# What a worker may say at the end of an attempt: an outcome of the job, or that the job goes back into the queue.
ENDS = (*leases.OUTCOMES, INTERRUPTED, RELEASED)


class SessionOver(Conflict):
    """The worker registered anew meanwhile, or never did: register first."""


@dataclass(frozen=True)
class Registered:
    """A worker's number, the secret that names its session, and the jobs that were taken back from the session before."""

    worker: StoredWorker
    session: str
    taken_back: tuple[int, ...]


@dataclass(frozen=True)
class Handed:
    """A job in a worker's hands, with all it needs to run it."""

    job: StoredJob
    device: str
    limit_s: float
    estimate: Estimate
    model: Mapping[str, Any] | None
    hardware: Mapping[str, Any] | None
    target: Mapping[str, Any] | None

    def as_json(self) -> dict[str, Any]:
        """As JSON-ready data."""
        return {
            "id": self.job.id,
            "attempt": self.job.lease.attempt,
            "kind": self.job.asked.kind,
            "label": self.job.asked.label,
            "parameters": dict(self.job.asked.parameters),
            "device": self.device,
            "limit_s": self.limit_s,
            "memory_bytes": self.estimate.memory_bytes,
            "model": self.model,
            "hardware": self.hardware,
            "target": self.target,
        }


def register(
    context: Context,
    identity: str,
    name: str,
    version: str,
    kinds: Sequence[str],
    devices: Sequence[Mapping[str, Any]],
    token_id: int | None,
) -> Registered:
    """Begin a session of the worker with this identity. What it held in the one before is taken back into the queue at once.

    Raises NotAllowed when the token is in use by another worker that is alive, or when the worker came with another token before.
    """
    now, session_secret = context.clock.now(), secrets.token_urlsafe(32)
    identity_sha256 = sha256_of(identity)
    with context.database.write() as session:
        _require_own_token(context, session, identity_sha256, token_id)
        told = Registration(identity_sha256, sha256_of(session_secret), name, version, tuple(kinds), tuple(devices), token_id)
        worker = workers.register(session, told, now)
        held = jobs.held_by(session, worker.id)
        for job in held:
            step(session, job.id, jobs.lost(job, "its worker started anew"), now)
    if held:
        context.bell.ring()
    return Registered(worker, session_secret, tuple(job.id for job in held))


def _require_own_token(context: Context, session: Session, identity_sha256: str, token_id: int | None) -> None:
    """One token, one worker: another may take it over only when the first was not heard of for a lease."""
    if token_id is None:
        before = workers.of_identity(session, identity_sha256)
        if before is not None and before.token_id is not None:
            raise NotAllowed("This worker had a token before and shows none: give it as PHASELINE_WORKER_TOKEN.")
        return
    workers.used(session, token_id, context.clock.now())
    mine = workers.of_identity(session, identity_sha256)
    alive = context.clock.now() - timedelta(seconds=context.settings.lease_s)
    for other in workers.with_token(session, token_id):
        if (mine is None or other.id != mine.id) and other.left_at is None and other.seen_at > alive:
            raise NotAllowed(f"This token is in use by the worker {other.name}: each worker has a token of its own, make one on /jobs.")


def worker_of(context: Context, session_secret: str, token_id: int | None) -> StoredWorker:
    """The worker that calls. Raises SessionOver, and NotAllowed when it shows another token than it registered with."""
    with context.database.read() as session:
        found = workers.of_session(session, sha256_of(session_secret))
    if found is None:
        raise SessionOver("This session is over: the worker has registered anew, or not at all. Register first.")
    if found.token_id != token_id:
        raise NotAllowed("This session belongs to another token.")
    return found


def note_seen(context: Context, worker: StoredWorker) -> None:
    """The worker was heard of."""
    with context.database.write() as session:
        workers.seen(session, worker.id, context.clock.now())


def leave(context: Context, worker: StoredWorker) -> None:
    """The worker stops: what it still holds, such as a job whose answer it did not wait for, goes back into the queue without a mark."""
    now = context.clock.now()
    with context.database.write() as session:
        for job in jobs.held_by(session, worker.id):
            given = partial(leases.release, worker=worker.id, attempt=job.lease.attempt, now=now, reason="its worker stopped")
            step(session, job.id, given, now)
        workers.seen(session, worker.id, now, left=True)
    context.bell.ring()


def claim(context: Context, worker: StoredWorker, free: Sequence[str], holding: Sequence[int]) -> Handed | None:
    """A job for one of the worker's `free` devices, or None.

    A job that the worker holds without knowing (the answer to its claim was lost) is handed to it again.
    """
    now = context.clock.now()
    with context.database.read() as session:
        forgotten = [job for job in jobs.held_by(session, worker.id) if job.id not in holding]
        waiting = jobs.queue(session, now, worker.kinds, free) if not forgotten else []
    if not forgotten and not waiting:
        return None
    book = read_book(context)
    for job in forgotten:
        again = _renewed(context, job, worker)
        if again is not None:
            return _handed(context, book, again, worker)
    for place in places_of(book, worker):
        able = [job.id for job in waiting if place.key in free and fit(book, job.asked, place).refusal is None]
        claimed = _claim(context, Claimant(worker.id, worker.name, place.key), able)
        if claimed is not None:
            context.bell.ring()
            return _handed(context, book, claimed, worker)
    return None


def _renewed(context: Context, job: StoredJob, worker: StoredWorker) -> StoredJob | None:
    now = context.clock.now()
    with context.database.write() as session:
        try:
            return jobs.step(session, job.id, _renewal(context, worker, job.lease.attempt), now)
        except leases.LeaseGone:
            return None


def _claim(context: Context, claimant: Claimant, among: Sequence[int]) -> StoredJob | None:
    if not among:
        return None
    try:
        with context.database.write() as session:
            return jobs.claim(session, claimant, among, context.clock.now(), context.settings.lease_s)
    except IntegrityError:
        # Another worker got a job on this device at the same moment: the database allows one.
        return None


def _handed(context: Context, book: ProfileBook, job: StoredJob, worker: StoredWorker) -> Handed | None:
    """The job with its model, profile and target. One whose names are gone since it was asked for ends as refused."""
    place = next((place for place in places_of(book, worker) if place.key == job.lease.device), None)
    found = fit(book, job.asked, place) if place is not None else None
    if place is None or found is None or found.estimate is None:
        reason = found.refusal if found is not None else "its worker no longer has the device"
        _refuse(context, job, worker, reason)
        return None
    target = _target(context, job.asked)
    if job.asked.kind == "endpoint_sweep" and target is None:
        _refuse(context, job, worker, "its target is no longer registered")
        return None
    model = _model(book, job.asked)
    profile = book.find_hardware(place.facts.hardware) if place.facts.hardware else None
    hardware = to_plain(profile) if profile is not None else None
    return Handed(job, place.key, limit_of(job.asked, found.estimate), found.estimate, model, hardware, target)


def _refuse(context: Context, job: StoredJob, worker: StoredWorker, reason: str | None) -> None:
    finish(context, worker, job.id, job.lease.attempt, leases.REFUSED, reason)


def _model(book: ProfileBook, job: NewJob) -> Mapping[str, Any] | None:
    name = job.parameters.get("model") if job.kind != "endpoint_sweep" else None
    if not name:
        return None
    entry = book.model(str(name))
    return {"slug": entry.slug, "name": entry.name, "architecture": to_plain(entry.architecture)}


def _target(context: Context, job: NewJob) -> Mapping[str, Any] | None:
    name = job.parameters.get("target")
    if not name:
        return None
    with context.database.read() as session:
        found = targets.named(session, str(name))
    return to_plain(found.target) if found is not None else None


def heartbeat(
    context: Context, worker: StoredWorker, job_id: int, attempt: int, events: Sequence[tuple[str, Mapping[str, Any]]] = ()
) -> bool:
    """Renew the lease and note what the worker tells; whether its end was asked for. Raises LeaseGone, NotFound."""
    now = context.clock.now()
    with context.database.write() as session:
        job = jobs.report(session, job_id, _renewal(context, worker, attempt), events, now)
        if job is None:
            raise NotFound(f"There is no job {job_id}.")
        workers.seen(session, worker.id, now)
    if events:
        context.bell.ring()
    return job.lease.cancel_requested


@dataclass(frozen=True)
class ResultStored:
    """The runs that a result became, and why a file gave none."""

    run_ids: tuple[int, ...]
    refused: tuple[str, ...]
    warnings: tuple[str, ...]


def result(context: Context, worker: StoredWorker, job_id: int, attempt: int, name: str, data: bytes) -> ResultStored:
    """Import a result like any upload and link its runs to the job, both or neither: an attempt that was given up meanwhile leaves none.

    The same bytes again give the same runs. Raises LeaseGone, NotFound.
    """
    # The lease is renewed first, so that it lasts while the file is read.
    heartbeat(context, worker, job_id, attempt)
    with context.database.read() as session:
        job = jobs.get(session, job_id)
    label = job.asked.label if job is not None else None

    def link(session: Session, run_ids: Sequence[int]) -> None:
        jobs.report(session, job_id, _renewal(context, worker, attempt), [], context.clock.now(), run_ids)

    try:
        outcome = store_files(context, [(name, data)], {"label": label} if label else {}, context.clock.now(), link)
    except ImportRefused as error:
        return ResultStored((), (error.reason,), ())
    refused = tuple(item.reason for item in outcome.refused)
    events = [("log", {"level": "error", "text": f"{name} gave no run: {reason}"}) for reason in refused]
    events += _profiled(context, outcome.run_ids)
    with context.database.write() as session:
        jobs.report(session, job_id, _renewal(context, worker, attempt), events, context.clock.now())
    context.bell.ring()
    return ResultStored(outcome.run_ids, refused, outcome.warnings)


def _profiled(context: Context, run_ids: Sequence[int]) -> list[tuple[str, dict[str, str]]]:
    """A line for the log when the result made a profile of a device that had none: predictions on it can follow at once."""
    try:
        made = profile_of_new_device(context, run_ids)
    except PhaselineError as error:
        return [("log", {"level": "warning", "text": f"No profile was made of the device: {error}"})]
    if made is None:
        return []
    return [
        ("log", {"level": "info", "text": f"No profile answered to {made.name}, so one was made of these rates: /hardware/{made.slug}"})
    ]


def finish(context: Context, worker: StoredWorker, job_id: int, attempt: int, end: str, reason: str | None) -> StoredJob:
    """End the attempt: the job ends with it, or goes back into the queue. Raises LeaseGone, for a second finish too, and NotFound."""
    now = context.clock.now()

    def follow(held: Lease) -> Lease:
        if end in (INTERRUPTED, RELEASED):
            return leases.release(held, worker.id, attempt, now, reason, pause=end == INTERRUPTED)
        return leases.finish(held, worker.id, attempt, end, reason)

    with context.database.write() as session:
        job = step(session, job_id, follow, now)
        if job is None:
            raise NotFound(f"There is no job {job_id}.")
        workers.seen(session, worker.id, now)
    context.bell.ring()
    return job


def reap(context: Context) -> list[int]:
    """Take back the jobs whose workers were not heard of for a lease; their numbers."""
    now = context.clock.now()
    with context.database.read() as session:
        found = [job for number in jobs.expired(session, now) if (job := jobs.get(session, number)) is not None]
    for job in found:
        with context.database.write() as session:
            step(session, job.id, jobs.lost(job, f"its worker {job.last_worker} was not heard of in time"), now)
    if found:
        context.bell.ring()
    return [job.id for job in found]


def bear_with_workers(context: Context) -> None:
    """At a start: give every lease its whole length again, since no worker could report while no server was there."""
    now = context.clock.now()
    until = now + timedelta(seconds=context.settings.lease_s)

    def longer(held: Lease) -> Lease:
        if held.state != RUNNING or held.worker is None or held.until is None or held.until >= until:
            return held
        return leases.renew(held, held.worker, held.attempt, now, context.settings.lease_s)

    with context.database.read() as session:
        found = jobs.running(session)
    for job in found:
        with context.database.write() as session:
            jobs.step(session, job.id, longer, now)


def _renewal(context: Context, worker: StoredWorker, attempt: int) -> Step:
    now = context.clock.now()
    return lambda held: leases.renew(held, worker.id, attempt, now, context.settings.lease_s)
