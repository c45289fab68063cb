"""The microbenchmark's products and moves by numpy, in fp32, on the processor this runs on."""

import time
from pathlib import Path

import numpy as np

from app.domain.device_rates import MoveKind
from app.worker.measure.bench import Call, clocked, gemv_rows

_CHUNK = 16_384  # elements of a triad's piece: three of them lie in the innermost cache
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_ELEMENT = 4


class NumpyBench:
    """numpy on the processor; its threads are those of its BLAS, pinned before it was loaded."""

    name = "numpy"
    version = np.__version__

    def __init__(self, device_name: str, memory_bytes: int | None, seed: int) -> None:
        self.device_name = device_name
        self.memory_bytes = memory_bytes
        self.cache_bytes = last_level_cache()
        self._random = np.random.default_rng(seed)

    def refusal(self, dtype: str) -> str | None:
        """numpy multiplies in fp32 here."""
        return None if dtype == "fp32" else f"numpy has no products in {dtype} that a device would be judged by."

    def product(self, dtype: str, m: int, n: int, k: int) -> Call:
        """BLAS product into a buffer that is there already."""
        a, b, out = self._filled(m, k), self._filled(k, n), np.empty((m, n), dtype=np.float32)
        return lambda: np.matmul(a, b, out=out)

    def move(self, what: MoveKind, dtype: str, size: int) -> tuple[Call, float]:
        """Reading is a scalar product with itself, which loads each element once."""
        if what == "gemv":
            rows, columns = gemv_rows(size, _ELEMENT)
            matrix, vector, out = self._filled(rows, columns), self._filled(columns), np.empty(rows, dtype=np.float32)
            return (lambda: np.matmul(matrix, vector, out=out)), float(matrix.nbytes)
        source = self._filled(size // _ELEMENT)
        if what == "read":
            return (lambda: np.dot(source, source)), float(source.nbytes)
        target = np.empty_like(source)
        if what == "copy":
            return (lambda: np.copyto(target, source)), 2.0 * source.nbytes
        return _triad(target, source, self._filled(source.size)), 3.0 * source.nbytes

    def times(self, call: Call, count: int) -> list[float]:
        """A call has finished when it returns."""
        return clocked(call, count)

    def queued(self, call: Call, count: int) -> float:
        """The mean of `count` calls in a row."""
        started = time.perf_counter_ns()
        for _ in range(count):
            call()
        return (time.perf_counter_ns() - started) / 1e9 / count

    def _filled(self, *shape: int) -> "np.typing.NDArray[np.float32]":
        values = self._random.random(shape, dtype=np.float32)
        values -= np.float32(0.5)
        return values


def _triad(target: "np.typing.NDArray[np.float32]", b: "np.typing.NDArray[np.float32]", c: "np.typing.NDArray[np.float32]") -> Call:
    """target = b + s·c piece by piece, so that the product in between stays in the cache."""
    pieces = [slice(start, start + _CHUNK) for start in range(0, target.size, _CHUNK)]
    between = np.empty(_CHUNK, dtype=np.float32)
    scale = np.float32(1.5)

    def call() -> None:
        for piece in pieces:
            part = c[piece]
            product = np.multiply(part, scale, out=between[: part.size])
            np.add(b[piece], product, out=target[piece])

    return call


def last_level_cache() -> int | None:
    """Bytes of the largest cache of the processor, None where the system does not say."""
    sizes = []
    for path in _CACHES.glob("index*/size"):
        text = path.read_text(encoding="ascii").strip()
        unit = {"K": 1024, "M": 1024**2, "G": 1024**3}.get(text[-1:])
        if unit is not None and text[:-1].isdigit():
            sizes.append(int(text[:-1]) * unit)
    return max(sizes, default=None)
