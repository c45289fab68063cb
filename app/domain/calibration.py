"""Calibration: five bounded scalars on the nearest profile, fitted to measured runs of one device, engine and weight format.

What the scalars leave at the points is carried to questions near them (`remainder`).

In log space, x = log of each factor: minimise

    Σ 2·(√(1 + z²) - 1) + Σ (x/sd)²       z = log(predicted/measured) / scale

a robust loss whose scale is 7 % for a further token and the same times the ratio of what repeated runs differ by (8.8 to 3.3 %) for the
first (a prompt pass timed alone counts as a further token), and a Gaussian prior on each factor (sd below), which leaves at the profile's
value what the runs do not tell; no factor leaves 3 sd. Solved by Gauss-Newton with reweighting: five unknowns need no library. Its worth
is judged by cross-validation: runs of one operating point stay in one fold. Source: the design's performance model, section 5, and engine
profiles, section 7.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.errors import PhaselineError
from app.domain.hardware import HardwareProfile
from app.domain.phases import Question, price_request
from app.domain.prediction import Request
from app.domain.remainder import NOISE, Phase, Remainder, place_of, weights
from app.domain.request_rules import check
from app.domain.scalars import NAMES, Scalars

LEAST_POINTS = 8
_FOLDS = 5
_ROUNDS = 12
_STEP = 1e-3
_ENOUGH = 1e-5
_SCALES = {"decode": 0.07, "prefill": 0.07 * 8.8 / 3.3}
_PRIOR = np.array([0.25, 0.35, 0.5, 0.7, 0.35])
_MOST = 3.0 * _PRIOR
# A factor whose uncertainty the runs have not brought below this share of the prior's is the prior's, not theirs.
_UNTOLD = 0.8
_LEAST_BAND = 0.07
TITLES: Mapping[str, str] = {
    "read": "bandwidth reached",
    "compute": "FLOP/s reached",
    "layers": "fixed time of layers and collectives",
    "steps": "scheduler and front-end",
    "interference": "prefill between tokens",
}
MEASURE: Mapping[str, str] = {
    "read": "one client with a large model or a long context, where a step is all reading",
    "compute": "one client with a short and a long prompt, or many clients with long prompts",
    "layers": "the lowest concurrency at two numbers of devices",
    "steps": "short prompts at the lowest and the highest concurrency, with the same lengths",
    "interference": "many clients with long prompts and short answers",
}
Floats = npt.NDArray[np.float64]


class CalibrationRefused(PhaselineError):
    """Too little to fit: the message says what is missing and what to measure next."""


@dataclass(frozen=True)
class Point:
    """A measured operating point: the model and request that it is, and its times in seconds, None where not measured.

    `first_token_s` is TTFT; `prompt_alone` says that it is the prompt pass alone, timed in process. `run_id` is where it comes from.
    """

    run_id: int
    architecture: ModelArchitecture
    request: Request
    first_token_s: float | None
    step_s: float | None
    prompt_alone: bool = False

    @property
    def group(self) -> tuple[object, ...]:
        """What makes two points measurements of one operating point: everything but the figures, of drawn lengths the means."""
        asked = self.request
        prompt, output = (round(mean) for mean in asked.mean_lengths)
        sizes = (prompt, output, asked.batch, asked.concurrency or 0, asked.open_loop, asked.cached_prefix_tokens)
        return (self.architecture.name, *sizes, asked.tp, asked.pp, asked.ep, asked.dp, asked.weight_dtype, asked.kv_dtype)

    @property
    def measured(self) -> bool:
        """Whether it has a time at all."""
        return bool(self.first_token_s) or bool(self.step_s)

    @property
    def together(self) -> int:
        """Sequences that share a decode step, as asked."""
        return self.request.concurrency or self.request.batch


@dataclass(frozen=True)
class Errors:
    """Absolute errors of a phase as fractions of what was measured, and the median of predicted over measured less 1."""

    n: int
    median: float
    mean: float
    bias: float


@dataclass(frozen=True)
class Fit:
    """Factors and what they are worth: errors by phase before, after on the same points, and left out of the fit (cross-validated).

    `untold` lists the scalars that the points do not tell, which stay near the profile's value, with what to measure for them.
    """

    scalars: Mapping[str, float]
    before: Mapping[str, Errors]
    after: Mapping[str, Errors]
    left_out: Mapping[str, Errors]
    untold: Mapping[str, str]
    points: int
    run_ids: tuple[int, ...]
    remainder: Remainder | None = None

    def band(self, phase: str) -> tuple[float, float] | None:
        """Factors around a calibrated prediction: twice the cross-validated mean error, at least 7 %; None for a phase not measured."""
        errors = self.left_out.get(phase)
        if errors is None:
            return None
        wide = 1.0 + max(2.0 * errors.mean, _LEAST_BAND)
        return 1.0 / wide, wide


def tuned(engine: EngineProfile, points: Sequence[Point], hardware: HardwareProfile) -> EngineProfile:
    """The profile with the factors that fit the points and what they leave, without errors and without a refusal."""
    rows = _Rows.of([point for point in points if point.measured], hardware, engine)
    used = np.ones(rows.measured.size, dtype=np.bool_)
    found = _solve(rows, used)
    scalars = Scalars(**{name: float(value) for name, value in zip(NAMES, np.exp(found), strict=True)})
    return replace(engine, scalars=scalars, remainder=rows.remainder(rows.ratios(found), used))


def calibrated(engine: EngineProfile | None, fit: Fit, number: str) -> EngineProfile:
    """The engine's profile (or the defaults) with the factors of calibration `number` and the bands that its left-out errors give."""
    base = EngineProfile("", f"calibration {number}") if engine is None else engine
    itl, ttft = fit.band("decode") or base.itl_range, fit.band("prefill") or base.ttft_range
    return replace(base, scalars=Scalars(**fit.scalars), remainder=fit.remainder, calibration=number, itl_range=itl, ttft_range=ttft)


