"""The two ways to offer load: a closed loop of clients that each wait for their answer, and an open loop that keeps a schedule.

Both open their connections before the clock starts and send from callbacks, so that nothing stands between an answer and the next
request. A connection that the server closes is opened anew to the same checked address; a request that is lost on a kept connection
before any answer is sent once more. A point ends early where nothing succeeds any more.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from time import perf_counter_ns

from app.domain.errors import PhaselineError
from app.worker.load.connection import CLOSED_EARLY, Connection
from app.worker.load.exchange import Exchange
from app.worker.load.link import Link
from app.worker.load.supply import Answers, Supply

_NS = 1_000_000_000
_OPENED_AT_ONCE = 64
MOST_CONNECTIONS = 4096
FAILED_IN_A_ROW = 20
Moment = Callable[[], Awaitable[int]]
GIVEN_UP = "the point ended early: nothing succeeded any more"


async def now() -> int:
    """This moment."""
    return perf_counter_ns()


class _Loop(ABC):
    """What both share: requests on their way, their time limit, idle connections, and the end.

    `begins` is asked when all is ready, and gives the moment that counts as the start.
    """

    def __init__(self, link: Link, supply: Supply, timeout_s: float, begins: Moment = now) -> None:
        self._link, self._supply, self._timeout_s, self._begins = link, supply, timeout_s, begins
        self.answers = Answers()
        self.started = 0
        self.sent = 0
        self.ended = 0
        self.given_up = False
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[Connection] = set()
        self._failures = 0
        self._in_flight = 0
        self._over = asyncio.Event()

    async def run(self) -> None:
        """Offer the load until its end; every request that was sent is in `answers` then."""
        background = [asyncio.ensure_future(task) for task in (self._supply.keep(), self.answers.keep())]
        try:
            await self._offer()
        finally:
            for task in (*background, *self._tasks):
                task.cancel()
            for timer in self._timers.values():
                timer.cancel()
            for connection in self._connections:
                connection.close()
            await asyncio.gather(*background, *self._tasks, return_exceptions=True)

    @abstractmethod
    async def _offer(self) -> None:
        """Send what the load asks for, until it is over."""

    async def _opened(self, count: int) -> list[Connection]:
        """So many connections. Raises Unreachable for the first that cannot be opened."""
        found: list[Connection] = []
        while len(found) < count:
            some = min(_OPENED_AT_ONCE, count - len(found))
            found += await asyncio.gather(*(self._open() for _ in range(some)))
        return found

    async def _open(self) -> Connection:
        connection = await self._link.open(self._finished)
        self._connections.add(connection)
        return connection

    def _send(self, exchange: Exchange, connection: Connection | None) -> None:
        """Send now, or as soon as a new connection is there."""
        self._in_flight += 1
        self.sent += 1
        self._start(exchange, connection)

    def _start(self, exchange: Exchange, connection: Connection | None) -> None:
        if connection is not None and connection.open:
            loop = asyncio.get_running_loop()
            self._timers[id(exchange)] = loop.call_later(
                self._timeout_s, connection.abandon, exchange, f"no end within {self._timeout_s:g} s"
            )
            connection.send(exchange)
            return
        if connection is not None:
            self._connections.discard(connection)
        task = asyncio.ensure_future(self._reopened(exchange))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reopened(self, exchange: Exchange) -> None:
        try:
            connection = await self._open()
        except PhaselineError as error:
            exchange.sent = exchange.ended = perf_counter_ns()
            exchange.error = str(error)
            self._settled(exchange, None)
            return
        self._start(exchange, connection)

    def _finished(self, connection: Connection, exchange: Exchange) -> None:
        if (timer := self._timers.pop(id(exchange), None)) is not None:
            timer.cancel()
        lost = exchange.error == CLOSED_EARLY and not exchange.status
        if lost and connection.answered > 1 and not exchange.resent:
            exchange.resent, exchange.error = True, None
            self._start(exchange, connection)
            return
        self._settled(exchange, connection)

    def _settled(self, exchange: Exchange, connection: Connection | None) -> None:
        failed = exchange.error is not None or exchange.status != 200
        self._failures = self._failures + 1 if failed else 0
        if self._failures >= max(FAILED_IN_A_ROW, 2 * self._in_flight):
            self.given_up = True
        self._in_flight -= 1
        self.ended += 1
        self.answers.add(exchange)
        self._go_on(exchange, connection)
        if self._in_flight == 0 and self._complete():
            self._over.set()

    @abstractmethod
    def _go_on(self, exchange: Exchange, connection: Connection | None) -> None:
        """What follows an answer: the connection is free again, or None when it is lost."""

    @abstractmethod
    def _complete(self) -> bool:
        """Whether nothing more is to be sent."""


class ClosedLoop(_Loop):
    """`clients` requests in flight until `duration_s` have passed and `requests` were sent; clients start spread over `ramp_s`."""

    def __init__(
        self,
        link: Link,
        supply: Supply,
        clients: int,
        duration_s: float,
        requests: int,
        timeout_s: float,
        ramp_s: float = 0.0,
        begins: Moment = now,
    ) -> None:
        super().__init__(link, supply, timeout_s, begins)
        self._clients, self._duration_s, self._requests, self._ramp_s = clients, duration_s, requests, ramp_s
        self._waiting = clients
        self._end = 0

    async def _offer(self) -> None:
        self._supply.prepare(2 * self._clients)
        connections = await self._opened(self._clients)
        loop = asyncio.get_running_loop()
        self.started = await self._begins()
        self._end = self.started + round(self._duration_s * _NS)
        for index, connection in enumerate(connections):
            if self._ramp_s and index:
                loop.call_later(self._ramp_s * index / self._clients, self._begin, connection)
            else:
                self._begin(connection)
        await self._over.wait()

    def _begin(self, connection: Connection) -> None:
        self._waiting -= 1
        if self._more():
            self._send(self._supply.take(perf_counter_ns()), connection)
        elif self._complete() and self._in_flight == 0:
            self._over.set()

    def _go_on(self, exchange: Exchange, connection: Connection | None) -> None:
        if self._more():
            # Due the moment the last answer had ended: what passes until it is sent is this client's own delay.
            self._send(self._supply.take(exchange.ended), connection)

    def _more(self) -> bool:
        return not self.given_up and (self.sent < self._requests or perf_counter_ns() < self._end)

    def _complete(self) -> bool:
        return self._waiting == 0 and not self._more()


class OpenLoop(_Loop):
    """Requests due at `arrivals_s` from the start, whatever the server does; `ready` connections are open before it."""

    def __init__(
        self,
        link: Link,
        supply: Supply,
        arrivals_s: Sequence[float],
        ready: int,
        timeout_s: float,
        begins: Moment = now,
    ) -> None:
        super().__init__(link, supply, timeout_s, begins)
        self._arrivals = arrivals_s
        self._ready = ready
        self._idle: list[Connection] = []
        self._queue: list[Exchange] = []
        self._all_due = False

    async def _offer(self) -> None:
        self._supply.prepare(min(len(self._arrivals), 4 * self._ready))
        self._idle = await self._opened(min(self._ready, len(self._arrivals), MOST_CONNECTIONS))
        self.started = await self._begins()
        for offset in self._arrivals:
            due = self.started + round(offset * _NS)
            while (wait := due - perf_counter_ns()) > 0:
                await asyncio.sleep(wait / _NS)
            if self.given_up:
                break
            self._dispatch(self._supply.take(due))
        self._all_due = True
        if self._in_flight or self._queue:
            await self._over.wait()

    def _dispatch(self, exchange: Exchange) -> None:
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                self._send(exchange, connection)
                return
            self._connections.discard(connection)
        if self._in_flight < MOST_CONNECTIONS:
            self._send(exchange, None)
        else:
            self._queue.append(exchange)

    def _go_on(self, exchange: Exchange, connection: Connection | None) -> None:
        if self._queue and not self.given_up:
            self._send(self._queue.pop(0), connection)
        elif connection is not None and connection.open:
            self._idle.append(connection)
        elif connection is not None:
            self._connections.discard(connection)

    def _complete(self) -> bool:
        return self._all_due and (self.given_up or not self._queue)
