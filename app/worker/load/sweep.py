"""Points of a sweep one after another: probe, then for each point warm-up, scrape, load, scrape.

A staircase doubles the load from the last level given until the answered rate grows by less than a tenth: the knee is the level before.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace

from app.domain.run import RequestSamples
from app.jobs.endpoint_sweep import EndpointSweep
from app.worker.load.arrivals import poisson, trace
from app.worker.load.columns import columns
from app.worker.load.health import Watch
from app.worker.load.link import Link
from app.worker.load.loops import ClosedLoop
from app.worker.load.offering import Load, Offered, offer
from app.worker.load.point import Deployment, Measured, Shape
from app.worker.load.probe import Probed, probe
from app.worker.load.prompts import Prompts, TokensPerWord
from app.worker.load.request import Asking
from app.worker.load.scrape import difference, scrape
from app.worker.load.shares import offer_in_shares
from app.worker.load.supply import Supply

METHOD = "phaseline-load/1"
GROWTH = 1.1
MOST_CLIENTS, MOST_RATE = 4096, 100_000.0
_READY = 8
# What the server counts after its last byte is sent needs a moment to be in its metrics.
_SETTLE_S = 0.2

Tell = Callable[[Shape, int, float], None]


@dataclass(frozen=True)
class Knee:
    """Where throughput stops growing: the last level that still gained, and what the next one gave (requests per second)."""

    shape: Shape
    requests_per_s: float
    beyond_per_s: float


def shapes(parameters: EndpointSweep) -> Iterator[Shape]:
    """The points as asked, in order: shapes outside, levels of load inside."""
    for prompt in parameters.prompt_tokens:
        for output in parameters.output_tokens:
            yield from (Shape(prompt, output, concurrency=clients) for clients in parameters.concurrency)
            yield from (Shape(prompt, output, rate_per_s=rate) for rate in parameters.rates_per_s)
            if parameters.arrivals_s:
                yield Shape(prompt, output, traced=True)


class Sweep:
    """A sweep of one server. `tell` is called now and then with the point, its answers so far and the seconds it has taken."""

    def __init__(self, parameters: EndpointSweep, asking: Asking, link: Link, tell: Tell) -> None:
        self._asked, self._asking, self._link, self._tell = parameters, asking, link, tell
        self._stream = 0
        self._processes = parameters.processes or 1
        self.knees: list[Knee] = []

    async def probed(self) -> Probed:
        """How the server wants to be asked. Raises ServerRefused or Unreachable where it cannot be measured at all."""
        return await probe(self._link, self._asking, self._asked.seed, self._asked.timeout_s)

    async def points(self, probed: Probed) -> AsyncIterator[Measured]:
        """Each point when it is done."""
        watch = Watch()
        await watch.start()
        try:
            last: Measured | None = None
            for shape in shapes(self._asked):
                if last is not None and self._asked.find_knee and _other_length(last.shape, shape):
                    async for found in self._climb(last, probed, watch):
                        yield found
                last = await self._point(shape, probed, watch)
                yield last
            if last is not None and self._asked.find_knee:
                async for found in self._climb(last, probed, watch):
                    yield found
        finally:
            await watch.stop()

    async def _climb(self, last: Measured, probed: Probed, watch: Watch) -> AsyncIterator[Measured]:
        """Further steps of the staircase, each twice the load of the one before."""
        while (shape := _doubled(last.shape)) is not None:
            found = await self._point(shape, probed, watch)
            yield found
            before, after = _answered_per_s(last), _answered_per_s(found)
            if after < GROWTH * before:
                self.knees.append(Knee(last.shape, before, after))
                return
            last = found

    async def _point(self, shape: Shape, probed: Probed, watch: Watch) -> Measured:
        """A point, measured anew from twice as many processes where one had no time left, as long as there are cores."""
        while True:
            found = await self._once(shape, probed, watch)
            further = min(2 * self._processes, most_processes(), shape.concurrency or MOST_CLIENTS)
            if self._asked.processes or not found.health.busy or further <= self._processes:
                return found
            self._processes = further

    async def _once(self, shape: Shape, probed: Probed, watch: Watch) -> Measured:
        asked = self._asked
        words = (probed.words or TokensPerWord()).words(shape.prompt_tokens)
        arrivals = self._arrivals(shape)
        warm = await self._warm_up(Supply(self._prompts(), probed.asking.template(shape.output_tokens), words), shape)
        before = await scrape(self._link, probed.asking)
        self._stream += 1
        load = Load(probed.asking, words, shape.output_tokens, asked.timeout_s, asked.seed, self._stream)
        if shape.concurrency is None:
            load = replace(load, arrivals_s=arrivals, ready=_connections_for(arrivals, warm))
        else:
            load = replace(load, clients=shape.concurrency, duration_s=asked.duration_s, requests=asked.min_requests, ramp_s=asked.ramp_s)
        offered = await self._offered(load, shape, watch)
        await asyncio.sleep(_SETTLE_S if before is not None else 0)
        after = await scrape(self._link, probed.asking) if before is not None else None
        return Measured(shape, _deployment(asked), offered, probed, warm, difference(before, after))

    async def _offered(self, load: Load, shape: Shape, watch: Watch) -> Offered:
        opened = time.monotonic()

        def tell(ended: int) -> None:
            self._tell(shape, ended, time.monotonic() - opened)

        if self._processes == 1:
            return await offer(load, self._link, watch, tell)
        return await offer_in_shares(load, self._link.way, self._processes, tell)

    async def _warm_up(self, supply: Supply, shape: Shape) -> RequestSamples | None:
        """Requests of the point's shape that count for nothing but their own record; None where none are asked for."""
        clients = shape.concurrency or _READY
        requests = self._asked.warmup_requests * (shape.concurrency or 1)
        if not requests:
            return None
        loop = ClosedLoop(self._link, supply, min(clients, requests), 0.0, requests, self._asked.timeout_s)
        await loop.run()
        return columns(loop.answers.finish(), loop.started, False).samples

    def _arrivals(self, shape: Shape) -> tuple[float, ...]:
        asked = self._asked
        if shape.traced:
            return trace(asked.arrivals_s)
        if shape.rate_per_s is None:
            return ()
        return poisson(shape.rate_per_s, asked.duration_s, asked.min_requests, asked.seed, self._stream)

    def _prompts(self) -> Prompts:
        self._stream += 1
        return Prompts(self._asked.seed, self._stream)