def fit(points: Sequence[Point], hardware: HardwareProfile, engine: EngineProfile | None) -> Fit:
    """Fit the five scalars. Raises CalibrationRefused, with what to measure, for too few points or a single concurrency."""
    points = [point for point in points if point.measured]
    groups = sorted({point.group for point in points}, key=repr)
    _refuse_too_little(points, len(groups))
    rows = _Rows.of(points, hardware, engine)
    everything = np.ones(rows.measured.size, dtype=np.bool_)
    found = _solve(rows, everything)
    before, scaled = rows.ratios(np.zeros(len(NAMES))), rows.ratios(found)
    remainder = rows.remainder(scaled, everything)
    left_out = np.full(rows.measured.size, np.nan)
    folds = min(_FOLDS, len(groups))
    for fold in range(folds):
        out = np.array([groups.index(points[place].group) % folds == fold for place in rows.owner])
        if out.any() and not out.all():
            without = rows.ratios(_solve(rows, ~out))
            left_out[out] = rows.corrected(without, rows.remainder(without, ~out))[out]
    return Fit(
        scalars={name: float(value) for name, value in zip(NAMES, np.exp(found), strict=True)},
        before=rows.errors(before),
        after=rows.errors(rows.corrected(scaled, remainder)),
        left_out=rows.errors(left_out),
        untold=_untold(rows, found),
        points=len(groups),
        run_ids=tuple(sorted({point.run_id for point in points})),
        remainder=remainder,
    )


def _refuse_too_little(points: Sequence[Point], groups: int) -> None:
    if groups < LEAST_POINTS:
        raise CalibrationRefused(
            f"A calibration needs {LEAST_POINTS} operating points and {groups} {'is' if groups == 1 else 'are'} there: measure the lowest "
            "and the highest concurrency at two prompt lengths and two numbers of devices."
        )
    counts = {point.together for point in points}
    if len(counts) == 1:
        only = next(iter(counts))
        missing = "compute and interference" if only == 1 else "bandwidth and the scheduler's step"
        raise CalibrationRefused(
            f"All {groups} operating points run {only} at once, which cannot tell {missing} apart from the rest: measure another "
            f"concurrency, {'a high' if only == 1 else 'the lowest'} one first."
        )


