"""What a microbenchmark needs of a library of arithmetic: prepared products and moves that can be repeated, and their times.

Operands are random, never zeros: a device draws less power on zeros and so runs faster than it ever will on real weights.
"""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from app.domain.device_rates import MoveKind

Call = Callable[[], object]
# A move takes at least this many bytes, and at least four times the last-level cache.
LEAST_BUFFER = 256_000_000
CACHES = 4
MOST_ITERATIONS, FEWEST_ITERATIONS = 100, 5
_GEMV_COLUMNS = 4096
_LAUNCHED = 16


class Bench(Protocol):
    """One device through one library. `kind` is cpu or cuda; sizes are elements, `moved` bytes of one call."""

    name: str
    version: str
    device_name: str
    memory_bytes: int | None
    cache_bytes: int | None

    def refusal(self, dtype: str) -> str | None:
        """Why there is no product in this format here, None when there is."""

    def product(self, dtype: str, m: int, n: int, k: int) -> Call:
        """A product [m, k] x [k, n] on random operands, each call the same one."""

    def move(self, what: MoveKind, dtype: str, size: int) -> tuple[Call, float]:
        """A move over buffers of `size` bytes each, and the bytes that one call reads and writes."""

    def times(self, call: Call, count: int) -> list[float]:
        """Seconds of each of `count` calls, the device finished at the end of each."""

    def queued(self, call: Call, count: int) -> float:
        """Seconds of one call where `count` are issued one behind the other."""


def measure(bench: Bench, call: Call, seconds: float) -> list[float]:
    """Seconds of each call: FEWEST_ITERATIONS and on until `seconds` are over, MOST_ITERATIONS at most, after one as warm-up."""
    bench.times(call, 1)
    found = bench.times(call, FEWEST_ITERATIONS)
    while len(found) < MOST_ITERATIONS and sum(found) < seconds:
        left = (seconds - sum(found)) / (sum(found) / len(found))
        found += bench.times(call, int(min(max(left, 1), MOST_ITERATIONS - len(found))))
    return found


def launch_s(bench: Bench, dtype: str) -> float:
    """Seconds that a product too small to matter takes when many follow each other: what each product costs before it works."""
    call = bench.product(dtype, _LAUNCHED, _LAUNCHED, _LAUNCHED)
    bench.queued(call, MOST_ITERATIONS)
    return float(np.median([bench.queued(call, MOST_ITERATIONS) for _ in range(FEWEST_ITERATIONS)]))


def buffer_bytes(bench: Bench) -> int:
    """Bytes of a buffer that no cache holds."""
    return max(LEAST_BUFFER, CACHES * (bench.cache_bytes or 0))


def gemv_rows(size: int, element: int) -> tuple[int, int]:
    """Rows and columns of a matrix of about `size` bytes."""
    return max(size // (element * _GEMV_COLUMNS), 1), _GEMV_COLUMNS


def rates(amount: float, seconds: Sequence[float]) -> dict[str, float]:
    """`amount` per second over repeats: the best, the median, and what nine of ten reach."""
    values = amount / np.asarray(seconds)
    return {"best": float(values.max()), "median": float(np.median(values)), "p10": float(np.percentile(values, 10))}


def clocked(call: Call, count: int) -> list[float]:
    """Seconds of each of `count` calls that are finished when they return."""
    found = []
    for _ in range(count):
        started = time.perf_counter_ns()
        call()
        found.append((time.perf_counter_ns() - started) / 1e9)
    return found
