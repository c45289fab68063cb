"""A figure of a series over time: its levels, the noise around them, where it changed, and which settings changed with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Literal

from app.domain.change_points import MOST, levels
from app.domain.comparison import NOISE_FLOOR, noise_of
from app.domain.metrics import Metric
from app.domain.noise import spread

SettingValue = str | int | None
LABEL = "label: "
"""How the name of a setting begins that a file gives as one of its own labels."""


@dataclass(frozen=True)
class TrendPoint:
    """One run. `value` is None where the figure is not there or is withheld, and `why` says so."""

    run_id: int
    name: str
    at: datetime
    value: float | None
    n: int | None = None
    why: str = ""


@dataclass(frozen=True)
class Level:
    """A stretch of runs around one value: `low` to `high` is the noise around their median. `spread` is None with fewer than three runs."""

    first: datetime
    last: datetime
    runs: tuple[int, ...]
    centre: float
    spread: float | None

    @property
    def noise(self) -> float:
        """The relative change that does not count."""
        return noise_of(self.spread)

    @property
    def low(self) -> float:
        """Lower end of the noise."""
        return self.centre * (1 - self.noise)

    @property
    def high(self) -> float:
        """Upper end of the noise."""
        return self.centre * (1 + self.noise)


@dataclass(frozen=True)
class LevelChange:
    """From `run_id` on, the first run of the new level, the median is another one; `change` is a fraction of the old."""

    run_id: int
    before_run_id: int
    at: datetime
    before: float
    after: float
    verdict: Literal["improved", "regressed", "moved"]

    @property
    def change(self) -> float:
        """Relative change of the median."""
        return self.after / self.before - 1


@dataclass(frozen=True)
class Trend:
    """One statistic of one metric over the runs of a series, oldest first."""

    metric: Metric
    stat: str
    points: tuple[TrendPoint, ...]
    levels: tuple[Level, ...]
    changes: tuple[LevelChange, ...]

    @property
    def known(self) -> tuple[TrendPoint, ...]:
        """The points that have a value."""
        return tuple(point for point in self.points if point.value is not None)


def trend(metric: Metric, stat: str, points: Sequence[TrendPoint]) -> Trend:
    """The levels of `points` (oldest first; the newest MOST with a value above 0 count) and where one follows another.

    A level that differs from the one before by no more than 3 % is no other level, however sure it is.
    """
    known = [(point, point.value) for point in points if point.value is not None and point.value > 0][-MOST:]
    values = [value for _, value in known]
    stretches = _merged(values, [range(found.start, found.stop) for found in levels(values)])
    found = tuple(
        Level(
            first=known[stretch.start][0].at,
            last=known[stretch.stop - 1][0].at,
            runs=tuple(known[index][0].run_id for index in stretch),
            centre=median(values[index] for index in stretch),
            spread=spread([values[index] for index in stretch]),
        )
        for stretch in stretches
    )
    changes = tuple(_change(metric, before, after) for before, after in pairwise(found))
    return Trend(metric, stat, tuple(points), found, changes)


def _merged(values: Sequence[float], stretches: Sequence[range]) -> list[range]:
    """Neighbouring stretches put together until the medians of all neighbours differ by more than 3 %."""
    kept = list(stretches)
    place = 1
    while place < len(kept):
        before, after = (median(values[index] for index in stretch) for stretch in (kept[place - 1], kept[place]))
        if abs(after / before - 1) > NOISE_FLOOR:
            place += 1
            continue
        kept[place - 1 : place + 1] = [range(kept[place - 1].start, kept[place].stop)]
        place = max(1, place - 1)
    return kept


def _change(metric: Metric, before: Level, after: Level) -> LevelChange:
    if metric.better == "neither":
        return LevelChange(after.runs[0], before.runs[-1], after.first, before.centre, after.centre, "moved")
    better = (after.centre < before.centre) == (metric.better == "lower")
    return LevelChange(after.runs[0], before.runs[-1], after.first, before.centre, after.centre, "improved" if better else "regressed")


@dataclass(frozen=True)
class SettingChange:
    """A setting that is another one from `run_id` on; None where it is not known."""

    run_id: int
    at: datetime
    key: str
    before: SettingValue
    after: SettingValue


def telling(settings: Sequence[Mapping[str, str | int]]) -> frozenset[str]:
    """The settings that tell configurations apart. A label that is another one in every run (a commit, a seed) tells none."""
    told: dict[str, list[str | int]] = {}
    for each in settings:
        for name, value in each.items():
            told.setdefault(name, []).append(value)
    return frozenset(name for name, values in told.items() if not name.startswith(LABEL) or len(set(values)) < len(values))


def setting_changes(runs: Sequence[tuple[int, datetime, Mapping[str, str | int]]]) -> tuple[SettingChange, ...]:
    """What changed between one run and the next: (number, moment, settings) of each, oldest first."""
    names = telling([settings for _, _, settings in runs])
    found = []
    for (_, _, before), (run_id, at, after) in pairwise(runs):
        # Settings come before the labels, one of which often repeats in the tool's words what a setting says.
        changed = [name for name in sorted(names, key=lambda name: (name.startswith(LABEL), name)) if before.get(name) != after.get(name)]
        moves: set[tuple[SettingValue, SettingValue]] = set()
        for name in changed:
            move = (before.get(name), after.get(name))
            if not (name.startswith(LABEL) and move in moves):
                found.append(SettingChange(run_id, at, name, *move))
            moves.add(move)
    return tuple(found)
