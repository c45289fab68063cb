"""The constants of an engine profile that fits may move: their bounds, their first guess and how far a group may stray from it.

All are fitted as logarithms, so a prior of 0.3 means about 30 %. The guesses are physical expectations, not results.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Parameter:
    """One constant: name, bounds, first guess and the standard deviation of its logarithm before any data."""

    name: str
    low: float
    high: float
    guess: float
    spread: float


@dataclass(frozen=True)
class Parameters:
    """A set of constants in a fixed order."""

    items: tuple[Parameter, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names in order."""
        return tuple(item.name for item in self.items)

    def __len__(self) -> int:
        return len(self.items)

    def index(self, name: str) -> int:
        """The place of one constant."""
        return self.names.index(name)

    @property
    def guesses(self) -> Floats:
        """Logarithms of the first guesses."""
        return np.log([item.guess for item in self.items])

    @property
    def spreads(self) -> Floats:
        """Standard deviations of the logarithms."""
        return np.array([item.spread for item in self.items])

    def bounded(self, logarithms: Floats) -> Floats:
        """Values of logarithms along the last axis, kept inside the bounds."""
        low, high = (np.array([getattr(item, side) for item in self.items]) for side in ("low", "high"))
        return np.clip(np.exp(logarithms), low, high)

    def free(self, logarithms: Floats) -> Floats:
        """1 where a value lies inside its bounds, 0 where a bound holds it."""
        low, high = (np.array([getattr(item, side) for item in self.items]) for side in ("low", "high"))
        values = np.exp(logarithms)
        return np.asarray((values > low) & (values < high), dtype=np.float64)


# What share of its bandwidth a device reaches in a plain read is known from measurements of reads alone, to a few percent; let free, it
# made up for times that are no reading.
SERVED = Parameters(
    (
        Parameter("e_b", 0.4, 1.0, 0.9, 0.05),
        Parameter("e_bx", 0.4, 1.0, 0.9, 0.15),
        Parameter("e_kv", 0.3, 1.0, 0.85, 0.1),
        Parameter("e", 0.3, 2.0, 1.0, 0.35),
        Parameter("e_x", 0.05, 2.0, 0.5, 0.7),
        Parameter("layer", 2e-6, 100e-6, 25e-6, 0.5),
        Parameter("expert_layer", 2e-6, 60e-6, 18e-6, 0.5),
        Parameter("alpha", 1e-6, 40e-6, 7e-6, 0.6),
        Parameter("step", 0.05e-3, 4e-3, 0.4e-3, 0.8),
        Parameter("sequence", 0.01e-6, 2e-6, 0.25e-6, 0.8),
        Parameter("interference", 0.2, 1.5, 0.8, 0.3),
        Parameter("floor", 0.02e-3, 4e-3, 0.15e-3, 1.0),
        Parameter("expert_floor", 0.02e-3, 4e-3, 0.5e-3, 1.0),
        Parameter("front", 2e-3, 80e-3, 15e-3, 0.3),
        Parameter("serial", 2e-3, 60e-3, 15e-3, 0.6),
        Parameter("admission", 0.2, 60.0, 0.5, 0.3),
        Parameter("by_running", 0.01, 1.5, 0.25, 0.3),
        Parameter("by_devices", 0.001, 1.5, 0.1, 1.0),
        Parameter("traffic", 1.0, 40.0, 8.0, 0.8),
    )
)

STREAM = Parameters(
    (
        Parameter("e_b", 0.4, 0.95, 0.9, 0.1),
        Parameter("e_kv", 0.1, 1.0, 0.6, 0.6),
        Parameter("e", 0.03, 1.2, 0.5, 0.6),
        Parameter("unpack", 0.3, 80.0, 6.0, 0.8),
        Parameter("layer", 1e-6, 400e-6, 10e-6, 0.8),
        Parameter("least", 0.05e-3, 30e-3, 1.5e-3, 0.8),
        Parameter("alpha", 1e-6, 300e-6, 20e-6, 1.0),
        Parameter("send", 1e-6, 2e-3, 50e-6, 1.0),
        Parameter("floor", 5e-6, 3e-3, 0.3e-3, 1.2),
        Parameter("front", 0.2e-3, 60e-3, 2e-3, 1.2),
        Parameter("fill", 1.0, 2000.0, 60.0, 1.0),
        Parameter("attention", 0.01, 0.9, 0.4, 0.8),
    )
)
