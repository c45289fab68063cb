"""What a curve over load, prompt length or devices says: a step, a plateau, a quadratic term, a part that more devices do not remove.

step      two neighbouring batches between which ITL jumps while it hardly moves on either side
prompt    ttft = a n + b n²       through the shortest and the longest prompt, tested on those between
devices   itl  = a / tp + c       least squares
running   out_rate · itl          Little's law
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from app.domain.diagnosis.thresholds import PLATEAU, STEP
from app.domain.diagnosis.times import first_token, rate_of, step
from app.domain.run import Run


@dataclass(frozen=True)
class Level:
    """One point of a curve: where it lies on the axis, and what was derived there, by name."""

    axis: str
    at: float
    figures: Mapping[str, float]


def axis_of(runs: Sequence[Run]) -> str | None:
    """What differs between runs of one deployment: tp, prompt_tokens or concurrency; None for repeats of one point."""
    axes: dict[str, list[float | None]] = {
        "tp": [run.tp for run in runs],
        "prompt_tokens": [run.workload.prompt_tokens_mean for run in runs],
        "concurrency": [run.workload.concurrency for run in runs],
    }
    return next((name for name, values in axes.items() if None not in values and len(set(values)) > 1), None)


def place(run: Run, axis: str) -> float:
    """Where a run lies on an axis that all have."""
    found = {"tp": run.tp, "prompt_tokens": run.workload.prompt_tokens_mean, "concurrency": run.workload.concurrency}[axis]
    return float(found or 0.0)


def along(runs: Sequence[Run]) -> tuple[Run, ...]:
    """The runs in the order of what differs between them."""
    axis = axis_of(runs)
    return tuple(runs) if axis is None else tuple(sorted(runs, key=lambda run: place(run, axis)))


def step_in_batch(runs: Sequence[Run]) -> Mapping[str, float]:
    """Where ITL jumps over the batch and how much, with the slopes below and above; empty where it does not."""
    points = [(place(run, "concurrency"), value) for run in along(runs) if (value := step(run)) is not None]
    if axis_of(runs) != "concurrency" or len(points) < 4:
        return {}
    ratios = [high[1] / low[1] for low, high in pairwise(points)]
    at = int(np.argmax(ratios))
    rest = [ratio for index, ratio in enumerate(ratios) if index != at]
    if ratios[at] < STEP or max(rest) >= 1 + (ratios[at] - 1) / 2:
        return {}
    found = {"step_from_batch": points[at][0], "step_to_batch": points[at + 1][0], "step_ratio": ratios[at]}
    for name, part in (("slope_below_s", points[: at + 1]), ("slope_above_s", points[at + 1 :])):
        if len(part) > 1:
            found[name] = (part[-1][1] - part[0][1]) / (part[-1][0] - part[0][0])
    return found


def prompt_curve(runs: Sequence[Run]) -> tuple[Mapping[str, float], tuple[Level, ...]]:
    """The quadratic fit of the first token over the prompt, and what it says at each length."""
    if axis_of(runs) != "prompt_tokens":
        return {}, ()
    ordered = along(runs)
    ends = step(ordered[0]), step(ordered[-1])
    grown = {"step_over_prompt_change": ends[1] / ends[0] - 1} if ends[0] and ends[1] is not None else {}
    points = [(place(run, "prompt_tokens"), value) for run in ordered if (value := first_token(run)) is not None]
    if len(points) < 3:
        return grown, ()
    (n0, t0), (n1, t1) = points[0], points[-1]
    b = (t1 / n1 - t0 / n0) / (n1 - n0)
    a = t0 / n0 - b * n0
    between = [abs((a * n + b * n * n) / t - 1) for n, t in points[1:-1]]
    found = {**grown, "linear_s_per_token": a, "quadratic_s_per_token2": b, "fit_error": max(between), "first_token_growth": t1 / t0}
    if a > 0 and b > 0:
        found |= {"half_point_tokens": a / b, "quadratic_share": b * n1 * n1 / (a * n1 + b * n1 * n1)}
    levels = tuple(
        Level("prompt_tokens", n, {"predicted_s": a * n + b * n * n, "quadratic_share": b * n / (a + b * n), "measured_s": t})
        for n, t in points
    )
    return found, levels


def device_curve(runs: Sequence[Run]) -> Mapping[str, float]:
    """What of a step falls with more devices and what stays."""
    points = [(place(run, "tp"), value) for run in along(runs) if (value := step(run)) is not None]
    if axis_of(runs) != "tp" or len(points) < 2:
        return {}
    shares, times = np.array([1 / n for n, _ in points]), np.array([value for _, value in points])
    slope, fixed = (float(value) for value in np.polyfit(shares, times, 1))
    (n0, t0), (n1, t1) = points[0], points[-1]
    found = {
        "tp_least": n0,
        "tp_most": n1,
        "tp_speedup": t0 / t1,
        "tp_efficiency": t0 / t1 / (n1 / n0),
        "step_least_s": t0,
        "step_most_s": t1,
    }
    if len(points) > 2:
        found |= {"divided_s": slope, "fixed_s": fixed, "fixed_share": fixed / t1}
    return found


def load_curve(runs: Sequence[Run]) -> tuple[Mapping[str, float], tuple[Level, ...]]:
    """How rate, step, first token and running sequences go over rising load, from the first level of the plateau on."""
    ordered = along(runs)
    if axis_of(runs) != "concurrency":
        return {}, ()
    levels = []
    for run in ordered:
        rate, step_s, first = rate_of(run, "output_tokens_per_s"), step(run), first_token(run)
        figures = {"output_tokens_per_s": rate, "step_s": step_s, "first_token_s": first}
        if rate is not None and step_s is not None:
            figures["running"] = rate * step_s
        kept = {name: value for name, value in figures.items() if value is not None}
        levels.append(Level("concurrency", place(run, "concurrency"), kept))
    return _plateau(levels), tuple(levels)


def _plateau(levels: Sequence[Level]) -> Mapping[str, float]:
    """The highest level against the lowest whose output rate is within PLATEAU of it."""
    top = levels[-1].figures
    found = {"clients": levels[-1].at}
    if "running" in top:
        found |= {"running": top["running"], "running_over_clients": top["running"] / levels[-1].at}
    rate = top.get("output_tokens_per_s")
    if rate is None:
        return found
    flat = [each for each in levels[:-1] if abs(each.figures.get("output_tokens_per_s", 0.0) / rate - 1) <= PLATEAU]
    if flat:
        first = flat[0]
        found |= {"plateau_from": first.at, "plateau_to": levels[-1].at, "plateau_output_tokens_per_s": rate}
        for name in ("step_s", "first_token_s"):
            if name in first.figures and name in top:
                found |= {f"plateau_{name.removesuffix('_s')}_change": top[name] / first.figures[name] - 1, f"plateau_{name}": top[name]}
    return found
