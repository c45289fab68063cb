"""The fits of engine profiles: which rows go together, what is left out of which fit, and what a calibration adds.

Served load: constants of an engine, which dense models and mixtures share (one front-end, one scheduler, one set of collectives), what a
class of models adds to them, what a precision on a generation of devices adds in all engines alike, and in one. Single streams: constants
of an engine, of a weight-bit class in all engines alike and in one, of a kind of device and its generation, and of such weights on it.
What engines share is where a fit without rows of its own stands; an entry of the catalog is made only for what an engine has rows of.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from app.domain.profile_choice import kind_of_device, narrowest_units
from benchmarks.asked import Asked
from benchmarks.fitting.served import ServedRows
from benchmarks.fitting.solve import Level, Settings, Solution, solve
from benchmarks.fitting.stream import StreamRows

Floats = npt.NDArray[np.float64]
Key = Callable[[Asked], Hashable]

ITL_SCALE, TTFT_SCALE, STREAM_SCALE = 0.05, 0.05, 0.07  # logarithmic errors from which on a row pulls less
SERVED_ENGINES = ("vllm", "sglang", "tensorrt-llm")
FOLDS = 12  # models (or devices) are left out whole, several at a time where there are many
START_UP = 1.8  # TTFT above this many times that of the same load with longer answers holds a start-up


def engine_of(one: Asked) -> Hashable:
    """The engine's slug."""
    return one.engine


def class_of(one: Asked) -> Hashable:
    """Engine, experts or not."""
    return one.engine, one.experts


def precision_of(one: Asked) -> Hashable:
    """Experts or not, generation of the device's arithmetic and weight format."""
    return one.experts, narrowest_units(one.hardware), one.weights


def kernels_of(one: Asked) -> Hashable:
    """The same of one engine: the kernels that it has for such products."""
    return one.engine, precision_of(one)


def bits_of(one: Asked) -> Hashable:
    """Engine, weight-bit class, experts or not."""
    return one.engine, one.bits, one.experts


def any_engine_bits_of(one: Asked) -> Hashable:
    """Weight-bit class, experts or not, in all engines: what unpacking such weights costs anywhere."""
    return one.bits, one.experts


def bits_on_kind_of(one: Asked) -> Hashable:
    """The same on a kind of device: the kernels that it has there."""
    return bits_of(one), kind_of_device(one.hardware)


def device_kind_of(one: Asked) -> Hashable:
    """Kind of device."""
    return kind_of_device(one.hardware)


def generation_of(one: Asked) -> Hashable:
    """Kind of device and generation of its arithmetic, in all engines alike: kernels reach less of a newer one's peak."""
    return kind_of_device(one.hardware), narrowest_units(one.hardware)


def model_of(one: Asked) -> Hashable:
    """The shapes of the model, whatever its name: a distillate or a second label is the same model."""
    return one.architecture.groups


def device_of(one: Asked) -> Hashable:
    """The device."""
    return one.hardware.slug


# How rarely a scheduler looks is a setting that engines are started with, for mixtures above all: it strays by factors between them.
SERVED_LEVELS = (
    Level(engine_of, 0.2, {"admission": 1.0}),
    Level(class_of, 0.3, {"admission": 5.0}),
    Level(precision_of, 0.2, {"admission": 0.3}),
    Level(kernels_of, 0.25, {"admission": 0.5}),
)
SERVED = Settings((ITL_SCALE, TTFT_SCALE), SERVED_LEVELS, steps=60)
STREAM_LEVELS = (
    Level(engine_of, 1.0),
    Level(any_engine_bits_of, 0.5),
    Level(bits_of, 0.5),
    Level(device_kind_of, 0.3),
    Level(generation_of, 0.3),
    Level(bits_on_kind_of, 0.3),
)
STREAMS = Settings((STREAM_SCALE,), STREAM_LEVELS, steps=25)


