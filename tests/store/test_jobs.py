"""The queue in the database: claimed once however many ask, one job a device, and the same as the pure machine after any steps."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from app.domain import lease as leases
from app.domain.errors import Conflict
from app.domain.lease import QUEUED, RUNNING, Lease
from app.store import jobs, workers
from app.store.database import Database
from app.store.jobs import Claimant, NewJob
from app.store.workers import Registration

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
LEASE_S = 30.0
JOB = NewJob("device_microbench", {"seed": 0})


def worker_in(database: Database, name: str) -> int:
    with database.write() as session:
        return workers.register(session, Registration(name, name, name, "1", (), (), None), NOON).id


def add(database: Database, **changes: object) -> int:
    with database.write() as session:
        return jobs.add(session, NewJob(**{"kind": "k", "parameters": {}, **changes}), NOON).id  # type: ignore[arg-type]


def claim_once(database: Database, claimant: Claimant, among: list[int], now: datetime = NOON) -> int | None:
    try:
        with database.write() as session:
            found = jobs.claim(session, claimant, among, now, LEASE_S)
    except IntegrityError:
        return None
    return found.id if found else None


def test_the_highest_priority_comes_first_then_the_oldest(database: Database) -> None:
    numbers = [add(database, priority=priority) for priority in (0, 5, 0, 5)]
    worker = worker_in(database, "w")
    order = [claim_once(database, Claimant(worker, "w", f"d{turn}"), numbers) for turn in range(4)]
    assert order == [numbers[1], numbers[3], numbers[0], numbers[2]]
    assert claim_once(database, Claimant(worker, "w", "d9"), numbers) is None


def test_a_worker_is_shown_what_it_knows_and_has_the_device_for(database: Database) -> None:
    anywhere, here, there, unknown = (
        add(database),
        add(database, wanted_device="d"),
        add(database, wanted_device="e"),
        add(database, kind="z"),
    )
    with database.read() as session:
        assert [job.id for job in jobs.queue(session, NOON, ["k"], ["d"])] == [anywhere, here]
        assert jobs.queue(session, NOON, [], []) == []
        assert jobs.order(session, NOON) == [anywhere, here, there, unknown]
        assert jobs.waiting(session) == 4


def test_the_database_allows_one_running_job_a_device(database: Database) -> None:
    first, second = add(database), add(database)
    worker = worker_in(database, "w")
    assert claim_once(database, Claimant(worker, "w", "gpu"), [first, second]) == first
    assert claim_once(database, Claimant(worker, "w", "gpu"), [first, second]) is None
    # Not by the statement alone: the index itself refuses, and leaves the job where it was.
    with pytest.raises(IntegrityError), database.write() as session:
        session.execute(text("UPDATE job SET state = 'running', device = 'gpu' WHERE id = :id"), {"id": second})
    with database.read() as session:
        found = jobs.get(session, second)
    assert found is not None
    assert found.lease == Lease()


def test_what_rests_is_not_to_be_had_before_its_time(database: Database) -> None:
    number = add(database)
    worker = worker_in(database, "w")
    assert claim_once(database, Claimant(worker, "w", "d"), [number]) == number
    with database.write() as session:
        jobs.step(session, number, lambda held: leases.release(held, worker, 1, NOON, "lost", pause=True), NOON)
    assert claim_once(database, Claimant(worker, "w", "d"), [number], NOON + timedelta(seconds=9)) is None
    assert claim_once(database, Claimant(worker, "w", "d"), [number], NOON + timedelta(seconds=10)) == number


def raced(database: Database, claimers: int, count: int) -> None:
    """So many threads, each with a device of its own and connections of its own, claim and finish until nothing is left."""
    numbers = [add(database) for _ in range(count)]
    ids = [worker_in(database, f"w{number}") for number in range(claimers)]
    start = threading.Barrier(claimers)

    def work(position: int) -> list[tuple[int, int]]:
        own = Database(database.url.render_as_string(hide_password=False))
        claimant, mine = Claimant(ids[position], f"w{position}", f"d{position}"), []
        start.wait()
        try:
            while True:
                with own.read() as session:
                    waiting = [job.id for job in jobs.queue(session, NOON, ["k"], [claimant.device])]
                if not waiting:
                    return mine
                number = claim_once(own, claimant, waiting)
                if number is None:
                    continue
                with own.write() as session:
                    job = jobs.step(session, number, lambda held: leases.finish(held, claimant.worker, held.attempt, "succeeded"), NOON)
                assert job is not None
                mine.append((number, job.lease.attempt))
        finally:
            own.close()

    with ThreadPoolExecutor(claimers) as pool:
        done = [item for found in pool.map(work, range(claimers)) for item in found]
    assert sorted(done) == [(number, 1) for number in numbers], "each claimed once"
    with database.read() as session:
        ends = session.execute(text("SELECT job_id FROM job_event WHERE kind = 'state' ORDER BY job_id, position")).scalars().all()
    assert sorted(ends) == sorted(numbers * 3), "queued, running and succeeded, once each"


def test_claimers_at_once_each_get_another_job(database: Database) -> None:
    raced(database, 4, 24)


@pytest.mark.soak
def test_eight_claimers_claim_four_hundred_jobs_once_each(database: Database) -> None:
    raced(database, 8, 400)


DEVICES, WORKERS = ("gpu0", "gpu1"), ("a", "b")


class Queue(RuleBasedStateMachine):
    """Any steps by several workers, with a clock that is set forward at will: the database and the pure machine always agree.

    Beside them stand rules that do not know the machine: a job ends once, a device runs one job, no job loses more than three workers.
    """

    database: Database

    @initialize()
    def begin(self) -> None:
        with self.database.write() as session:
            for table in ("job_event", "job", "worker"):
                session.execute(text(f"DELETE FROM {table}"))
        self.ids = {name: worker_in(self.database, name) for name in WORKERS}
        self.now = NOON
        self.model: dict[int, Lease] = {}
        self.granted: list[tuple[int, str, int]] = []  # job, worker, attempt: everything that anybody ever held
        self.holder: dict[int, tuple[str, int]] = {}  # kept by this test alone: who may report, and which attempt
        self.ends: dict[int, int] = {}

    @rule()
    def ask(self) -> None:
        if len(self.model) < 4:  # few, so that the same job is met again and again
            self.model[add(self.database)] = Lease()

    @rule(seconds=st.sampled_from([1, 9, 29, 30, 31, 700]), noticed=st.booleans())
    def time_passes(self, seconds: int, noticed: bool) -> None:
        self.now += timedelta(seconds=seconds)
        if noticed:
            self.is_reaped()

    @rule(name=st.sampled_from(WORKERS), device=st.sampled_from(DEVICES))
    def claims(self, name: str, device: str) -> None:
        free = all(not (lease.state == RUNNING and lease.device == device) for lease in self.model.values())
        ready = [number for number in sorted(self.model) if leases.claimable(self.model[number], self.now)]
        expected = ready[0] if ready and free else None
        got = claim_once(self.database, Claimant(self.ids[name], name, device), list(self.model), self.now)
        assert got == expected
        if got is not None:
            self.model[got] = leases.claim(self.model[got], self.ids[name], device, self.now, LEASE_S)
            self.granted.append((got, name, self.model[got].attempt))
            assert got not in self.holder, "somebody held it"
            self.holder[got] = (name, self.model[got].attempt)

    def follow(self, number: int, step: Callable[[Lease], Lease]) -> bool:
        """The same step in both; both take it, or both refuse it in the same way. Whether it was taken."""
        try:
            expected = step(self.model[number])
        except Conflict as refused:
            with pytest.raises(type(refused)), self.database.write() as session:
                jobs.step(session, number, step, self.now)
            return False
        with self.database.write() as session:
            jobs.step(session, number, step, self.now)
        self.model[number] = expected
        return True

    @precondition(lambda self: self.granted)
    @rule(data=st.data(), what=st.sampled_from(["renew", "succeeded", "failed", "released", "interrupted"]))
    def reports(self, data: st.DataObject, what: str) -> None:
        """Whoever ever held an attempt may come back and report it, however late."""
        self.report(*data.draw(st.sampled_from(self.granted)), what)

    @precondition(lambda self: self.holder)
    @rule(data=st.data(), what=st.sampled_from(["renew", "succeeded", "released"]))
    def comes_back_late(self, data: st.DataObject, what: str) -> None:
        """A worker is given up, takes up work again, perhaps the very same job, and then reports what it held before."""
        number = data.draw(st.sampled_from(sorted(self.holder)))
        name, attempt = self.holder[number]
        self.time_passes(31, noticed=True)
        for device in DEVICES:
            self.claims(name, device)
        self.report(number, name, attempt, what)

    def report(self, number: int, name: str, attempt: int, what: str) -> None:
        worker, now = self.ids[name], self.now

        def step(held: Lease) -> Lease:
            if what == "renew":
                return leases.renew(held, worker, attempt, now, LEASE_S)
            if what in ("released", "interrupted"):
                return leases.release(held, worker, attempt, now, what, pause=what == "interrupted")
            return leases.finish(held, worker, attempt, what)

        held = self.holder.get(number) == (name, attempt)
        assert self.follow(number, step) == held, "who holds it may report it, and nobody else"
        if held and what != "renew":
            del self.holder[number]
            self.ends[number] = self.ends.get(number, 0) + (what in ("succeeded", "failed"))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def is_cancelled(self, data: st.DataObject) -> None:
        self.follow(data.draw(st.sampled_from(sorted(self.model))), leases.cancel)  # a held job stays held

    @rule()
    def is_reaped(self) -> None:
        due = {number for number, lease in self.model.items() if lease.expired(self.now)}
        with self.database.read() as session:
            assert set(jobs.expired(session, self.now)) == due
        for number in due:
            assert self.follow(number, lambda held: leases.lose(held, "gone"))
            del self.holder[number]

    @invariant()
    def agree(self) -> None:
        with self.database.read() as session:
            stored = {job.id: job.lease for job in jobs.page(session, limit=500)}
        assert stored == self.model
        devices = [lease.device for lease in stored.values() if lease.state == RUNNING]
        assert len(devices) == len(set(devices))
        assert all(count <= 1 for count in self.ends.values())
        assert all(lease.lost_workers <= leases.MOST_LOST for lease in stored.values())
        assert {number for number, lease in stored.items() if lease.state == RUNNING} == set(self.holder)
        assert all((lease.worker is None) == (lease.state != RUNNING) for lease in stored.values())
        assert all(lease.not_before is None or lease.state in (QUEUED, *leases.ENDED) for lease in stored.values())


def steps(database: Database, examples: int, count: int) -> None:
    class Bound(Queue):
        pass

    Bound.database = database
    allowed = settings(
        max_examples=examples, stateful_step_count=count, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    run_state_machine_as_test(Bound, settings=allowed)


def test_any_steps_leave_the_queue_as_the_machine_says(database: Database) -> None:
    steps(database, 8, 25)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_steps_leave_the_queue_as_the_machine_says(database: Database) -> None:
    steps(database, 100, 40)
