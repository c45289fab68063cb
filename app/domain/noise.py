"""How far repeats of one measurement lie apart: what a change must exceed before it counts.

The spread is the standard deviation between runs as a share of their mean, from successive differences (von Neumann and others, Annals of
Mathematical Statistics 12, 1941): sqrt(sum (x_i+1 - x_i)^2 / (2 (n - 1))). Under noise alone it is the ordinary one; a change of level on
the way adds to it once instead of in every run, so that a regression does not hide in the noise that it makes.
"""

from collections.abc import Sequence

import numpy as np

from app.domain.change_points import MOST, levels

FEWEST_REPEATS = 3
"""With fewer runs the spread between them is not known."""


def spread(values: Sequence[float]) -> float | None:
    """Spread of repeats in time order, as a share of their mean; None with fewer than three, or where one is not above 0."""
    data = np.asarray(values, dtype=np.float64)
    if data.size < FEWEST_REPEATS or not bool((np.isfinite(data) & (data > 0)).all()):
        return None
    differences = np.diff(data)
    return float(np.sqrt(np.sum(differences**2) / (2 * (data.size - 1))) / data.mean())


def spread_around(values: Sequence[float], index: int) -> float | None:
    """Spread of the level that the run at `index` belongs to; None where it has fewer than three runs, or one is not above 0."""
    first = max(0, len(values) - MOST)
    newest = values[first:]
    if index < first or any(not np.isfinite(value) or value <= 0 for value in newest):
        return None
    level = next(found for found in levels(newest) if found.start <= index - first < found.stop)
    return spread(newest[level])
