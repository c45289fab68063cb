"""The fits of engine profiles: which rows go together, what is left out of which fit, and what a calibration adds.

Served load, dense models and mixtures apart: constants of an engine, and what a precision on a generation of devices adds in all
engines alike. Single streams: constants of an engine, of an engine's weight-bit class, and of a kind of device.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from app.domain.profile_choice import kind_of_device, narrowest_units
from benchmarks.asked import Asked
from benchmarks.fitting.parameters import Parameters
from benchmarks.fitting.served import ServedRows
from benchmarks.fitting.solve import Level, Settings, Solution, solve
from benchmarks.fitting.stream import StreamRows

Floats = npt.NDArray[np.float64]
Key = Callable[[Asked], Hashable]

ITL_SCALE, TTFT_SCALE, STREAM_SCALE = 0.07, 0.4, 0.07  # logarithmic errors from which on a row pulls less
SERVED_ENGINES = ("vllm", "sglang", "tensorrt-llm")
FOLDS = 6  # models (or devices) are left out whole, several at a time where there are many
CALIBRATION_POINTS = 16
FEWEST_POINTS = 8
START_UP = 1.8  # TTFT above this many times that of the same load with longer answers holds a start-up


def engine_of(one: Asked) -> Hashable:
    """The engine's slug."""
    return one.engine


def precision_of(one: Asked) -> Hashable:
    """Generation of the device's arithmetic and weight format."""
    return narrowest_units(one.hardware), one.weights


def bits_of(one: Asked) -> Hashable:
    """Engine, weight-bit class, experts or not."""
    return one.engine, one.bits, one.experts


def device_kind_of(one: Asked) -> Hashable:
    """Kind of device."""
    return kind_of_device(one.hardware)


def model_of(one: Asked) -> Hashable:
    """The shapes of the model, whatever its name: a distillate or a second label is the same model."""
    return one.architecture.groups


def device_of(one: Asked) -> Hashable:
    """The device."""
    return one.hardware.slug


DENSE = Settings((ITL_SCALE, TTFT_SCALE), (Level(engine_of, 0.3), Level(precision_of, 0.1)))
MIXTURES = Settings((ITL_SCALE, TTFT_SCALE), (Level(engine_of, 0.6), Level(precision_of, 0.3)))
STREAMS = Settings((STREAM_SCALE,), (Level(engine_of, 1.0), Level(bits_of, 0.5), Level(device_kind_of, 0.3)), steps=15)


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

    def left_out(self, key: Key) -> Floats:
        """Outputs of each row from a fit that saw no row of the same model or device (`key`)."""
        folds = np.array(_folds([key(one) for one in self.rows.asked]))
        found = np.full(self.rows.measured.shape, np.nan)
        quick = replace(self.settings, steps=6)
        for fold in np.unique(folds):
            out, kept = folds == fold, folds != fold
            subjects = [one for one, keep in zip(self.rows.asked, kept, strict=True) if keep]
            solution = solve(self.rows.only(kept), subjects, quick, self.weights[kept], self.solution)
            found[out] = self.rows.only(out).predict(solution.values([one for one, skip in zip(self.rows.asked, out, strict=True) if skip]))
        return found

    def calibrated(self, start: Floats) -> Floats:
        """Outputs after calibration on up to 16 points of the same engine, device and precision, of rows that were not among them.

        `start` [n, constants] are logarithms of constants that never saw the device. A group of too few points stays uncalibrated (NaN).
        """
        found = np.full(self.rows.measured.shape, np.nan)
        groups: dict[Hashable, list[int]] = defaultdict(list)
        for place, one in enumerate(self.rows.asked):
            groups[one.engine, one.hardware.slug, one.weights, one.experts].append(place)
        for places in groups.values():
            for part in range(2):
                test = np.array(places[part::2])
                train = np.array([place for place in places if place not in set(test.tolist())])
                if len(train) >= FEWEST_POINTS and len(test):
                    chosen = train[np.unique(np.linspace(0, len(train) - 1, CALIBRATION_POINTS).round().astype(int))]
                    found[test] = self._calibration(chosen, test, start[places[0]])
        return found

    def _calibration(self, train: npt.NDArray[np.int64], test: npt.NDArray[np.int64], start: Floats) -> Floats:
        items = tuple(
            replace(item, guess=float(np.exp(middle)), spread=_CALIBRATED.get(item.name, 0.05))
            for item, middle in zip(self.rows.parameters.items, start, strict=True)
        )
        mask = np.zeros(len(self.rows.asked), dtype=bool)
        mask[train] = True
        rows = replace(self.rows.only(mask), parameters=Parameters(items))
        solution = solve(rows, rows.asked, Settings(self.settings.scales, (), 12), self.weights[mask])
        mask[:] = False
        mask[test] = True
        kept = self.rows.only(mask)
        found: Floats = kept.predict(solution.values(kept.asked))
        return found

    def left_out_logarithms(self, key: Key) -> Floats:
        """Logarithms of the constants that each row's prediction is left with when its model or device is left out."""
        folds = np.array(_folds([key(one) for one in self.rows.asked]))
        found = np.zeros((len(folds), len(self.rows.parameters)))
        quick = replace(self.settings, steps=6)
        for fold in np.unique(folds):
            out, kept = folds == fold, folds != fold
            subjects = [one for one, keep in zip(self.rows.asked, kept, strict=True) if keep]
            solution = solve(self.rows.only(kept), subjects, quick, self.weights[kept], self.solution)
            found[out] = solution.logarithms([one for one, skip in zip(self.rows.asked, out, strict=True) if skip])
        return found


