"""What a calibration is worth: the product's own (`app.domain.calibration`), started from constants that never saw the device.

Rows go together by engine, device, weight format and class of models, which is what a calibration is for. Every other operating point is
scored; up to 16 of the rest are what was measured (of a stream 16 of each phase, which a tool times in one run), so no scored question was
measured before: those that the product says are worth measuring (`app.domain.points_to_measure`, which sees questions and no time). Single
streams run one request at a time, which the product refuses to calibrate from alone; the same solve is scored here without that refusal.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from app.domain.calibration import LEAST_POINTS, Point, tuned
from app.domain.engine import EngineProfile
from app.domain.phases import Question, price_request
from app.domain.points_to_measure import points_to_measure
from app.domain.request_rules import Load, check
from app.domain.schedule import Schedule
from benchmarks.asked import Asked
from benchmarks.fitting.fits import Fit
from benchmarks.fitting.profiles import figures

Floats = npt.NDArray[np.float64]


def profile(one: Asked, names: Sequence[str], values: Floats, stream: bool) -> EngineProfile:
    """An engine profile of fitted constants, by the keys that the catalog would have."""
    found = figures(names, values, stream)
    times = {f"{key.removesuffix('_us')}_s": value / 1e6 for key, value in found.items() if key.endswith("_us")}
    others = {key: value for key, value in found.items() if not key.endswith("_us")}
    schedule = Schedule() if one.profile is None else one.profile.schedule
    return EngineProfile(one.engine, one.engine, schedule=schedule, **times, **others)


def calibrated(fit: Fit, start: Floats) -> Floats:
    """Outputs of the rows of `fit` after calibration, NaN in groups of too few points. `start` [n, constants] are logarithms."""
    asked, stream = fit.rows.asked, fit.rows.measured.shape[1] == 1
    found = np.full(fit.rows.measured.shape, np.nan)
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place, one in enumerate(asked):
        groups[one.engine, one.hardware.slug, one.weights, one.experts].append(place)
    for places in groups.values():
        engine = profile(asked[places[0]], fit.rows.parameters.names, fit.rows.parameters.bounded(start[places[0]]), stream)
        points = {place: _point(asked[place]) for place in places}
        numbers = {key: number for number, key in enumerate(dict.fromkeys(point.group for point in points.values()))}
        for part in range(2):
            scored = [place for place in places if numbers[points[place].group] % 2 == part]
            rest = [place for place in places if numbers[points[place].group] % 2 != part]
            if len(rest) >= LEAST_POINTS and scored:
                chosen = [place for phase in _phases(rest, asked) for place in _measured(phase, asked)]
                moved = tuned(engine, [points[at] for at in chosen], asked[places[0]].hardware)
                for at in scored:
                    found[at] = _outputs(asked[at], moved)
    return found


def _phases(places: Sequence[int], asked: Sequence[Asked]) -> list[list[int]]:
    """Rows apart by what they measure: a served row has both phases, of a stream's point each phase is a row of its own."""
    found: dict[bool, list[int]] = defaultdict(list)
    for place in places:
        found[asked[place].measurement.tpot_s is None].append(place)
    return list(found.values())


def _measured(places: Sequence[int], asked: Sequence[Asked]) -> list[int]:
    """Those that are measured before a calibration: of an operating point its first row, at most 16 of them."""
    loads = [Load.of(asked[place].request).averaged() for place in places]
    return [places[at] for at in points_to_measure([asked[place].architecture.name for place in places], loads)]


def _point(one: Asked) -> Point:
    row = one.measurement
    return Point(0, one.architecture, one.request, row.first_token_s, row.tpot_s, prompt_alone=row.prefill_s is not None)


def _outputs(one: Asked, engine: EngineProfile) -> list[float]:
    """Seconds that a row measures: ITL and TTFT of a served load, of a stream the one that it has."""
    row = one.measurement
    priced = price_request(
        Question.of(one.architecture, one.hardware, one.request, check(one.request, one.architecture, one.hardware), engine)
    )
    itl, ttft = float(priced.itl_s), float(priced.ttft_s)
    if row.kind != "stream":
        return [itl, ttft]
    return [itl if row.tpot_s is not None else ttft if row.prefill_s is None else float(priced.prefill.time_s)]
