"""How much repeats of one measurement agree: the spread between the quartiles against the median.

    IQR / median <= 0.1  stable      <= 0.25  noisy      else  unusable

(the design's page on measuring, section 1.) The quartiles ignore the odd outlier, which a mean does not.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.domain.run import Floats

Verdict = Literal["stable", "noisy", "unusable"]
VERDICTS: tuple[Verdict, ...] = ("stable", "noisy", "unusable")
FEWEST = 3
_STABLE, _NOISY = 0.1, 0.25


@dataclass(frozen=True)
class Spread:
    """Repeats of one quantity: how many, their median, and the distance of the quartiles as a fraction of it."""

    n: int
    median: float
    iqr_share: float

    @property
    def verdict(self) -> Verdict:
        """What the repeats are worth."""
        return "stable" if self.iqr_share <= _STABLE else "noisy" if self.iqr_share <= _NOISY else "unusable"


def spread(values: Floats) -> Spread | None:
    """The spread of the finite values above 0; None below three of them, which tell nothing."""
    kept = values[np.isfinite(values) & (values > 0)]
    if kept.size < FEWEST:
        return None
    low, middle, high = (float(quantile) for quantile in np.percentile(kept, (25, 50, 75)))
    return Spread(int(kept.size), middle, (high - low) / middle)


def worst(*spreads: Spread | None) -> Verdict | None:
    """The worse of several verdicts; None when there is none."""
    found = [each.verdict for each in spreads if each is not None]
    return max(found, key=VERDICTS.index) if found else None
