"""Scores of predictions against measurements: which rows count where, what is excluded and why, and the figures of each group.

A row gives one point for each phase it measures. The error of a point is |predicted - measured| / measured of a time, never of a rate.
Excluded are only: rows marked as speculative, rows that their publisher rejected, and rows that beat the floor, which nothing can.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.domain.checks.physics import CLIENTS_THAT_END_APART, share_of_arithmetic
from app.domain.errors import InvalidRequest
from app.domain.measurement import REJECTED, SPECULATIVE, Phase
from app.domain.prediction import Prediction, Request
from app.domain.profile_choice import chosen
from app.domain.rates import Formats
from app.domain.serving import predict
from benchmarks.asked import Asked

LONG_CONTEXT_TOKENS = 8000
SIXTEEN_BIT = ("fp32", "bf16", "fp16")


@dataclass(frozen=True)
class Point:
    """One measured time with what was predicted for it, in seconds, and the range that the prediction carries."""

    asked: Asked
    phase: Phase
    measured_s: float
    predicted_s: float
    low_s: float
    high_s: float
    floor_s: float
    over_peak: bool = False

    @property
    def error(self) -> float:
        """|predicted - measured| / measured."""
        return abs(self.predicted_s - self.measured_s) / self.measured_s

    @property
    def covered(self) -> bool:
        """Whether the measurement lies in the range."""
        return self.low_s <= self.measured_s <= self.high_s

    @property
    def excluded(self) -> str | None:
        """Why the point does not count, None where it does."""
        flags = self.asked.measurement.flags
        if SPECULATIVE in flags:
            return "speculative decoding, as the source says"
        if REJECTED in flags:
            return "rejected by its publisher"
        if self.measured_s < self.floor_s:
            return "impossible: below the floor at the specified rates"
        if self.over_peak:
            return "impossible: the prompts of all clients need more than the specified arithmetic"
        return None


def points_of(asked: Asked) -> list[Point]:
    """The points of one row. Raises InvalidRequest where it cannot be priced."""
    row = asked.measurement
    prediction = _predict(asked, asked.request)
    over, found = _over_peak(asked, prediction), []
    if row.tpot_s is not None:
        alone = row.kind == "disaggregated"  # no prompt falls between two tokens, also where its pools are not stated
        itl = prediction.itl_s - (prediction.interference_s if alone else 0.0)
        scale = itl / prediction.itl_s
        low, high = (edge * scale for edge in prediction.itl_range_s)
        found.append(Point(asked, "decode", row.tpot_s, itl, low, high, prediction.decode.floor_s, over))
    first = row.first_token_s
    if first is not None:
        if row.prefill_layout is not None and prediction.pools is None:
            at = row.prefill_layout
            pool = replace(asked.request, concurrency=None, batch=1, tp=at.tp, dp=at.dp, ep=at.ep if asked.experts else 1)
            prediction = _predict(asked, pool)
        whole = prediction.ttft_s if row.ttft_s is not None else prediction.prefill.time_s
        low, high = (edge * whole / prediction.ttft_s for edge in prediction.ttft_range_s)
        found.append(Point(asked, "prefill", first, whole, low, high, prediction.prefill.floor_s, over))
    return found


def _over_peak(asked: Asked, prediction: Prediction) -> bool:
    """Whether the clients of a closed loop, at the times measured, ask for more arithmetic than all devices have: the run's own check."""
    row, request = asked.measurement, asked.request
    if row.kind != "served" or row.ttft_s is None or row.tpot_s is None or request.concurrency is None:
        return False
    pace = request.concurrency / (row.ttft_s + request.further_tokens * row.tpot_s)
    peak = prediction.ridge_peak * asked.hardware.bandwidth_bytes_per_s
    return share_of_arithmetic(prediction, peak, pace, request.tp * request.pp * request.dp) > CLIENTS_THAT_END_APART


def _predict(asked: Asked, request: Request) -> Prediction:
    return predict(asked.architecture, asked.hardware, request, engine=asked.profile)


def priced(rows: Iterable[Asked]) -> tuple[list[Point], list[tuple[Asked, str]]]:
    """Points of all rows, and the rows that the model refuses with its sentence."""
    points: list[Point] = []
    refused = []
    for one in rows:
        try:
            points += points_of(one)
        except InvalidRequest as fault:
            refused.append((one, str(fault)))
    return points, refused


