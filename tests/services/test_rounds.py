"""Work in rounds: it goes on after a failure, and is never left behind by an end."""

import asyncio
import threading

import pytest
from structlog.testing import capture_logs

from app.services.rounds import in_rounds
from app.store.database import DatabaseBusy


def test_a_round_that_has_begun_ends_before_its_task_does() -> None:
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        may_end.wait(10)
        ended.set()

    async def cancelled() -> bool:
        task = asyncio.create_task(in_rounds(work, 0.0, "failed"))
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ended.is_set()

    assert asyncio.run(cancelled())


def test_failures_are_said_once_until_it_works_again() -> None:
    busy = iter([True, True, False, True])
    done = threading.Event()

    def work() -> None:
        fails = next(busy, None)
        if fails:
            raise DatabaseBusy("busy")
        if fails is None:
            done.set()

    async def until_done() -> None:
        task = asyncio.create_task(in_rounds(work, 0.0, "it failed"))
        await asyncio.to_thread(done.wait, 10)
        task.cancel()
        await asyncio.wait([task])

    with capture_logs() as logs:
        asyncio.run(until_done())
    assert [entry["event"] for entry in logs] == ["it failed"] * 2
    assert logs[0]["error"] == "DatabaseBusy"
