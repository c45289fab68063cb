"""Where the level of a series of figures changed, for good or for a while, told from noise between runs.

The statistic is that of circular binary segmentation (Olshen, Venkatraman, Lucito and Wigler, Biostatistics 5, 2004): over all stretches
(i, j], the standardised difference between the mean of the stretch and the mean of the rest,

    T = max |S_j - S_i - (j - i) mean| / (sd sqrt((j - i) (n - j + i) / n))

taken on logarithms, since what counts between runs is a factor and their noise is skewed. A stretch counts when its T is above the value
that noise exceeds with the chance FALSE_ALARMS; each part is then searched again, so in pure noise the chance of any change point at all
is FALSE_ALARMS. Under normal noise T depends on n alone: its bounds were drawn once, 20,000 series for each n (`python -m
benchmarks.change_points`). A stretch or what is left of it is never shorter than SHORTEST: one or two runs are no level, and where
they stand out more than any level would, they are left out of the search.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FALSE_ALARMS = 0.01
"""Chance that a series of pure noise shows any change point."""
SHORTEST = 3
"""Runs that make a level."""
FEWEST = 8
"""With fewer runs a level cannot be told from noise."""
MOST = 200
"""Runs looked at; the newest count."""
# n -> T that noise exceeds with the chance FALSE_ALARMS; between two entries that of the larger n holds, which is a little stricter.
BOUNDS = MappingProxyType(
    {
        8: 2.509, 9: 2.627, 10: 2.717, 11: 2.827, 12: 2.908, 13: 2.981, 14: 3.044, 15: 3.092, 16: 3.165, 17: 3.211,
        18: 3.254, 19: 3.308, 20: 3.332, 21: 3.387, 22: 3.394, 23: 3.441, 24: 3.468, 25: 3.485, 26: 3.507, 27: 3.54,
        28: 3.555, 29: 3.571, 30: 3.574, 35: 3.693, 40: 3.741, 45: 3.835, 50: 3.859, 55: 3.926, 60: 3.949, 70: 4.009,
        80: 4.079, 90: 4.112, 100: 4.18, 125: 4.252, 150: 4.313, 175: 4.372, 200: 4.402,
    }
)  # fmt: skip


def change_points(values: Sequence[float]) -> tuple[int, ...]:
    """Indices at which a new level begins, ascending; empty where nothing can be told from noise.

    `values` are figures above 0 in time order, at most MOST of them. Raises ValueError for any other.
    """
    data = np.asarray(values, dtype=np.float64)
    if data.size > MOST or not bool((np.isfinite(data) & (data > 0)).all()):
        raise ValueError(f"change points are looked for in at most {MOST} finite figures above 0")
    return tuple(sorted(_split(np.log(data), np.arange(data.size))))


def levels(values: Sequence[float]) -> tuple[slice, ...]:
    """The stretches between change points, in order; one for the whole where there is none."""
    edges = (0, *change_points(values), len(values))
    return tuple(slice(start, end) for start, end in pairwise(edges) if end > start)


def _split(data: Floats, places: npt.NDArray[np.int64]) -> set[int]:
    """Change points of a stretch whose figures stand at `places` of the whole."""
    n = data.size
    if n < FEWEST or np.ptp(data) == 0:
        return set()
    found = statistics(data[None, :])[0]
    best = int(np.argmax(found))
    wild = _wild(data, max(float(found[best]), _bound(n)))
    if wild is not None:
        return _split(np.delete(data, wild), np.delete(places, wild))
    if found[best] <= _bound(n):
        return set()
    start, end = (int(edge[best]) for edge in _stretches(n))
    edges = {edge for edge in (start, end) if 0 < edge < n}
    cuts = (0, *sorted(edges), n)
    points = {int(places[edge]) for edge in edges}
    for left, right in pairwise(cuts):
        points |= _split(data[left:right], places[left:right])
    return points


def _wild(data: Floats, level: float) -> slice | None:
    """The one or two neighbours that stand out more than any stretch long enough for a level does, and than noise: to be left out."""
    n = data.size
    sums = np.concatenate(([0.0], np.cumsum(data - data.mean())))
    spread = float(data.std())
    best, found = level, None
    for length in range(1, SHORTEST):
        apart = np.abs(sums[length:] - sums[:-length]) / (spread * np.sqrt(length * (n - length) / n))
        place = int(np.argmax(apart))
        if apart[place] > best:
            best, found = float(apart[place]), slice(place, place + length)
    return found


def _bound(n: int) -> float:
    return BOUNDS[next(size for size in BOUNDS if size >= n)]


@lru_cache(maxsize=MOST + 1)
def _stretches(n: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Begin and end of every stretch that leaves SHORTEST runs or none on each side, itself neither shorter nor the whole."""
    edges = [0, *range(SHORTEST, n - SHORTEST + 1), n]
    pairs = [(start, end) for start in edges for end in edges if SHORTEST <= end - start <= n - SHORTEST]
    found = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def statistics(rows: Floats) -> Floats:
    """T of every stretch, for each row of figures that are not all equal: shape (rows, stretches)."""
    n = rows.shape[1]
    start, end = _stretches(n)
    sums = np.concatenate((np.zeros((rows.shape[0], 1)), np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)), axis=1)
    length = (end - start).astype(np.float64)
    spread = rows.std(axis=1, keepdims=True) * np.sqrt(length * (n - length) / n)
    found: Floats = np.abs(sums[:, end] - sums[:, start]) / spread
    return found
