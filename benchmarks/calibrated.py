"""What a calibration is worth: the product's own (`app.domain.calibration`), started from constants that never saw the device.

Rows go together by engine, device, weight format and class of models, which is what a calibration is for. Every other row is scored; up to
16 of the rest, spread over them, are what was measured. Single streams run one request at a time, which the product refuses to calibrate
from alone; the same solve is scored here without that refusal.
"""

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from app.domain.calibration import LEAST_POINTS, Point, scaled, solve
from app.domain.engine import EngineProfile
from app.domain.phases import Question, price_request
from app.domain.request_rules import check
from app.domain.schedule import Schedule
from benchmarks.asked import Asked
from benchmarks.fitting.fits import Fit
from benchmarks.fitting.profiles import figures

Floats = npt.NDArray[np.float64]
MOST_POINTS = 16


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
        for part in range(2):
            scored, rest = places[part::2], places[1 - part :: 2]
            if len(rest) >= LEAST_POINTS and scored:
                chosen = [rest[at] for at in np.unique(np.linspace(0, len(rest) - 1, MOST_POINTS).round().astype(int))]
                moved = scaled(engine, solve([_point(asked[at]) for at in chosen], asked[places[0]].hardware, engine))
                for at in scored:
                    found[at] = _outputs(asked[at], moved)
    return found


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
