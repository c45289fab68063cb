"""Which step may follow which, by the pure state machine."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from app.domain.errors import Conflict
from app.domain.lease import (
    CANCELLED,
    ENDED,
    LOST,
    MOST_LOST,
    OUTCOMES,
    QUEUED,
    RUNNING,
    Lease,
    LeaseGone,
    cancel,
    claim,
    claimable,
    finish,
    lose,
    release,
    renew,
)

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
HELD = claim(Lease(), 7, "cpu", NOON)


def later(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def test_a_claim_is_a_new_attempt_for_thirty_seconds() -> None:
    assert (HELD.state, HELD.attempt, HELD.worker, HELD.device, HELD.until) == (RUNNING, 1, 7, "cpu", later(30))
    assert not HELD.expired(later(29.9))
    assert HELD.expired(later(30))
    with pytest.raises(Conflict):
        claim(HELD, 8, "cpu", later(31))


def test_a_heartbeat_renews_even_a_lease_that_ran_out_while_nobody_took_it() -> None:
    assert renew(HELD, 7, 1, later(10)).until == later(40)
    assert renew(HELD, 7, 1, later(50)).until == later(80)


@pytest.mark.parametrize(("worker", "attempt"), [(8, 1), (7, 2), (7, 0)])
def test_who_does_not_hold_it_changes_nothing(worker: int, attempt: int) -> None:
    for step in (lambda: renew(HELD, worker, attempt, NOON), lambda: finish(HELD, worker, attempt, "failed"),
                 lambda: release(HELD, worker, attempt, NOON)):  # fmt: skip
        with pytest.raises(LeaseGone):
            step()


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_end_is_an_end(outcome: str) -> None:
    ended = finish(HELD, 7, 1, outcome, "why")
    assert (ended.state, ended.reason, ended.worker, ended.device, ended.until) == (outcome, "why", None, None, None)
    with pytest.raises(LeaseGone):
        finish(ended, 7, 1, outcome)
    with pytest.raises(Conflict):
        lose(ended, "x")
    assert not claimable(ended, later(1e6))


def test_a_worker_does_not_say_that_it_is_lost() -> None:
    with pytest.raises(Conflict):
        finish(HELD, 7, 1, LOST)


def test_the_third_lost_worker_is_the_last() -> None:
    lease = Lease()
    for number in range(1, MOST_LOST + 1):
        lease = lose(claim(lease, number, "cpu", NOON), "gone")
        assert (lease.attempt, lease.lost_workers) == (number, number)
        assert lease.state == (QUEUED if number < MOST_LOST else LOST)


def test_what_is_given_back_burns_nothing_and_a_failed_device_rests_longer_each_time() -> None:
    given = release(HELD, 7, 1, NOON, "its worker stops")
    assert (given.state, given.lost_workers, given.not_before) == (QUEUED, 0, None)
    lease, pauses = HELD, []
    for _ in range(8):
        rests = release(lease, 7, lease.attempt, NOON, "lost", pause=True)
        assert rests.not_before is not None
        assert not claimable(rests, NOON)
        pauses.append((rests.not_before - NOON).total_seconds())
        lease = claim(rests, 7, "cpu", rests.not_before)
    assert pauses == [10, 20, 40, 80, 160, 320, 600, 600]
    assert lease.lost_workers == 0


def test_cancelling_is_asked_for_and_nothing_brings_the_job_back() -> None:
    assert cancel(Lease()).state == CANCELLED
    asked = cancel(HELD)
    assert (asked.state, asked.cancel_requested) == (RUNNING, True)
    assert lose(asked, "gone").state == CANCELLED
    assert release(asked, 7, 1, NOON).state == CANCELLED
    # What was done before the word came counts.
    assert finish(asked, 7, 1, "succeeded").state == "succeeded"
    assert cancel(cancel(Lease())).state == CANCELLED


@pytest.mark.parametrize("state", sorted(ENDED - {CANCELLED}))
def test_what_has_ended_cannot_be_cancelled(state: str) -> None:
    with pytest.raises(Conflict, match=state):
        cancel(replace(Lease(), state=state))
