"""The published measurements nearest to a question, so that a prediction stands beside what somebody measured.

Only measurements of the same model or the same device are near at all. Among those a point counts for each thing that differs: another
model or device 3, another engine 1.5, another weight format 1, each factor of two in prompt, sequences or devices 1, and in output 0.25,
which hardly moves either phase. The weights say what is shown first; no figure is made from them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.measurement import REJECTED, SPECULATIVE, Measurement

Floats = npt.NDArray[np.float64]
OTHER_MODEL = OTHER_DEVICE = 3.0
OTHER_ENGINE, OTHER_FORMAT = 1.5, 1.0
_WEIGHTS = {"prompt_tokens": 1.0, "sequences": 1.0, "devices": 1.0, "output_tokens": 0.25}


@dataclass(frozen=True)
class Point:
    """What is asked, or measured: slugs of model, device and engine (None: not stated), the weights' format, and the load."""

    model: str | None
    hardware: str | None
    engine: str | None
    weight_dtype: str | None
    devices: float
    sequences: float
    prompt_tokens: float
    output_tokens: float


@dataclass(frozen=True)
class Near:
    """A measurement with how far it is from the question, and the keys in which it differs."""

    measurement: Measurement
    distance: float
    differs: tuple[str, ...]


class Measured:
    """Measurements prepared for looking up: `points` are the same rows under the catalog's names."""

    def __init__(self, rows: Sequence[Measurement], points: Sequence[Point]) -> None:
        usable = [place for place, row in enumerate(rows) if not {SPECULATIVE, REJECTED} & set(row.flags)]
        self._rows = [rows[place] for place in usable]
        self._points = [points[place] for place in usable]
        self._words = {
            key: np.array([getattr(point, key) or "" for point in self._points], dtype=object)
            for key in ("model", "hardware", "engine", "weight_dtype")
        }
        self._logs = {key: _log([getattr(point, key) for point in self._points]) for key in _WEIGHTS}

    def nearest(self, asked: Point, most: int = 3) -> tuple[Near, ...]:
        """The `most` nearest measurements, nearest first; none where neither the model nor the device was ever measured."""
        other = {key: np.asarray(words != (getattr(asked, key) or ""), dtype=np.float64) for key, words in self._words.items()}
        far = OTHER_MODEL * other["model"] + OTHER_DEVICE * other["hardware"] + OTHER_FORMAT * other["weight_dtype"]
        if asked.engine is not None:
            far = far + OTHER_ENGINE * other["engine"]
        for key, weight in _WEIGHTS.items():
            far = far + weight * np.abs(self._logs[key] - _log([getattr(asked, key)]))
        far[(other["model"] > 0) & (other["hardware"] > 0)] = np.inf
        order = np.argsort(far, kind="stable")[:most]
        return tuple(
            Near(self._rows[place], float(far[place]), self._differing(asked, int(place))) for place in order if far[place] < np.inf
        )

    def _differing(self, asked: Point, place: int) -> tuple[str, ...]:
        point = self._points[place]
        keys = (*self._words, *_WEIGHTS)
        return tuple(key for key in keys if getattr(point, key) != getattr(asked, key) and not (key == "engine" and asked.engine is None))


def _log(values: Sequence[float]) -> Floats:
    """log2 of counts, where 0 or none stands for one."""
    return np.log2(np.maximum(np.asarray(values, dtype=np.float64), 1.0))
