"""One load, offered by this process: what is asked for as plain data, and what came of it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.worker.load.columns import Columns, columns
from app.worker.load.health import Health, Watch
from app.worker.load.link import Link
from app.worker.load.loops import ClosedLoop, Moment, OpenLoop, now
from app.worker.load.prompts import Prompts
from app.worker.load.request import Asking
from app.worker.load.supply import Supply

_TELL_S = 0.5

Tell = Callable[[int], None]


@dataclass(frozen=True)
class Load:
    """`clients` in a closed loop, or requests at `arrivals_s` where clients is None; `words` are those of a prompt.

    Prompts come from `seed`, `stream` and `share`: two loads that differ in one of them share none.
    """

    asking: Asking
    words: int
    output_tokens: int
    timeout_s: float
    seed: int
    stream: int
    clients: int | None = None
    duration_s: float = 0.0
    requests: int = 0
    ramp_s: float = 0.0
    arrivals_s: tuple[float, ...] = ()
    ready: int = 0
    share: int = 0

    def split(self, parts: int) -> "list[Load]":
        """The same load in at most so many parts, each with its share of clients and requests or of the arrivals."""
        if self.clients is None:
            parts = max(min(parts, len(self.arrivals_s)), 1)
            return [
                replace(self, share=part, arrivals_s=self.arrivals_s[part::parts], ready=-(-self.ready // parts)) for part in range(parts)
            ]
        parts = max(min(parts, self.clients), 1)
        clients = [self.clients // parts + (part < self.clients % parts) for part in range(parts)]
        return [
            replace(self, share=part, clients=mine, requests=-(-self.requests * mine // self.clients)) for part, mine in enumerate(clients)
        ]


@dataclass(frozen=True)
class Offered:
    """What a load gave. `began` is Unix seconds, `window_s` seconds of the monotonic clock; `late` requests were made when due already."""

    columns: Columns
    health: Health
    began: float
    window_s: tuple[float, float]
    given_up: bool
    late: int


async def offer(load: Load, link: Link, watch: Watch, tell: Tell, moment: Moment = now) -> Offered:
    """Open connections, begin at `moment` (perf_counter_ns), and offer the load to its end; `tell` hears the answers so far.

    Raises Unreachable where no connection can be opened.
    """
    supply = Supply(Prompts(load.seed, load.stream, load.share), load.asking.template(load.output_tokens), load.words)
    began = opened = 0.0

    async def begins() -> int:
        nonlocal began, opened
        start = await moment()
        watch.mark()
        began, opened = time.time(), time.monotonic()
        return start

    loop = _loop(load, link, supply, begins)
    telling = asyncio.ensure_future(_telling(loop, tell))
    try:
        await loop.run()
    finally:
        telling.cancel()
    ended = time.monotonic()
    busy = watch.health_of_loop()
    found = columns(loop.answers.finish(), loop.started, load.clients is None)
    health = busy.with_events(found.events, found.coalesced, found.dispatch_s)
    return Offered(found, health, began, (opened, ended), loop.given_up, supply.late)


def _loop(load: Load, link: Link, supply: Supply, begins: Moment) -> ClosedLoop | OpenLoop:
    if load.clients is None:
        return OpenLoop(link, supply, load.arrivals_s, load.ready, load.timeout_s, begins)
    return ClosedLoop(link, supply, load.clients, load.duration_s, load.requests, load.timeout_s, load.ramp_s, begins)


async def _telling(loop: ClosedLoop | OpenLoop, tell: Tell) -> None:
    while True:
        tell(loop.ended)
        await asyncio.sleep(_TELL_S)