# Prior spreads of the scalars that a calibration moves (engine profiles, section 7); the others hardly move.
_CALIBRATED = {
    "e_b": 0.25,
    "e_bx": 0.25,
    "e": 0.35,
    "e_x": 0.35,
    "layer": 0.5,
    "expert_layer": 0.5,
    "alpha": 0.5,
    "step": 0.7,
    "sequence": 0.7,
    "interference": 0.35,
    "least": 0.7,
    "unpack": 0.5,
    "e_kv": 0.35,
    "floor": 0.7,
    "front": 0.7,
    "serial": 0.7,
    "fill": 0.7,
}


def _folds(keys: Sequence[Hashable]) -> list[int]:
    """A number for each row so that equal keys share it; many keys share at most FOLDS numbers, in the order in which they come."""
    order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    many = len(order) > 2 * FOLDS
    return [order[key] % FOLDS if many else order[key] for key in keys]


def served_fit(asked: Sequence[Asked], experts: bool) -> Fit:
    """The fit of served rows of dense models or of mixtures."""
    mine = [one for one in asked if one.experts == experts and one.measurement.kind == "served" and one.engine in SERVED_ENGINES]
    rows = ServedRows.of(mine)
    weights = np.ones_like(rows.measured)
    weights[holds_start_up(mine), 1] = 0.0
    return Fit.of(rows, MIXTURES if experts else DENSE, weights)


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
    by_load: dict[Hashable, dict[float, list[int]]] = defaultdict(lambda: defaultdict(list))
    by_answer: dict[Hashable, dict[float, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, one in enumerate(asked):
        row = one.measurement
        same = (row.engine, row.engine_version, row.model, row.hardware, row.weight_dtype, row.layout, row.prompt_tokens)
        by_load[(*same, row.output_tokens)][row.sequences].append(place)
        by_answer[(*same, row.sequences)][float(row.output_tokens or 0)].append(place)
    found = np.zeros(len(asked), dtype=bool)
    times = np.array([one.measurement.ttft_s or np.nan for one in asked])
    for loads in by_load.values():
        for clients, places in loads.items():
            if 2 * clients in loads:
                found[places] |= times[places] > np.nanmedian(times[loads[2 * clients]])
    for answers in by_answer.values():
        for length, places in answers.items():
            for longer in (other for other in answers if other > length):
                found[places] |= times[places] > START_UP * np.nanmedian(times[answers[longer]])
    return found
