"""A histogram of a Prometheus client: counts up to fixed bounds, their number and their sum; and the quantiles those allow.

The mean is exact (sum / count). A quantile lies somewhere in one bucket: it is interpolated linearly between the bucket's bounds (from 0
in the first), as PromQL's histogram_quantile does. That takes observations for evenly spread within the bucket; where the exact sum rules
that out, and beyond the last bound, the quantile is not known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, isclose

# Counts are whole; differences of doubles beyond 2**53 are not exactly so.
_SAME_COUNT = 1e-9


@dataclass(frozen=True)
class Histogram:
    """Observations between two scrapes. `cumulative` is ((upper bound, observations up to it), …), ascending, without +Inf.

    Empty where the bounds of several servers differ or the counts contradict each other: then only the mean is known.
    """

    count: float
    total: float
    cumulative: tuple[tuple[float, float], ...] = ()

    @property
    def mean(self) -> float | None:
        """Sum / count; None when nothing was observed."""
        return self.total / self.count if self.count > 0 else None

    def bucket(self, q: float) -> tuple[float, float] | None:
        """The bounds (low, high) between which the quantile `q` (0 to 1) lies; None beyond the last bound."""
        found = self._find(q)
        return None if found is None else (found.low, found.high)

    def quantile(self, q: float) -> float | None:
        """The quantile `q` (0 to 1), interpolated in its bucket; None beyond the last bound, and where the sum rules it out."""
        found = self._find(q)
        if found is None or not self._may_be_even(found):
            return None
        return found.low + (found.high - found.low) * min(1.0, (q * self.count - found.before) / found.size)

    def saturated(self, q: float) -> bool:
        """Whether the quantile lies beyond the last bound, of a histogram that has bounds."""
        return bool(self.cumulative) and self.count > 0 and self._find(q) is None

    def up_to(self, bound: float) -> float | None:
        """Observations up to `bound`, None where no bucket ends there."""
        return next((until for upper, until in self.cumulative if upper == bound), None)

    def without_zeros(self, zeros: float) -> "Histogram":
        """The same without `zeros` observations of 0 that mean "no value": they add nothing to the sum and lie in every bucket."""
        if zeros <= 0:
            return self
        kept = tuple((bound, until - zeros) for bound, until in self.cumulative)
        return replace(self, count=self.count - zeros, cumulative=kept)

    def _buckets(self) -> list["_Bucket"]:
        """The buckets that hold anything, the one without an upper bound last."""
        edges = [(0.0, 0.0), *self.cumulative, (inf, self.count)]
        return [_Bucket(low, high, before, until) for (low, before), (high, until) in pairwise(edges) if until > before]

    def _find(self, q: float) -> "_Bucket | None":
        rank = q * self.count * (1 - _SAME_COUNT)
        found = next((bucket for bucket in self._buckets() if bucket.until >= rank), None) if self.cumulative else None
        return None if found is None or found.high == inf else found

    def _may_be_even(self, bucket: "_Bucket") -> bool:
        """Whether the sum leaves room for the half of the bucket above its middle, and does not ask for more than its two halves hold.

        Of all other observations no more is known than the bounds of their buckets.
        """
        others = [other for other in self._buckets() if other != bucket]
        least, most = sum(other.low * other.size for other in others), sum(other.high * other.size for other in others)
        half, middle = bucket.size / 2, (bucket.low + bucket.high) / 2
        return least + half * (bucket.low + middle) <= self.total <= most + half * (middle + bucket.high)


@dataclass(frozen=True)
class _Bucket:
    """Observations above `low` up to `high`: the ranks from `before` to `until`."""

    low: float
    high: float
    before: float
    until: float

    @property
    def size(self) -> float:
        return self.until - self.before


def cumulative_counts(buckets: Mapping[float, float], count: float) -> tuple[tuple[float, float], ...]:
    """Counts by upper bound in order, without +Inf. Empty where they fall, or do not end at `count`: no quantile follows from those."""
    ordered = sorted(buckets.items())
    rising = all(low[1] <= high[1] for low, high in pairwise(ordered))
    finite = tuple((bound, until) for bound, until in ordered if bound != inf)
    top = buckets.get(inf, count)
    if not finite or not rising or not isclose(top, count, rel_tol=_SAME_COUNT) or finite[0][1] < 0:
        return ()
    return finite