def known_profile(asked: Asked) -> bool:
    """Whether the engine has a fit for such a question that saw this device."""
    profile = chosen(asked.profile, asked.architecture, asked.hardware, Formats.of(asked.request, asked.architecture))
    return profile is not None and asked.hardware.slug in profile.fitted_on


Population = Callable[[Point], bool]


def _served(point: Point, phase: Phase, experts: bool) -> bool:
    return point.asked.measurement.kind == "served" and point.phase == phase and point.asked.experts == experts


def _single(point: Point, phase: Phase) -> bool:
    row = point.asked.measurement
    return row.kind == "stream" and row.sequences == 1 and "aggregate" not in row.flags and point.phase == phase


POPULATIONS: Mapping[str, Population] = {
    "dense_tpot": lambda point: _served(point, "decode", experts=False),
    "moe_tpot": lambda point: _served(point, "decode", experts=True),
    "dense_ttft": lambda point: _served(point, "prefill", experts=False),
    "moe_ttft": lambda point: _served(point, "prefill", experts=True),
    "disagg_tpot": lambda point: point.asked.measurement.kind == "disaggregated" and point.phase == "decode",
    "decode16": lambda point: _single(point, "decode") and point.asked.request.weight_dtype in SIXTEEN_BIT,
    "decode_quantised": lambda point: _single(point, "decode") and point.asked.request.weight_dtype not in SIXTEEN_BIT,
    "prefill": lambda point: _single(point, "prefill"),
}


def vendor(point: Point) -> Hashable:
    """Who makes the device."""
    return point.asked.hardware.vendor


def kind_of_row(point: Point) -> str:
    """Served, disaggregated (and whether the source says how many workers each pool has) or stream, and the class of the model."""
    row = point.asked.measurement
    kind: str = row.kind
    if row.kind == "disaggregated":
        kind += " on stated pools" if point.asked.request.prefill_replicas is not None else " without a count of workers"
    return f"{kind}, {'mixture' if point.asked.experts else 'dense'}"


def quantised(point: Point) -> str:
    """Quantised weights or not."""
    return "quantised" if point.asked.bits != "16bit" else "16 bit"


def context(point: Point) -> str:
    """Long context or short."""
    request = point.asked.request
    return "long context" if request.prompt_tokens >= LONG_CONTEXT_TOKENS else "short context"


GROUPINGS: Mapping[str, Callable[[Point], Hashable]] = {
    "class": kind_of_row,
    "engine": lambda point: point.asked.engine,
    "vendor": vendor,
    "device": lambda point: point.asked.hardware.slug,
    "weights": quantised,
    "context": context,
}


def statistics(points: Sequence[Point]) -> dict[str, Any]:
    """n, median and mean error, bias (median of predicted / measured - 1), share within 20 % and share inside the range."""
    errors = np.array([point.error for point in points])
    ratios = np.array([point.predicted_s / point.measured_s for point in points])
    return {
        "n": len(points),
        "median_ape": float(np.median(errors)),
        "mean_ape": float(np.mean(errors)),
        "bias": float(np.median(ratios) - 1.0),
        "within_20": float(np.mean(errors <= 0.2)),
        "covered": float(np.mean([point.covered for point in points])),
    }


def groups(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Statistics by phase and each grouping, largest groups first."""
    found = []
    for name, key in GROUPINGS.items():
        members: dict[tuple[str, Hashable], list[Point]] = {}
        for point in points:
            members.setdefault((point.phase, key(point)), []).append(point)
        for (phase, value), mine in sorted(members.items(), key=lambda item: (item[0][0], -len(item[1]))):
            found.append({"by": {"phase": phase, name: value}, **statistics(mine)})
    return found


def exclusions(points: Sequence[Point]) -> list[dict[str, Any]]:
    """A group for each reason and phase."""
    counted: dict[tuple[str, str], int] = {}
    for point in points:
        if point.excluded is not None:
            counted[point.phase, point.excluded] = counted.get((point.phase, point.excluded), 0) + 1
    return [{"by": {"excluded": reason, "phase": phase}, "n": n} for (phase, reason), n in sorted(counted.items())]
