"""A mergeable histogram on a logarithmic scale: percentiles of a hundred million values in a few kilobytes.

Each bin is 1 % wide and stands for its geometric middle, so a value read back is off by at most sqrt(1.01) - 1 = 0.4988 %.
Count, minimum, maximum, mean and standard deviation are exact, and so are the quantiles of EXACT as long as nothing was merged.
"""

import math
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import zstandard

from app.store.samples import known

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# The percentages whose quantiles are kept as they were.
EXACT = (
    0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
    70.0, 75.0, 80.0, 85.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.9, 99.95, 99.99,
)  # fmt: skip
_VERSION = 1
_BIN = math.log(1.01)
# Bin numbers of positive values are shifted above zero (ln of the smallest double over ln 1.01 is -74,816), so that one signed
# number orders negative values, zero and positive values: -(bin + shift), 0, bin + shift.
_SHIFT = 80_000
_SMALLEST = float(np.finfo(np.float64).smallest_subnormal)
_HEADER = struct.Struct("<BBQdddd")


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts by bin with exact moments. `squares` is the sum of squared deviations from the mean; `quantiles` go with EXACT.

    `bins` ascends, so walking it walks the values in order. Values keep their unit (seconds for a time).
    """

    count: int
    mean: float
    squares: float
    min: float
    max: float
    bins: Integers
    counts: Integers
    quantiles: tuple[float, ...] | None = None

    @classmethod
    def of(cls, values: Floats) -> "Histogram | None":
        """The histogram of the values that are known; None when there are none."""
        kept = known(values)
        if kept.size == 0:
            return None
        bins, counts = _tally(_bin_numbers(kept))
        mean = float(kept.mean())
        return cls(
            count=int(kept.size),
            mean=mean,
            squares=float(np.square(kept - mean).sum()),
            min=float(kept.min()),
            max=float(kept.max()),
            bins=bins,
            counts=counts,
            quantiles=tuple(float(value) for value in np.percentile(kept, EXACT)),
        )

    @property
    def std(self) -> float:
        """Standard deviation over all values (divided by n, not n - 1), in the unit of the values."""
        return math.sqrt(self.squares / self.count)

    def merge(self, other: "Histogram") -> "Histogram":
        """The histogram of both sets of values: counts add, moments combine (Chan, Golub, LeVeque 1983), kept quantiles are given up."""
        count = self.count + other.count
        difference = other.mean - self.mean
        bins, where = np.unique(np.concatenate((self.bins, other.bins)), return_inverse=True)
        counts = np.zeros(bins.size, dtype=np.int64)
        np.add.at(counts, where, np.concatenate((self.counts, other.counts)))
        return Histogram(
            count=count,
            mean=self.mean + difference * (other.count / count),
            squares=self.squares + other.squares + difference**2 * (self.count * (other.count / count)),
            min=min(self.min, other.min),
            max=max(self.max, other.max),
            bins=bins,
            counts=counts,
        )

    def percentile(self, percent: float) -> float:
        """The value below which `percent` (0 to 100) of the values lie, linear between closest ranks, within 0.5 % of the true one."""
        if not 0 <= percent <= 100:
            raise ValueError(f"a percentile lies between 0 and 100, not at {percent}")
        if self.quantiles is not None and percent in EXACT:
            return self.quantiles[EXACT.index(percent)]
        rank = (self.count - 1) * percent / 100
        below = self._value_at(math.floor(rank))
        above = self._value_at(math.ceil(rank))
        return below + (above - below) * (rank - math.floor(rank))

    def cdf(self) -> tuple[Floats, Floats]:
        """The cumulative distribution as two arrays: the middle of each bin, ascending, and the share of values up to that bin."""
        return np.array([self._middle(int(number)) for number in self.bins]), np.cumsum(self.counts) / self.count

    def to_bytes(self) -> bytes:
        """The histogram as a compressed blob that `from_bytes` reads."""
        kept = self.quantiles or ()
        head = _HEADER.pack(_VERSION, len(kept), self.count, self.mean, self.squares, self.min, self.max)
        body = struct.pack(f"<{len(kept)}d", *kept) + self.bins.astype("<i8").tobytes() + self.counts.astype("<i8").tobytes()
        return zstandard.ZstdCompressor().compress(head + body)

    @classmethod
    def from_bytes(cls, blob: bytes) -> "Histogram":
        """Read what `to_bytes` wrote. Raises ValueError for anything else."""
        raw = zstandard.ZstdDecompressor().decompress(blob)
        version, kept, count, mean, squares, low, high = _HEADER.unpack_from(raw)
        if version != _VERSION:
            raise ValueError(f"a histogram of version {version} is not known here")
        quantiles = struct.unpack_from(f"<{kept}d", raw, _HEADER.size)
        columns = np.frombuffer(raw, dtype="<i8", offset=_HEADER.size + 8 * kept).astype(np.int64)
        half = columns.size // 2
        return cls(count, mean, squares, low, high, columns[:half], columns[half:], quantiles or None)

    def _value_at(self, rank: int) -> float:
        """The value of the given rank (0 is the smallest), to within its bin; the ends are exact."""
        if rank <= 0:
            return self.min
        if rank >= self.count - 1:
            return self.max
        position = int(np.searchsorted(np.cumsum(self.counts), rank, side="right"))
        return self._middle(int(self.bins[position]))

    def _middle(self, number: int) -> float:
        if number == 0:
            return 0.0
        size = math.exp(min((abs(number) - _SHIFT + 0.5) * _BIN, 709.0))
        return min(max(math.copysign(size, number), self.min), self.max)


def _bin_numbers(values: Floats) -> Integers:
    # Zero has no logarithm; any stand-in will do, since its sign makes the product zero.
    logs = np.log(np.maximum(np.abs(values), _SMALLEST))
    numbers: Integers = (np.sign(values) * (np.floor(logs / _BIN) + _SHIFT)).astype(np.int64)
    return numbers


def _tally(numbers: Integers) -> tuple[Integers, Integers]:
    """The bin numbers that occur, ascending, and how often each does."""
    first = int(numbers.min())
    counts = np.bincount(numbers - first)
    occupied = np.flatnonzero(counts)
    return occupied.astype(np.int64) + first, counts[occupied].astype(np.int64)
