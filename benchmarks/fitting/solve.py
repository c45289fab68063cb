"""Robust fits of bounded constants in nested groups: every group may stray from the one above it as far as its prior lets it.

The logarithm of a constant in a leaf is the sum of one term for each level (all, engine, class, …), each with a Gaussian prior around
0, the topmost around the physical guess. A group without rows stays where the level above puts it, which is what transfer asks of it.
Loss: ln(1 + z²) with z = ln(predicted/measured)/scale, summed, and the priors: rows that tell another story pull little. Gauss-Newton
with damping. Levels may cross: a precision strays alike in all engines.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from benchmarks.fitting.parameters import Parameters

Floats = npt.NDArray[np.float64]
_LONGEST_STEP = 0.7
_WIDENED, _LITTLE = (4.0, 2.0, 1.0), 1e-4


class Rows(Protocol):
    """What can be fitted."""

    measured: Floats
    parameters: Parameters

    def predict(self, values: Floats) -> Floats:
        """Outputs [n, k] at values [n, constants]."""
        ...

    def derivatives(self, values: Floats) -> tuple[Floats, Floats]:
        """Outputs [n, k] and derivatives [n, k, constants]."""
        ...


@dataclass(frozen=True)
class Level:
    """One level of grouping: which group each row is in, and how far groups stray, as a factor on each constant's own spread.

    `spreads` has the factors of constants that stray otherwise.
    """

    key: Callable[[Any], Hashable]
    spread: float
    spreads: Mapping[str, float] = field(default_factory=dict)

    def of(self, parameters: Parameters) -> Floats:
        """The standard deviation of each constant's logarithm between the groups of this level."""
        found: Floats = parameters.spreads * np.array([self.spreads.get(name, self.spread) for name in parameters.names])
        return found


@dataclass(frozen=True)
class Settings:
    """How strongly data count: scale of the logarithmic error of each output, and the levels below the common one."""

    scales: tuple[float, ...]
    levels: tuple[Level, ...]
    steps: int = 25


@dataclass
class Solution:
    """Terms of all groups: `terms[level][group]` are logarithms [constants]."""

    parameters: Parameters
    settings: Settings
    groups: tuple[tuple[Hashable, ...], ...]
    terms: tuple[Floats, ...]

    def logarithms(self, subjects: Sequence[Any]) -> Floats:
        """Logarithms of the constants for each subject; a group that was not seen adds nothing to the level above it."""
        total = np.zeros((len(subjects), len(self.parameters)))
        for level, keys, terms in zip(_levels(self.settings), self.groups, self.terms, strict=True):
            places = {key: place for place, key in enumerate(keys)}
            for row, subject in enumerate(subjects):
                place = places.get(level.key(subject))
                if place is not None:
                    total[row] += terms[place]
        return total

    def values(self, subjects: Sequence[Any]) -> Floats:
        """Constants for each subject, [n, constants]."""
        return self.parameters.bounded(self.logarithms(subjects))


def _levels(settings: Settings) -> tuple[Level, ...]:
    return (Level(lambda _: "all", 1.0), *settings.levels)


def solve(rows: Rows, subjects: Sequence[Any], settings: Settings, weights: Floats | None = None) -> Solution:
    """Fit. `weights` [n, k] are 0 for what shall not count (a measurement that is absent counts as 0 in any case)."""
    return _Problem(rows, subjects, settings, weights).solved()