@dataclass(frozen=True)
class Fit:
    """One set of rows, its weights and the constants fitted to all of them."""

    rows: Any
    settings: Settings
    weights: Floats
    solution: Solution

    @classmethod
    def of(cls, rows: Any, settings: Settings, weights: Floats) -> "Fit":
        """Fit all rows."""
        return cls(rows, settings, weights, solve(rows, rows.asked, settings, weights))

    def predicted(self) -> Floats:
        """Outputs of all rows at the constants fitted to them."""
        found: Floats = self.rows.predict(self.solution.values(self.rows.asked))
        return found

    def at(self, logarithms: Floats) -> Floats:
        """Outputs of all rows at these logarithms of their constants [n, constants]."""
        found: Floats = self.rows.predict(self.rows.parameters.bounded(logarithms))
        return found

    def left_out(self, key: Key) -> Floats:
        """Logarithms [n, constants] that each row is left with when its model or device (`key`) is left out of the fit.

        Each fit begins at the guesses: one that begins at the fit to all rows stays in the valley that the rows left out have dug.
        """
        folds = np.array(_folds([key(one) for one in self.rows.asked]))
        found = np.zeros((len(folds), len(self.rows.parameters)))
        for fold in np.unique(folds):
            out, kept = folds == fold, folds != fold
            subjects = [one for one, keep in zip(self.rows.asked, kept, strict=True) if keep]
            solution = solve(self.rows.only(kept), subjects, self.settings, self.weights[kept])
            found[out] = solution.logarithms([one for one, skip in zip(self.rows.asked, out, strict=True) if skip])
        return found


def _folds(keys: Sequence[Hashable]) -> list[int]:
    """A number for each row so that equal keys share it; many keys share at most FOLDS numbers, in the order in which they come."""
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    many = len(order) > 2 * FOLDS
    return [order[key] % FOLDS if many else order[key] for key in keys]


def served_fit(asked: Sequence[Asked]) -> Fit:
    """The fit of served rows."""
    mine = [one for one in asked if one.measurement.kind == "served" and one.engine in SERVED_ENGINES]
    rows = ServedRows.of(mine)
    weights = np.ones_like(rows.measured)
    weights[holds_start_up(mine), 1] = 0.0
    return Fit.of(rows, SERVED, weights)


def stream_fit(asked: Sequence[Asked]) -> Fit:
    """The fit of single streams of engines that serve none of the loads above."""
    mine = [one for one in asked if one.measurement.kind == "stream" and one.engine not in SERVED_ENGINES and is_single(one)]
    rows = StreamRows.of(mine)
    return Fit.of(rows, STREAMS, np.ones_like(rows.measured))


def is_single(one: Asked) -> bool:
    """One request at a time, measured for that request, not by speculation."""
    row = one.measurement
    return row.sequences == 1 and not row.flags


def holds_start_up(asked: Sequence[Asked]) -> npt.NDArray[np.bool_]:
    """Rows whose TTFT holds the start of the benchmark, by rule: above that at twice the load, or 1.8 times that with a longer answer.

    Such a TTFT is not fitted; it is scored like every other.
    """
    return above_twice_the_load(asked) | above_longer_answers(asked)


def above_twice_the_load(asked: Sequence[Asked]) -> npt.NDArray[np.bool_]:
    """Rows whose TTFT is above that of the same deployment and lengths at twice the clients."""
    times, found = _first_tokens(asked), np.zeros(len(asked), dtype=bool)
    by_load: dict[Hashable, dict[float, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, one in enumerate(asked):
        by_load[_deployment(one), one.measurement.output_tokens][one.measurement.sequences].append(place)
    for loads in by_load.values():
        for clients, places in loads.items():
            if 2 * clients in loads:
                found[places] |= times[places] > np.nanmedian(times[loads[2 * clients]])
    return found


def above_longer_answers(asked: Sequence[Asked]) -> npt.NDArray[np.bool_]:
    """Rows whose TTFT is above START_UP times that of the same deployment, prompt and clients with a longer answer."""
    times, found = _first_tokens(asked), np.zeros(len(asked), dtype=bool)
    by_answer: dict[Hashable, dict[float, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, one in enumerate(asked):
        by_answer[_deployment(one), one.measurement.sequences][float(one.measurement.output_tokens or 0)].append(place)
    for answers in by_answer.values():
        for length, places in answers.items():
            for longer in (other for other in answers if other > length):
                found[places] |= times[places] > START_UP * np.nanmedian(times[answers[longer]])
    return found


def _first_tokens(asked: Sequence[Asked]) -> Floats:
    return np.array([one.measurement.ttft_s or np.nan for one in asked])


def _deployment(one: Asked) -> Hashable:
    row = one.measurement
    return row.engine, row.engine_version, row.model, row.hardware, row.weight_dtype, row.layout, row.prompt_tokens
