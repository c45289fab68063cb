"""What the factors of a calibration leave: the error at its measured points, carried to questions near them.

Five factors move rates and fixed times; how an engine's waits and kernels bend over load and length they do not tell, and neighbours share
it. So the logarithm of measured over predicted is interpolated with a Gaussian process of mean 0 (kriging):

    f(q) = Σ w_i·k(q, i)     k = S²·(1 + d)·exp(-d)·(1 for the same model, M for another)     d = √3·sqrt(Σ (x/D)²)
    w = (K + diag(N²/g))^-1·r

with x in doublings of clients, prompt, answer, cached prefix, devices, stages and expert ranks, r the points' own logarithms and g
Student's weights, so that one wild run pulls little. S, D and M are what the published measurements' own remainders show, D of a phase
and a direction: another placement is another story after fewer doublings than another load, and what a first token's wait leaves is alike
over most loads. Chosen on those rows, D by direction lowers what is left of further tokens and of mixtures' first ones; dense first
tokens stay where they were. N is what repeated runs differ by. Far from every point f is 0 and a prediction stays where the factors put
it. Source: C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning (2006), sections 2.2 and 4.2 (the Matérn
covariance of 3/2: waits and kernels bend over load and length without a corner at each point); S, D and M: `python -m
benchmarks.accuracy`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.domain.request_rules import Load
from app.domain.work import Quantity

SPREAD, OTHER_MODEL = 0.6, 0.5
# D of clients, prompt, answer, cached prefix, devices of a stage, stages, expert ranks.
DOUBLINGS: Mapping["Phase", tuple[float, ...]] = {
    "decode": (4.0, 4.0, 4.0, 4.0, 2.5, 2.5, 2.5),
    "prefill": (9.0, 6.0, 8.0, 6.0, 6.0, 4.0, 4.0),
}
# Mean differences of repeated runs (3.3 % of a further token, 8.8 % of a first one), as in the design's performance model, section 6.
NOISE: Mapping["Phase", float] = {"decode": 0.033, "prefill": 0.088}
_PREFIX_TOKENS = 1000.0  # a cached prefix counts from here on
_FREEDOM = 4.0  # of Student's distribution of noise
_ROUNDS = 8
Floats = npt.NDArray[np.float64]
Place = tuple[Quantity, ...]
Phase = Literal["decode", "prefill"]


@dataclass(frozen=True)
class Remainder:
    """Points of a calibration: their models, places (`place_of`) and weights for a first and for a further token, 0 where not measured."""

    models: tuple[str, ...]
    places: tuple[tuple[float, ...], ...]
    first: tuple[float, ...]
    further: tuple[float, ...]

    def factors(self, model: str, load: Load) -> tuple[Quantity, Quantity]:
        """Measured over predicted to expect of a first and of a further token, of the shape of the load's numbers."""
        here = place_of(load)
        first: Quantity = 0.0
        further: Quantity = 0.0
        for name, there, one, other in zip(self.models, self.places, self.first, self.further, strict=True):
            like = 1.0 if name == model else OTHER_MODEL
            first = first + one * like * _near(here, there, "prefill")
            further = further + other * like * _near(here, there, "decode")
        return np.exp(first), np.exp(further)


def place_of(load: Load) -> Place:
    """Where a question lies: doublings of clients (or the batch), prompt, answer, prefix, devices of a stage, stages and expert ranks."""
    together = load.batch if load.concurrency is None else load.concurrency
    prefix = 1.0 + load.cached_prefix_tokens / _PREFIX_TOKENS
    sizes = (together, load.prompt_tokens, load.output_tokens, prefix, load.tp * load.dp, load.pp, load.ep)
    return tuple(np.log2(np.maximum(size, 1.0)) for size in sizes)


def weights(models: Sequence[str], places: Sequence[tuple[float, ...]], logs: Floats, noise: Floats, phase: Phase) -> Floats:
    """Weights of points whose measured over predicted are `logs` (NaN: not measured, weight 0); `noise`: what repeats of each differ by."""
    found = np.zeros(len(logs))
    known = np.flatnonzero(np.isfinite(logs))
    if not known.size:
        return found
    near = covariance([models[one] for one in known.tolist()], [places[one] for one in known.tolist()], phase)
    own, noises, trust = logs[known], noise[known], np.ones(known.size)
    for _ in range(_ROUNDS):
        solved = np.linalg.solve(near + np.diag(noises**2 / trust), own)
        trust = 1.0 / (1.0 + ((own - near @ solved) / noises) ** 2 / _FREEDOM)
    found[known] = solved
    return found


def covariance(models: Sequence[str], places: Sequence[tuple[float, ...]], phase: Phase) -> Floats:
    """How alike the remainders of a phase at points are expected to be [points, points], before anything is measured."""
    columns = np.array(places, dtype=np.float64).T
    names = np.array(models)
    near = np.asarray(_near(tuple(columns[:, :, None]), tuple(columns[:, None, :]), phase))
    found: Floats = np.where(names[:, None] == names[None, :], near, OTHER_MODEL * near)
    return found


def _near(here: Place, there: Place, phase: Phase) -> Quantity:
    """The covariance of two questions about one model."""
    square: Quantity = 0.0
    for one, other, doublings in zip(here, there, DOUBLINGS[phase], strict=True):
        square = square + ((one - other) / doublings) ** 2
    far = np.sqrt(3.0 * square)
    found: Quantity = SPREAD**2 * (1.0 + far) * np.exp(-far)
    return found
