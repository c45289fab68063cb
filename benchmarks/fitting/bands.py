"""Ranges of predictions: where measurements of models lie that the fit has not seen, by class of question.

A class is what transfer errors were found to share: phase, and models with or without experts of a served load, 16-bit weights or narrower
ones of a single stream's decode. All engines of a class count together: bands of one engine's other models were narrower where they should
have been wide, since few engines have more than three models.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.asked import Asked
from benchmarks.fitting.fits import Fit, model_of

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

FEWEST_FOR_A_BAND = 12
# Quantiles whose band, made from the left-out rows of some models, holds about 90 % of those of another: 5 % and 95 % held 83 to 90 %.
EDGES = (0.03, 0.97)
WIDEST = (0.5, 2.0)  # where a class has too few rows


def band(ratios: Floats) -> tuple[float, float]:
    """The 90 % band of measured over predicted, to three digits; it holds 1 and 3 % around it in any case."""
    if len(ratios) < FEWEST_FOR_A_BAND:
        return WIDEST
    low, high = np.quantile(ratios, EDGES)
    return min(float(f"{low:.3g}"), 0.97), max(float(f"{high:.3g}"), 1.03)


@dataclass(frozen=True)
class Bands:
    """Left-out predictions of a fit, from which ranges come."""

    fit: Fit
    model_out: Floats

    @classmethod
    def of(cls, fit: Fit) -> "Bands":
        """Leave every model out once."""
        return cls(fit, fit.at(fit.left_out(model_of)))

    def ratios(self, places: Places, output: int, prefill: bool | None = None) -> Floats:
        """Measured over predicted of the left-out rows; of a stream the rows of one phase."""
        if prefill is not None:
            places = places[self.fit.rows.prefill[places] == prefill]
        ratio = self.fit.rows.measured[places, output] / self.model_out[places, output]
        found: Floats = ratio[np.isfinite(ratio)]
        return found

    def around(self, places: Places, output: int, prefill: bool | None = None) -> tuple[float, float]:
        """The range of an entry that stands for these rows: the band of their class, the widest where they are of several."""
        asked = self.fit.rows.asked
        mine = {class_of(asked[place], bool(prefill)) for place in places}
        found = [
            band(self.ratios(np.array([at for at, one in enumerate(asked) if class_of(one, bool(prefill)) == key]), output, prefill))
            for key in mine
        ]
        return min(low for low, _ in found), max(high for _, high in found)

    def held(self, output: int, mine: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Whether each row of `mine` (one class) lies in the band of the other left-out models of it: no row makes its own band."""
        asked = self.fit.rows.asked
        ratio = np.where(mine, self.fit.rows.measured[:, output] / self.model_out[:, output], np.nan)
        known = np.isfinite(ratio)
        models = [model_of(one) for one in asked]
        inside = np.zeros(len(asked), dtype=bool)
        for model in {models[place] for place in np.flatnonzero(known)}:
            its = np.array([one == model for one in models])
            low, high = band(ratio[known & ~its])
            inside |= its & (ratio >= low) & (ratio <= high)
        found: npt.NDArray[np.bool_] = inside[known]
        return found


def class_of(one: Asked, prefill: bool) -> Hashable:
    """What rows share a band with this one in a phase."""
    if one.measurement.kind != "stream":
        return one.experts
    return "prefill" if prefill else one.bits == "16bit"
