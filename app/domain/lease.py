"""A job's way from the queue to its end: who holds it, until when, and what may follow.

              claim                     finish
    queued ───────────▶ running ───────────────────▶ succeeded · failed · cancelled · timeout · refused
      ▲                    │
      └────────────────────┘ release: given back, or the device failed; burns nothing
      └────────────────────┘ lose: its worker is gone; the third time the job ends as lost

Every claim raises `attempt`, and whatever a worker reports must name the attempt it holds: a worker that was given up and comes back
late changes nothing. All times are the server's own and come in as parameters.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from app.domain.errors import Conflict

LEASE_S = 30.0
# How many workers a job may lose.
MOST_LOST = 3

QUEUED, RUNNING = "queued", "running"
SUCCEEDED, FAILED, CANCELLED, TIMEOUT, LOST, REFUSED = "succeeded", "failed", "cancelled", "timeout", "lost", "refused"
STATES = (QUEUED, RUNNING, SUCCEEDED, FAILED, CANCELLED, TIMEOUT, LOST, REFUSED)
ENDED = frozenset(STATES) - {QUEUED, RUNNING}
# What a worker may say of a job's end; that a worker is lost is for the server to say.
OUTCOMES = (SUCCEEDED, FAILED, CANCELLED, TIMEOUT, REFUSED)

# After a failure of the device the job waits before it is tried again, twice as long each time.
_FIRST_PAUSE_S = 10.0
_LONGEST_PAUSE_S = 600.0


class LeaseGone(Conflict):
    """What is reported belongs to an attempt that is no longer the job's: stop the work and drop it."""


@dataclass(frozen=True)
class Lease:
    """The part of a job that decides who may work on it. `worker`, `device` and `until` are None unless it runs.

    `attempt` counts claims, `lost_workers` those of them whose worker was lost, `interruptions` those given back.
    """

    state: str = QUEUED
    attempt: int = 0
    lost_workers: int = 0
    interruptions: int = 0
    cancel_requested: bool = False
    worker: int | None = None
    device: str | None = None
    until: datetime | None = None
    not_before: datetime | None = None
    reason: str | None = None

    @property
    def ended(self) -> bool:
        """True when nothing can follow."""
        return self.state in ENDED

    def expired(self, now: datetime) -> bool:
        """True when it runs and its worker was not heard of in time."""
        return self.state == RUNNING and self.until is not None and self.until <= now


def claimable(lease: Lease, now: datetime) -> bool:
    """Whether a worker may take the job now."""
    return lease.state == QUEUED and (lease.not_before is None or lease.not_before <= now)


def claim(lease: Lease, worker: int, device: str, now: datetime, lease_s: float = LEASE_S) -> Lease:
    """The job in the hands of a worker, on one of its devices, as a new attempt. Raises Conflict when it is not to be had."""
    if not claimable(lease, now):
        raise Conflict(f"The job is {lease.state} and cannot be claimed.")
    held = replace(lease, state=RUNNING, attempt=lease.attempt + 1, worker=worker, device=device, not_before=None, reason=None)
    return replace(held, until=_until(now, lease_s))


def renew(lease: Lease, worker: int, attempt: int, now: datetime, lease_s: float = LEASE_S) -> Lease:
    """The lease, longer by what a heartbeat gives. One that ran out and that nobody took yet is renewed too. Raises LeaseGone."""
    _require_held(lease, worker, attempt)
    return replace(lease, until=_until(now, lease_s))


def finish(lease: Lease, worker: int, attempt: int, outcome: str, reason: str | None = None) -> Lease:
    """The job at its end, as its worker says. Raises LeaseGone, also for a second finish, and Conflict for what is no outcome."""
    if outcome not in OUTCOMES:
        raise Conflict(f"A job cannot end as {outcome}: {', '.join(OUTCOMES)}.")
    _require_held(lease, worker, attempt)
    return _free(lease, outcome, reason)


def release(lease: Lease, worker: int, attempt: int, now: datetime, reason: str | None = None, *, pause: bool = False) -> Lease:
    """The job back in the queue without a mark against it: its worker stops, or (`pause`) the device failed and needs a while.

    One whose cancelling was asked for ends instead. Raises LeaseGone.
    """
    _require_held(lease, worker, attempt)
    if lease.cancel_requested:
        return _free(lease, CANCELLED, reason)
    pause_s = min(_FIRST_PAUSE_S * 2.0 ** min(lease.interruptions, 10), _LONGEST_PAUSE_S)
    again = replace(_free(lease, QUEUED, reason), interruptions=lease.interruptions + 1)
    return replace(again, not_before=now + timedelta(seconds=pause_s)) if pause else again


def lose(lease: Lease, reason: str) -> Lease:
    """The job after its worker was lost: back in the queue, or at its end when that was the third. Raises Conflict unless it runs."""
    if lease.state != RUNNING:
        raise Conflict(f"The job is {lease.state} and has no worker to lose.")
    if lease.cancel_requested:
        return _free(lease, CANCELLED, reason)
    lost = replace(lease, lost_workers=lease.lost_workers + 1)
    return _free(lost, LOST if lost.lost_workers >= MOST_LOST else QUEUED, reason)


def cancel(lease: Lease) -> Lease:
    """The job with its end asked for: at once when it waits, by its worker when it runs. Asking again changes nothing.

    Raises Conflict when it has ended otherwise.
    """
    if lease.state == QUEUED:
        return _free(replace(lease, cancel_requested=True), CANCELLED, "cancelled before it started")
    if lease.state == RUNNING:
        return replace(lease, cancel_requested=True)
    if lease.state == CANCELLED:
        return lease
    raise Conflict(f"The job has ended as {lease.state}: there is nothing to cancel.")


def _require_held(lease: Lease, worker: int, attempt: int) -> None:
    if lease.state != RUNNING or lease.worker != worker or lease.attempt != attempt:
        raise LeaseGone(f"Attempt {attempt} of this job is over (the job is {lease.state}): stop it and drop its result.")


def _free(lease: Lease, state: str, reason: str | None) -> Lease:
    return replace(lease, state=state, worker=None, device=None, until=None, reason=reason)


def _until(now: datetime, lease_s: float) -> datetime:
    return now + timedelta(seconds=lease_s)
