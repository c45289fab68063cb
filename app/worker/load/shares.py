"""One load offered by several processes, for more events than one can read: each its own loop and connections, one common beginning.

The monotonic clock is one for all processes of a machine, so that stamps of the shares are put together as they are. A share is handed
over through a pipe (its key with it, which stands in no command line), is ready when its connections are open, and begins when all are.
"""

import asyncio
import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from time import perf_counter_ns
from typing import Any, NoReturn

import uvloop

from app.domain.errors import PhaselineError
from app.worker.load.columns import joined_columns
from app.worker.load.health import Watch, worst_of
from app.worker.load.link import Link, Unreachable, Way
from app.worker.load.offering import Load, Offered, Tell, offer

_LEAD_NS = 50_000_000


class ShareLost(PhaselineError):
    """A process of the load client ended before its load did."""


async def offer_in_shares(load: Load, way: Way, processes: int, tell: Tell) -> Offered:
    """Offer the load from so many processes. Raises Unreachable as one process does, ShareLost where one of them is ended from outside."""
    shares = [_Share(part, way) for part in load.split(processes)]
    counts = [0] * len(shares)

    def told(place: int) -> Tell:
        def tell_all(ended: int) -> None:
            counts[place] = ended
            tell(sum(counts))

        return tell_all

    try:
        for share in shares:
            await share.ready()
        start = perf_counter_ns() + _LEAD_NS
        for share in shares:
            share.begin(start)
        return _joined(await asyncio.gather(*(share.offered(told(place)) for place, share in enumerate(shares))))
    finally:
        for share in shares:
            share.end()


def _joined(parts: list[Offered]) -> Offered:
    return Offered(
        joined_columns([part.columns for part in parts]),
        worst_of([part.health for part in parts]),
        min(part.began for part in parts),
        (min(part.window_s[0] for part in parts), max(part.window_s[1] for part in parts)),
        any(part.given_up for part in parts),
        sum(part.late for part in parts),
    )


class _Share:
    """The parent's end of one process."""

    def __init__(self, load: Load, way: Way) -> None:
        # Not forked: a running loop, its threads and its sockets are nothing to inherit.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, load, way), daemon=True)
        self._process.start()
        theirs.close()

    async def ready(self) -> None:
        """Its connections are open."""
        await self._until("ready", lambda _: None)

    def begin(self, start: int) -> None:
        """Let it begin at a moment of perf_counter_ns."""
        self._pipe.send(start)

    async def offered(self, tell: Tell) -> Offered:
        """What it gave, at its end."""
        found: Offered = await self._until("offered", tell)
        return found

    def end(self) -> None:
        """Let it go, at once where it still works."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    async def _until(self, word: str, tell: Callable[[int], None]) -> Any:
        while True:
            try:
                said, value = await asyncio.to_thread(self._pipe.recv)
            except (EOFError, OSError):
                _lost()
            if said == "failed":
                raise Unreachable(value)
            if said == word:
                return value
            tell(value)


def _lost() -> NoReturn:
    raise ShareLost("A process of the load client was ended before its load was: look for a limit on memory or processes of this machine.")


def _serve(pipe: Pipe, load: Load, way: Way) -> None:
    """The whole life of a share's process."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            pipe.send(("offered", runner.run(_share(pipe, load, way))))
        except PhaselineError as error:
            pipe.send(("failed", str(error)))


async def _share(pipe: Pipe, load: Load, way: Way) -> Offered:
    async def moment() -> int:
        pipe.send(("ready", None))
        start: int = await asyncio.to_thread(pipe.recv)
        # Again where the loop's coarse clock wakes it early: nothing is sent before the start.
        while (wait := start - perf_counter_ns()) > 0:
            await asyncio.sleep(wait / 1e9)
        return start

    def tell(ended: int) -> None:
        try:
            pipe.send(("ended", ended))
        except OSError:
            os._exit(1)  # whoever asked for the load is gone

    watch = Watch()
    await watch.start()
    try:
        return await offer(load, Link.along(way), watch, tell, moment)
    finally:
        await watch.stop()
