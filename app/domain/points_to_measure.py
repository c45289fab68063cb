"""Which operating points are worth measuring for a calibration: those after which the least is left unknown about all of them.

The choice looks at questions alone, never at a time. What a calibration's factors leave is alike at points near each other (`remainder`),
which says how much one point tells of another before either is measured. Points are taken one at a time, each the one that lowers

    Σ over phases, Σ over points:  Var(point | the points taken)

most; N, what repeated runs of a phase differ by, keeps a point from telling all about itself. That spreads points over clients, lengths,
devices and models, where most others lie near, rather than at the rim alone. Source: S. Seo et al., Gaussian Process Regression: Active
Data Selection and Test Point Rejection (2000), after D. Cohn: the expected total variance.
"""

from collections.abc import Sequence

import numpy as np

from app.domain.remainder import NOISE, covariance, place_of
from app.domain.request_rules import Load

MOST_POINTS = 16


def points_to_measure(models: Sequence[str], loads: Sequence[Load], most: int = MOST_POINTS) -> list[int]:
    """Places in `loads` (whose models are `models`) of at most `most` points to measure, the most telling first.

    Of equal questions the first one stands for all. Ties fall to the earlier place, so equal questions give equal choices.
    """
    asked = [(model, tuple(float(size) for size in place_of(load))) for model, load in zip(models, loads, strict=True)]
    seen = {question: place for place, question in reversed(list(enumerate(asked)))}
    first = sorted(seen.values())
    if len(first) <= most:
        return first
    named, lying = [asked[place][0] for place in first], [asked[place][1] for place in first]
    unknown = {phase: covariance(named, lying, phase) for phase in NOISE}
    taken: list[int] = []
    for _ in range(most):
        told = sum((unknown[phase] ** 2).sum(axis=0) / (np.diag(unknown[phase]) + noise**2) for phase, noise in NOISE.items())
        told = np.where(np.isin(np.arange(len(first)), taken), -1.0, told)
        best = int(np.argmax(told))
        taken.append(best)
        for phase, noise in NOISE.items():
            left = unknown[phase]
            unknown[phase] = left - np.outer(left[:, best], left[best]) / (left[best, best] + noise**2)
    return [first[place] for place in taken]
