"""The shape every benchmark prints: figures, groups, and the conditions without which a figure means nothing.

A target is shown beside its figure as reached or missed and never changes the exit code: a busy machine is no fault of the code.
"""

import json
import math
import os
import platform
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, Literal

from app import __version__

_PACKAGES = ("numpy", "fastapi", "starlette", "uvicorn", "sqlalchemy", "sqlmodel", "pydantic", "jinja2")


@dataclass(frozen=True)
class Target:
    """What a figure must reach: at most or at least `bound`, in the figure's own unit."""

    bound: float
    side: Literal["at most", "at least", "exactly"] = "at most"

    def reached(self, value: float) -> bool:
        """Whether `value` keeps the bound."""
        if self.side == "exactly":
            return value == self.bound
        return value <= self.bound if self.side == "at most" else value >= self.bound


@dataclass(frozen=True)
class Report:
    """What one benchmark found. `groups` splits figures: each has `by` (what it is split by) and `n`."""

    figures: Mapping[str, float]
    groups: Sequence[Mapping[str, Any]]
    conditions: Mapping[str, Any]


def machine() -> dict[str, Any]:
    """The conditions on this machine at this moment.

    `busy`: other work keeps half of its cores or more, so that times come out long. `yardstick_s` is what a fixed piece of plain Python
    takes now: it sets figures of two machines, or of two moments, side by side.
    """
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    return {
        "phaseline": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": cores,
        "load_average_1m": round(load, 2),
        "busy": load >= cores / 2,
        "yardstick_s": _yardstick_s(),
        "sqlite": sqlite3.sqlite_version,
        "versions": {name: found for name in _PACKAGES if (found := _version(name)) is not None},
    }


def _yardstick_s() -> float:
    """Seconds for a loop of 100,000 small steps, the median of nine."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        sum(number * number % 7 for number in range(100_000))
        times.append(time.perf_counter() - start)
    return median(times)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    """The processor's name as Linux states it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of `values` that at least `share` (a fraction) of them do not exceed. Raises ValueError when there are none."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)]


def as_json(report: Report) -> str:
    """The contract's one object, figures that are no finite number as null."""
    figures = {name: value if math.isfinite(value) else None for name, value in report.figures.items()}
    shown = {"figures": figures, "groups": list(report.groups), "conditions": dict(report.conditions)}
    return json.dumps(shown, allow_nan=False, ensure_ascii=False)


def as_text(report: Report, targets: Mapping[str, Target]) -> str:
    """The same for a reader: each figure with its target, then the groups and the conditions."""
    lines = [_figure_line(name, value, targets.get(name)) for name, value in report.figures.items()]
    lines += ["", *(_group_line(group) for group in report.groups)] if report.groups else []
    lines += ["", *(f"{key}: {_words(value)}" for key, value in report.conditions.items())]
    return "\n".join(lines)


def _figure_line(name: str, value: float, target: Target | None) -> str:
    shown = f"{name:<28} {_words(value):>14}"
    if target is None:
        return shown
    verdict = "reached" if target.reached(value) else "MISSED"
    return f"{shown}  {verdict}: {target.side} {_words(target.bound)}"


def _group_line(group: Mapping[str, Any]) -> str:
    by = ", ".join(f"{key} {value}" for key, value in group["by"].items())
    rest = ", ".join(f"{key} {_words(value)}" for key, value in group.items() if key != "by")
    return f"  {by}: {rest}"


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_words(item)}" for key, item in value.items())
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
