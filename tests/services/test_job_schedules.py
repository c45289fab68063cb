"""Schedules by a clock that the test sets: due once, never two at once, what was missed runs once."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.domain import lease as leases
from app.domain.errors import InvalidRequest, UnknownName
from app.domain.job_schedule import Rhythm
from app.services import job_schedules
from app.services.clock import ServerClock
from app.services.context import Context, make_context
from app.services.job_schedules import run_due
from app.services.jobs import asked
from app.services.startup import prepare
from app.store import jobs
from app.store.job_schedules import NewSchedule
from app.store.workers import Registration, register
from tests.applications import settings_in

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
JOB = asked("device_microbench", {"seed": 3})


class SetClock(ServerClock):
    """A clock that stands until it is set forward."""

    def __init__(self) -> None:
        super().__init__()
        self.at = NOON

    def now(self) -> datetime:
        return self.at


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    made = replace(make_context(settings_in(tmp_path)), clock=SetClock())
    prepare(made)
    yield made
    made.database.close()


def forward(context: Context, **passed: float) -> None:
    assert isinstance(context.clock, SetClock)
    context.clock.at += timedelta(**passed)


def nightly(rhythm: Rhythm, **changes: object) -> NewSchedule:
    return NewSchedule("nightly", JOB.kind, JOB.parameters, rhythm, **changes)  # type: ignore[arg-type]


def end(context: Context, number: int) -> None:
    """Claim and finish a job."""
    now = context.clock.now()
    with context.database.write() as session:
        worker = register(session, Registration("i", "s", "w", "1", (), (), None), now).id
        assert jobs.claim(session, jobs.Claimant(worker, "w", "d"), [number], now, 30.0)
        jobs.step(session, number, lambda held: leases.finish(held, worker, held.attempt, "succeeded"), now)


def test_a_job_is_made_when_it_is_due_and_carries_the_schedules_name(context: Context) -> None:
    schedule = job_schedules.add(context, nightly(Rhythm(daily_at="02:30"), priority=4, wanted_device="cpu-x", limit_s=60.0))
    forward(context, hours=14)
    assert run_due(context) == []
    forward(context, minutes=30)
    (number,) = run_due(context)
    assert run_due(context) == []
    with context.database.read() as session:
        job = jobs.get(session, number)
    assert job is not None
    assert job.asked == replace(JOB, label="nightly", priority=4, wanted_device="cpu-x", limit_s=60.0, schedule_id=schedule.id)
    end(context, number)
    forward(context, days=1)
    assert len(run_due(context)) == 1


def test_never_two_of_a_schedule_at_once(context: Context) -> None:
    job_schedules.add(context, nightly(Rhythm(every_hours=1)))
    forward(context, hours=1)
    (first,) = run_due(context)
    forward(context, hours=1)
    assert run_due(context) == [], "the first still waits"
    end(context, first)
    assert run_due(context) == [], "the turn has passed"
    forward(context, hours=1)
    assert len(run_due(context)) == 1


def test_what_was_missed_runs_once(context: Context) -> None:
    job_schedules.add(context, nightly(Rhythm(every_hours=6)))
    forward(context, days=10, hours=1)
    (number,) = run_due(context)
    end(context, number)
    assert run_due(context) == []
    assert job_schedules.every(context)[0].next_at == NOON + timedelta(days=10, hours=6)


def test_one_that_is_off_makes_nothing_and_does_not_make_up_for_it(context: Context) -> None:
    schedule = job_schedules.add(context, nightly(Rhythm(every_hours=6)))
    job_schedules.switch(context, schedule.id, enabled=False)
    forward(context, days=3)
    assert run_due(context) == []
    job_schedules.switch(context, schedule.id, enabled=True)
    assert run_due(context) == []
    forward(context, hours=6)
    assert len(run_due(context)) == 1


def test_its_job_must_be_possible_when_it_begins(context: Context) -> None:
    sweep = asked("inprocess_sweep", {"model": "nope"})
    with pytest.raises(UnknownName):
        job_schedules.add(context, NewSchedule("n", sweep.kind, sweep.parameters, Rhythm(every_hours=1)))
    with pytest.raises(InvalidRequest, match="needs a name"):
        job_schedules.add(context, replace(nightly(Rhythm(every_hours=1)), name="\u202e"))
