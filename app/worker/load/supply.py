"""What stands on either side of the clock: requests made ready before they are due, and answers read after they came."""

import asyncio
from collections import deque

from app.worker.load.events import Reply, reading
from app.worker.load.exchange import Exchange
from app.worker.load.prompts import Prompts
from app.worker.load.request import Template

_AHEAD = 64
# Up to here answers wait unread until the point has ended; beyond, they are read in small steps between the events.
HELD_BYTES = 64 * 1024 * 1024


class Supply:
    """Requests of one shape, each with a prompt of its own. `late` counts those that had to be made when they were due already."""

    def __init__(self, prompts: Prompts, template: Template, words: int) -> None:
        self._prompts, self._template, self._words = prompts, template, words
        self._ready: deque[bytes] = deque()
        self._low = asyncio.Event()
        self.late = 0

    def prepare(self, count: int) -> None:
        """Make so many ready now."""
        while len(self._ready) < count:
            self._ready.append(self._made())

    def take(self, scheduled: int) -> Exchange:
        """The next request, due at `scheduled` (perf_counter_ns)."""
        if len(self._ready) <= _AHEAD:
            self._low.set()
        if not self._ready:
            self.late += 1
            return Exchange(self._made(), scheduled)
        return Exchange(self._ready.popleft(), scheduled)

    async def keep(self) -> None:
        """Make more whenever few are left, one a round of the loop, until cancelled."""
        while True:
            await self._low.wait()
            self._low.clear()
            while len(self._ready) < 2 * _AHEAD:
                self._ready.append(self._made())
                await asyncio.sleep(0)

    def _made(self) -> bytes:
        return self._template.filled(self._prompts.next(self._words))


class Answers:
    """Exchanges that have ended, with their replies in the order of their ends once `finish` was called."""

    def __init__(self, held_bytes: int = HELD_BYTES) -> None:
        self._most = held_bytes
        self._held = 0
        self._unread: deque[tuple[Exchange, int]] = deque()
        self._many = asyncio.Event()
        self.read: list[tuple[Exchange, Reply]] = []

    def add(self, exchange: Exchange) -> None:
        """One more that has ended. Its request is let go: what was sent is known by its shape."""
        exchange.data = b""
        size = sum(map(len, exchange.pieces))
        self._unread.append((exchange, size))
        self._held += size
        if self._held > self._most:
            self._many.set()

    async def keep(self) -> None:
        """Read answers in small steps whenever too many bytes of them are held, until cancelled."""
        while True:
            await self._many.wait()
            self._many.clear()
            while self._held > self._most // 2:
                exchange, size = self._unread.popleft()
                reply = Reply()
                self.read.append((exchange, reply))
                for _ in reading(exchange, reply):
                    await asyncio.sleep(0)
                self._held -= size

    def finish(self) -> list[tuple[Exchange, Reply]]:
        """Read what is left and give all."""
        for exchange, _ in self._unread:
            reply = Reply()
            self.read.append((exchange, reply))
            for _ in reading(exchange, reply):
                pass
        self._unread.clear()
        self._held = 0
        return self.read
