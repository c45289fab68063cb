"""The server's clock for leases and schedules, and a bell that wakes those who wait.

The clock is the wall clock of the start plus what the monotonic clock counted since: a wall clock that is set while we run moves no lease.
"""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from time import monotonic

_LOOK_EVERY_S = 0.1


class ServerClock:
    """UTC that only moves forward, one second a second."""

    def __init__(self) -> None:
        self._began, self._at = datetime.now(UTC), monotonic()

    def now(self) -> datetime:
        """The present moment."""
        return self._began + timedelta(seconds=monotonic() - self._at)


class Bell:
    """Rung by any thread when something about the jobs changed; waited for without holding a thread or a transaction.

    `closing` is set when the server is about to stop: whoever waits answers at once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.rung = 0
        self.closing = False

    def ring(self) -> None:
        """Something changed."""
        with self._lock:
            self.rung += 1

    def close(self) -> None:
        """The server stops."""
        self.closing = True

    async def wait(self, since: int, seconds: float) -> None:
        """Until it rang after `since` (a value of `rung`), the server stops, or the time is over."""
        until = monotonic() + seconds
        while self.rung == since and not self.closing and (left := until - monotonic()) > 0:
            await asyncio.sleep(min(_LOOK_EVERY_S, left))
