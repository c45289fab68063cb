"""Whether the client itself was fast enough: how long a ready event waits to be read, and how much of a processor the client used.

The lag cannot be seen from inside: a loop that is busy reads its own clock late as well. So a small process writes its clock into a
pipe every few milliseconds; the two share one monotonic clock, and the age of what arrives is the lag that an answer had, too.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter_ns, process_time_ns

import numpy as np

from app.domain.run import Floats

LAG_SHARE = 0.1
CPU_SHARE = 0.7
_PERIOD_S = 0.005
_TICKER = """
import os, struct, sys, time
period, pack, now = float(sys.argv[1]), struct.Struct("=q").pack, time.perf_counter_ns
try:
    while True:
        time.sleep(period)
        os.write(1, pack(now()))
except (BrokenPipeError, KeyboardInterrupt):
    pass
"""


@dataclass(frozen=True)
class Health:
    """The client during a point, in seconds and shares; None where it was not seen.

    `coalesced_share` is that of events which shared a read with an earlier one of their answer; `dispatch_p99_s` is how long a request
    that was due waited in the client. Of several `processes`, shares and waits are those of the worst one, the rest are sums.
    """

    cpu_share: float
    cpu_s: float
    lag_p50_s: float | None
    lag_p99_s: float | None
    events: int = 0
    coalesced_share: float | None = None
    dispatch_p99_s: float | None = None
    processes: int = 1

    @property
    def busy(self) -> bool:
        """Whether a process of the client had little of its core left."""
        return self.cpu_share > CPU_SHARE

    def with_events(self, events: int, coalesced: int, dispatch_s: Floats) -> "Health":
        """The same with how many events there were, how many shared a read, and how long due requests waited."""
        waits = dispatch_s[np.isfinite(dispatch_s)]
        share = coalesced / events if events else None
        return replace(self, events=events, coalesced_share=share, dispatch_p99_s=float(np.percentile(waits, 99)) if waits.size else None)

    def limited(self, itl_s: float | None) -> str | None:
        """Why the client was at its limit, as a sentence; None where it was not."""
        if self.busy:
            return f"The load client used {self.cpu_share:.0%} of a processor core: measure with less load, or from a faster machine."
        if self.lag_p99_s is not None and itl_s is not None and self.lag_p99_s > LAG_SHARE * itl_s:
            return (
                f"Events waited up to {self.lag_p99_s * 1e3:.3g} ms (p99) in the load client, more than a tenth of the ITL of "
                f"{itl_s * 1e3:.3g} ms: gaps between tokens hold waits of the client."
            )
        return None


def worst_of(parts: Sequence[Health]) -> Health:
    """The health of a client of several processes; at least one."""
    events = sum(part.events for part in parts)
    coalesced = sum(part.coalesced_share * part.events for part in parts if part.coalesced_share is not None)
    return Health(
        cpu_share=max(part.cpu_share for part in parts),
        cpu_s=sum(part.cpu_s for part in parts),
        lag_p50_s=_most([part.lag_p50_s for part in parts]),
        lag_p99_s=_most([part.lag_p99_s for part in parts]),
        events=events,
        coalesced_share=coalesced / events if events else None,
        dispatch_p99_s=_most([part.dispatch_p99_s for part in parts]),
        processes=sum(part.processes for part in parts),
    )


def _most(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


class _Pipe(asyncio.Protocol):
    def __init__(self) -> None:
        self.lags: list[int] = []
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        now = perf_counter_ns()
        data = self._rest + data
        whole = len(data) // 8 * 8
        self.lags.extend((now - np.frombuffer(data[:whole], dtype=np.int64)).tolist())
        self._rest = data[whole:]


class Watch:
    """Watches the loop it is started in. `start` once, `mark` at the beginning of a point, `health_of_loop` at its end, `stop` once."""

    def __init__(self) -> None:
        self._pipe = _Pipe()
        self._transport: asyncio.BaseTransport | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._wall = self._cpu = 0

    async def start(self) -> None:
        """Start the ticking process; the pipe's end closes with this process, and the ticker with it."""
        reading, writing = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", "-c", _TICKER, str(_PERIOD_S), stdout=writing, stdin=asyncio.subprocess.DEVNULL
            )
        finally:
            os.close(writing)
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: self._pipe, os.fdopen(reading, "rb", 0))

    async def stop(self) -> None:
        """End the ticking process."""
        if self._transport is not None:
            self._transport.close()
        if self._process is not None:
            if self._process.returncode is None:
                self._process.kill()
            await self._process.wait()

    def mark(self) -> None:
        """The point begins now."""
        self._pipe.lags.clear()
        self._wall, self._cpu = perf_counter_ns(), process_time_ns()

    def health_of_loop(self) -> Health:
        """What the client did since the mark; `with_events` adds what is known once the answers are read."""
        wall, cpu = perf_counter_ns() - self._wall, process_time_ns() - self._cpu
        lags = np.array(self._pipe.lags, dtype=np.float64) / 1e9
        return Health(
            cpu_share=cpu / wall if wall else 0.0,
            cpu_s=cpu / 1e9,
            lag_p50_s=float(np.median(lags)) if lags.size else None,
            lag_p99_s=float(np.percentile(lags, 99)) if lags.size else None,
        )