def most_processes() -> int:
    """Processes that can read at the same time: as many as this one may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _deployment(asked: EndpointSweep) -> Deployment:
    return Deployment(asked.model, asked.hardware, asked.devices, asked.engine, asked.weight_dtype)


def _other_length(one: Shape, other: Shape) -> bool:
    return (one.prompt_tokens, one.output_tokens) != (other.prompt_tokens, other.output_tokens)


def _doubled(shape: Shape) -> Shape | None:
    """The same with twice the load; None beyond what one client can offer, and for a trace."""
    if shape.concurrency is not None:
        return replace(shape, concurrency=2 * shape.concurrency) if 2 * shape.concurrency <= MOST_CLIENTS else None
    if shape.rate_per_s is not None:
        return replace(shape, rate_per_s=2 * shape.rate_per_s) if 2 * shape.rate_per_s <= MOST_RATE else None
    return None


def _answered_per_s(measured: Measured) -> float:
    done = int(measured.offered.columns.samples.ok.sum())
    return done / measured.offered.columns.ended_s if measured.offered.columns.ended_s > 0 else 0.0


def _connections_for(arrivals: tuple[float, ...], warm: RequestSamples | None) -> int:
    """Connections to open before the clock: twice what Little's law says of the warm-up's latency, and some."""
    if warm is None or not warm.ok.any() or len(arrivals) < 2 or arrivals[-1] <= 0:
        return _READY
    rate = len(arrivals) / arrivals[-1]
    return _READY + round(2 * rate * float(warm.e2e_s[warm.ok].max()))