@dataclass(frozen=True)
class _Rows:
    """Every measured time of the points: whose it is, of which phase, its seconds, and how to price it."""

    questions: tuple[Question, ...]
    alone: tuple[bool, ...]
    owner: npt.NDArray[np.int64]
    decode: npt.NDArray[np.bool_]
    measured: Floats

    @classmethod
    def of(cls, points: Sequence[Point], hardware: HardwareProfile, engine: EngineProfile | None) -> "_Rows":
        questions, owner, decode, measured = [], [], [], []
        for place, point in enumerate(points):
            asked = replace(point.request, calibration="default")
            questions.append(Question.of(point.architecture, hardware, asked, check(asked, point.architecture, hardware), engine))
            for value, is_decode in ((point.first_token_s, False), (point.step_s, True)):
                if value is not None and value > 0:
                    owner.append(place)
                    decode.append(is_decode)
                    measured.append(value)
        return cls(
            tuple(questions),
            tuple(point.prompt_alone for point in points),
            np.array(owner, dtype=np.int64),
            np.array(decode, dtype=np.bool_),
            np.array(measured),
        )

    @property
    def scale(self) -> Floats:
        """The scale of the robust loss of each row; a prompt pass timed alone holds no queue."""
        quiet = self.decode | np.array(self.alone)[self.owner]
        return np.where(quiet, _SCALES["decode"], _SCALES["prefill"])

    def ratios(self, logs: Floats) -> Floats:
        """Predicted over measured of every row. `logs`: one setting of the five, or several as columns, which gives columns."""
        settings = np.exp(logs).reshape(len(NAMES), -1)
        scalars = Scalars(**dict(zip(NAMES, settings, strict=True)))
        first = np.empty((len(self.questions), settings.shape[1]))
        further = np.empty_like(first)
        for place, question in enumerate(self.questions):
            priced = price_request(replace(question, rates=scalars.applied(question.rates)))
            first[place] = priced.prefill.time_s if self.alone[place] else priced.ttft_s
            further[place] = priced.itl_s
        found: Floats = np.where(self.decode[:, None], further[self.owner], first[self.owner]) / self.measured[:, None]
        return found[:, 0] if np.ndim(logs) == 1 else found

    def remainder(self, ratios: Floats, used: npt.NDArray[np.bool_]) -> Remainder:
        """What `ratios` (predicted over measured) leave at the points, from the rows in `used`."""
        models = tuple(question.architecture.name for question in self.questions)
        places = tuple(tuple(float(size) for size in place_of(question.load)) for question in self.questions)
        alone = np.array(self.alone)
        quiet, waiting = np.full(len(models), NOISE["decode"]), np.where(alone, NOISE["decode"], NOISE["prefill"])

        def found(phase: Phase, mine: npt.NDArray[np.bool_], noise: Floats) -> tuple[float, ...]:
            logs = np.full(len(models), np.nan)
            logs[self.owner[mine]] = -np.log(ratios[mine])
            return tuple(map(float, weights(models, places, logs, noise, phase)))

        first = found("prefill", ~self.decode & used, waiting)
        return Remainder(models, places, first, found("decode", self.decode & used, quiet))

    def corrected(self, ratios: Floats, remainder: Remainder) -> Floats:
        """The ratios after what the remainder makes of each row."""
        factors = [remainder.factors(question.architecture.name, question.load) for question in self.questions]
        first, further = (np.array([float(pair[place]) for pair in factors]) for place in (0, 1))
        found: Floats = ratios * np.where(self.decode, further[self.owner], first[self.owner])
        return found

    def errors(self, ratios: Floats) -> dict[str, Errors]:
        """Errors by phase over the rows that have a ratio."""
        found = {}
        for phase, rows in (("prefill", ~self.decode), ("decode", self.decode)):
            values = ratios[rows & np.isfinite(ratios)] - 1.0
            if values.size:
                off = np.abs(values)
                found[phase] = Errors(int(values.size), float(np.median(off)), float(off.mean()), float(np.median(values)))
        return found


def _solve(rows: _Rows, used: npt.NDArray[np.bool_]) -> Floats:
    """Logs of the five factors that fit the rows in `used`."""
    logs = np.zeros(len(NAMES))
    cost = _cost(rows, logs, used)
    for _ in range(_ROUNDS):
        weights, residuals, slopes = _linearised(rows, logs, used)
        curvature = slopes.T @ (weights[:, None] * slopes) + np.diag(1.0 / _PRIOR**2)
        move = -np.linalg.solve(curvature, slopes.T @ (weights * residuals) + logs / _PRIOR**2)
        share = 1.0
        while share > _STEP:
            trial = np.clip(logs + share * move, -_MOST, _MOST)
            better = _cost(rows, trial, used)
            if better < cost:
                break
            share /= 2.0
        else:
            break
        done = cost - better < _ENOUGH * cost
        logs, cost = trial, better
        if done:
            break
    return logs


def _linearised(rows: _Rows, logs: Floats, used: npt.NDArray[np.bool_]) -> tuple[Floats, Floats, Floats]:
    """Weights of the robust loss, residuals in scales, and their slopes by forward differences; all settings priced at once."""
    settings = np.column_stack([logs, *(logs + _STEP * unit for unit in np.eye(len(NAMES)))])
    found = np.log(rows.ratios(settings))[used] / rows.scale[used, None]
    residuals = found[:, 0]
    return 1.0 / np.sqrt(1.0 + residuals**2), residuals, (found[:, 1:] - residuals[:, None]) / _STEP


def _cost(rows: _Rows, logs: Floats, used: npt.NDArray[np.bool_]) -> float:
    residuals = np.log(rows.ratios(logs))[used] / rows.scale[used]
    return float(2.0 * np.sum(np.sqrt(1.0 + residuals**2) - 1.0) + np.sum((logs / _PRIOR) ** 2))


def _untold(rows: _Rows, logs: Floats) -> dict[str, str]:
    """Scalars whose uncertainty is the prior's still, with what to measure for each."""
    weights, _, slopes = _linearised(rows, logs, np.ones(rows.measured.size, dtype=np.bool_))
    spread = np.sqrt(np.diag(np.linalg.inv(slopes.T @ (weights[:, None] * slopes) + np.diag(1.0 / _PRIOR**2))))
    return {name: MEASURE[name] for name, value, prior in zip(NAMES, spread, _PRIOR, strict=True) if value > _UNTOLD * prior}