class _Problem:
    def __init__(self, rows: Rows, subjects: Sequence[Any], settings: Settings, weights: Floats | None) -> None:
        self.rows, self.settings, self.parameters = rows, settings, rows.parameters
        self.levels = _levels(settings)
        self.groups = tuple(_distinct(level, subjects) for level in self.levels)
        places = [{key: place for place, key in enumerate(keys)} for keys in self.groups]
        self.index = np.array(
            [[at[level.key(subject)] for level, at in zip(self.levels, places, strict=True)] for subject in subjects], dtype=np.int64
        )
        width = len(self.parameters)
        self.offsets = np.cumsum([0, *(len(keys) * width for keys in self.groups)])
        spreads = [np.tile(level.of(self.parameters), len(keys)) for level, keys in zip(self.levels, self.groups, strict=True)]
        self.spread = np.concatenate(spreads)
        self.middle = np.zeros(self.offsets[-1])
        self.middle[:width] = self.parameters.guesses
        self.place = self.middle.copy()
        known = np.isfinite(rows.measured)
        self.weights = known.astype(np.float64) if weights is None else weights * known
        self.target = np.log(np.where(known, rows.measured, 1.0))
        self.scales = np.array(settings.scales)
        combined, self.leaf = np.unique(self.index, axis=0, return_inverse=True)
        self.leaves = combined
        self.leaf = self.leaf.ravel()

    def logarithms(self, place: Floats) -> Floats:
        """Constants of each row as logarithms."""
        width = len(self.parameters)
        total = np.zeros((len(self.index), width))
        for column, (low, keys) in enumerate(zip(self.offsets, self.groups, strict=False)):
            total += place[low : low + len(keys) * width].reshape(len(keys), width)[self.index[:, column]]
        return total

    def errors(self, outputs: Floats) -> Floats:
        error: Floats = (np.log(outputs) - self.target) / self.scales * self.weights
        return error

    def cost(self, errors: Floats, place: Floats) -> float:
        return float(np.log1p(errors**2).sum() + (((place - self.middle) / self.spread) ** 2).sum())

    def equations(self, place: Floats) -> tuple[Floats, Floats, float]:
        """Normal equations at a place: matrix, gradient, cost."""
        logs = self.logarithms(place)
        outputs, slopes = self.rows.derivatives(self.parameters.bounded(logs))
        errors = self.errors(outputs)
        by = slopes * (self.parameters.bounded(logs) * self.parameters.free(logs))[:, None, :]
        jacobian = by / outputs[:, :, None] / self.scales[:, None] * self.weights[:, :, None]
        robust = 1.0 / (1.0 + errors**2)
        matrix, gradient = np.diag(1.0 / self.spread**2), (place - self.middle) / self.spread**2
        width = len(self.parameters)
        for leaf, groups in enumerate(self.leaves):
            mine = np.flatnonzero(self.leaf == leaf)
            flat, slope = jacobian[mine].reshape(-1, width), robust[mine].ravel()
            square, push = (flat * slope[:, None]).T @ flat, (flat * slope[:, None]).T @ errors[mine].ravel()
            spans = [slice(low + group * width, low + (group + 1) * width) for low, group in zip(self.offsets, groups, strict=False)]
            for one in spans:
                gradient[one] += push
                for other in spans:
                    matrix[one, other] += square
        return matrix, gradient, self.cost(errors, place)

    def solved(self) -> Solution:
        """The place of least cost found, by way of the same problem with wider scales: far from the answer a robust loss is flat."""
        for widened in _WIDENED:
            self.scales = np.array(self.settings.scales) * widened
            self.descend(self.settings.steps)  # each to its end: what is cut short settles in another valley
        width = len(self.parameters)
        terms = [
            self.place[low : low + len(keys) * width].reshape(len(keys), width)
            for low, keys in zip(self.offsets, self.groups, strict=False)
        ]
        return Solution(self.parameters, self.settings, self.groups, tuple(terms))

    def descend(self, steps: int) -> None:
        """Damped Gauss-Newton from the place at hand, until three steps in a row gain next to nothing."""
        damping, small = 1e-2, 0
        for _ in range(steps):
            matrix, gradient, cost = self.equations(self.place)
            for _ in range(8):
                step = np.linalg.solve(matrix + damping * np.diag(np.diag(matrix)), -gradient)
                there = self.place + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
                reached = self.cost(self.errors(self.rows.predict(self.parameters.bounded(self.logarithms(there)))), there)
                if reached < cost:
                    break
                damping *= 5.0
            else:
                return
            self.place, damping = there, max(damping / 5.0, 1e-6)
            small = small + 1 if cost - reached < _LITTLE * cost else 0
            if small == 3:
                return


def _distinct(level: Level, subjects: Sequence[Any]) -> tuple[Hashable, ...]:
    return tuple(dict.fromkeys(level.key(subject) for subject in subjects))
