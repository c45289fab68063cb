"""Which device can run which job, what it will take there, and what a job that waits is waiting for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.domain.errors import PhaselineError
from app.jobs import KINDS, DeviceFacts, Estimate, JobParameters, read_parameters
from app.services.context import Context
from app.services.job_estimates import refined
from app.services.profiles import ProfileBook
from app.store.jobs import NewJob, StoredJob
from app.store.workers import StoredWorker

# A worker polls at least this often, so one that was not heard of for longer is away.
AWAY_AFTER_S = 90.0


@dataclass(frozen=True)
class Place:
    """A device of a worker that is there."""

    worker: StoredWorker
    key: str
    facts: DeviceFacts

    @property
    def title(self) -> str:
        """The device's name and its worker's."""
        return f"{self.facts.name} of {self.worker.name}"


@dataclass(frozen=True)
class Fit:
    """What a job takes on a device, or why it cannot run there; exactly one of the two is None."""

    place: Place
    estimate: Estimate | None
    refusal: str | None


def present(workers: Sequence[StoredWorker], now: datetime) -> list[StoredWorker]:
    """The workers that were heard of lately and did not say goodbye."""
    return [worker for worker in workers if worker.left_at is None and now - worker.seen_at < timedelta(seconds=AWAY_AFTER_S)]


def places_of(book: ProfileBook, worker: StoredWorker) -> list[Place]:
    """Its devices, each matched to a hardware profile where one answers to its name."""
    return [Place(worker, str(device["key"]), _facts(book, device)) for device in worker.devices]


def _facts(book: ProfileBook, device: Mapping[str, Any]) -> DeviceFacts:
    name = str(device["name"])
    profile = book.find_hardware(device.get("hardware")) or book.find_hardware(name)
    return DeviceFacts(
        name=name,
        kind=str(device["kind"]),
        backends=tuple(device.get("backends") or ()),
        memory_bytes=device.get("memory_bytes"),
        hardware=profile.slug if profile else None,
    )


def parameters_of(job: NewJob) -> JobParameters:
    """The checked parameters of a job. Raises InvalidRequest when this version no longer takes them."""
    return read_parameters(KINDS[job.kind], job.parameters)


def fit(book: ProfileBook, job: NewJob, place: Place) -> Fit:
    """What the job takes at this place, or the sentence why it cannot run there."""
    if job.wanted_device is not None and job.wanted_device != place.key:
        return Fit(place, None, f"it asks for the device {job.wanted_device}")
    if job.kind not in place.worker.kinds:
        return Fit(place, None, f"the worker {place.worker.name} does not know {job.kind}")
    try:
        parameters = parameters_of(job)
        if not parameters.needs_device and not place.facts.is_cpu:
            return Fit(place, None, "it needs no accelerator and runs on the processor")
        if not place.facts.is_cpu and not place.facts.backends:
            return Fit(place, None, "it has no backend for this device: install torch there (phaseline[gpu])")
        return Fit(place, refined(book, parameters, place.facts), None)
    except PhaselineError as error:
        return Fit(place, None, str(error))


def limit_of(job: NewJob, estimate: Estimate) -> float:
    """Seconds after which a job is ended: what it was given, else three times the estimate and a start, at least ten minutes.

    A rough estimate may be far off: there the job's own limits count, where it has some.
    """
    if job.limit_s is not None:
        return job.limit_s
    likely = estimate.at_most_s if estimate.rough and estimate.at_most_s is not None else 3 * estimate.seconds
    return max(600.0, likely + 120.0)


def waiting_for(
    book: ProfileBook, job: StoredJob, workers: Sequence[StoredWorker], running: Sequence[StoredJob], before: int, now: datetime
) -> str | None:
    """One sentence on what a queued job waits for; None when it does not wait. `before`: queued jobs that come first."""
    if job.lease.state != "queued":
        return None
    if job.lease.not_before is not None and job.lease.not_before > now:
        return f"A pause of {(job.lease.not_before - now).total_seconds():.0f} s after a failure of the device: {job.lease.reason}"
    there = present(workers, now)
    if not there:
        return "No worker is connected: start one with `phaseline worker`."
    fits = [fit(book, job.asked, place) for worker in there for place in places_of(book, worker)]
    able = [each.place for each in fits if each.refusal is None]
    if not able:
        reasons = dict.fromkeys(f"{each.place.title}: {each.refusal}" for each in fits)
        return f"No connected worker can run it ({'; '.join(list(reasons)[:4]) or 'none has a device'})."
    if before:
        return f"{before} job{'s' if before > 1 else ''} before it."
    busy = {each.lease.device: each.id for each in running}
    taken = [f"{place.title} runs job {busy[place.key]}" for place in able if place.key in busy]
    return f"{'; '.join(taken[:4])}." if len(taken) == len(able) else "The next look of a worker."


def fits(context: Context, book: ProfileBook, job: NewJob, workers: Sequence[StoredWorker]) -> list[Fit]:
    """The job at every place that is there."""
    there = present(workers, context.clock.now())
    return [fit(book, job, place) for worker in there for place in places_of(book, worker)]
