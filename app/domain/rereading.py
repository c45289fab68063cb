"""A file read again by an importer that has changed: which of its runs are which, and what changed in each.

A run keeps its number through this, so it has to be found again. Runs are paired by their operating point (what was measured, at which
load and lengths), first where all of it agrees, then where load and lengths do, then load alone; what is left is paired in the order of
the file, when as many are left on both sides. Everything else is new, or gone.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isclose
from typing import Any, Literal, NamedTuple

from app.domain.identity import SAID, Words
from app.domain.run import STATS, Distribution, Run

Part = Literal["word", "fact", "workload", "requests", "metric", "flag", "warning", "label"]
Value = str | int | float | bool | None

SAME = 1e-9
_DIGITS = 6
_FACTS = (
    "format", "engine_version", "started_at", "duration_s", "load_mode", "measured_at", "token_count_source",
)  # fmt: skip


class OperatingPoint(NamedTuple):
    """What tells the runs of one file apart, from the file's own words and figures. Plain texts and numbers, so that it can be kept."""

    measured: tuple[Value, ...]
    lengths: tuple[Value, ...]
    load: tuple[Value, ...]

    def as_data(self) -> list[list[Value]]:
        """As plain data."""
        return [list(part) for part in self]

    @classmethod
    def from_data(cls, data: Sequence[Sequence[Value]]) -> "OperatingPoint":
        """From what `as_data` gave. Raises ValueError or TypeError for anything else."""
        measured, lengths, load = (tuple(part) for part in data)
        return cls(measured, lengths, load)


def operating_point(run: Run, by_file: Words) -> OperatingPoint:
    """The operating point of a run whose file says `by_file`."""
    work = run.workload
    return OperatingPoint(
        measured=(
            by_file.get("model"), by_file.get("label"), run.started_at.isoformat() if run.started_at else None, run.requests.completed,
        ),
        lengths=(_rounded(work.prompt_tokens_mean), _rounded(work.output_tokens_mean), work.context_depth_tokens),
        load=(run.load_mode, work.concurrency, _rounded(work.request_rate_per_s), work.rate_unlimited),
    )  # fmt: skip


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


@dataclass(frozen=True)
class Matching:
    """Positions that belong together, (before, now); and those that have no partner."""

    pairs: tuple[tuple[int, int], ...]
    gone: tuple[int, ...]
    added: tuple[int, ...]


def match(before: Sequence[OperatingPoint], now: Sequence[OperatingPoint]) -> Matching:
    """Which operating point of a file is which after it was read again."""
    left, right = list(range(len(before))), list(range(len(now)))
    pairs: list[tuple[int, int]] = []

    def pair(key: Callable[[OperatingPoint], Hashable], unequal: bool) -> None:
        old, new = defaultdict(list), defaultdict(list)
        for position in left:
            old[key(before[position])].append(position)
        for position in right:
            new[key(now[position])].append(position)
        for each, positions in old.items():
            if unequal or len(positions) == len(new[each]):
                pairs.extend(zip(positions, new[each], strict=False))
        taken_left, taken_right = {one for one, _ in pairs}, {other for _, other in pairs}
        left[:] = [position for position in left if position not in taken_left]
        right[:] = [position for position in right if position not in taken_right]

    pair(lambda point: point, unequal=True)
    pair(lambda point: (point.lengths, point.load), unequal=False)
    pair(lambda point: point.load, unequal=False)
    if len(left) == len(right):
        pair(lambda point: None, unequal=False)
    return Matching(tuple(sorted(pairs)), tuple(left), tuple(right))


@dataclass(frozen=True)
class Change:
    """One thing that is not as it was; None where it was not there before, or is not there now."""

    part: Part
    key: str
    old: Value
    new: Value

    @property
    def kind(self) -> Literal["added", "gone", "changed"]:
        """Whether it came, went, or is another."""
        return "added" if self.old is None else "gone" if self.new is None else "changed"


def changes(before: Run, now: Run) -> tuple[Change, ...]:
    """Everything that differs between two readings of one run: words, facts, workload, requests, each statistic, flags, warnings, labels.

    Figures within a billionth of each other are the same. Samples are not compared: what follows from them is.
    """
    parts: tuple[tuple[Part, Mapping[str, Value], Mapping[str, Value]], ...] = (
        ("word", _fields(before, SAID), _fields(now, SAID)),
        ("fact", _facts(before), _facts(now)),
        ("workload", asdict(before.workload), asdict(now.workload)),
        ("requests", asdict(before.requests), asdict(now.requests)),
        ("metric", _figures(before), _figures(now)),
        ("flag", _flags(before), _flags(now)),
        ("warning", {text: text for text in before.warnings}, {text: text for text in now.warnings}),
        ("label", dict(before.labels), dict(now.labels)),
    )
    return tuple(
        Change(part, key, old.get(key), new.get(key))
        for part, old, new in parts
        for key in (*old, *(key for key in new if key not in old))
        if not _same(old.get(key), new.get(key))
    )


def _fields(run: Run, names: Sequence[str]) -> dict[str, Value]:
    return {name: getattr(run, name) for name in names}


def _facts(run: Run) -> dict[str, Value]:
    facts: dict[str, Any] = _fields(run, _FACTS)
    return {**facts, "started_at": run.started_at.isoformat() if run.started_at else None}


def _figures(run: Run) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for key, value in run.metrics.items():
        if isinstance(value, Distribution):
            found |= {f"{key}.{stat}": figure for stat in STATS if (figure := value.stat(stat)) is not None}
            found[f"{key}.n"] = value.n
        else:
            found |= {f"{key}.value": value.value, f"{key}.scope": value.scope}
        found |= {f"{key}.from": value.origin, f"{key}.definition": value.definition}
    return found


def _flags(run: Run) -> dict[str, Value]:
    found: dict[str, str] = {}
    for flag in run.flags:
        withheld = f" Withheld: {', '.join(flag.withholds)}." if flag.withholds else ""
        found[flag.flag] = " ".join(filter(None, (found.get(flag.flag), f"{flag.evidence}{withheld}")))
    return dict(found)


def _same(old: Value, new: Value) -> bool:
    if isinstance(old, float) and isinstance(new, int | float):
        return isclose(old, new, rel_tol=SAME, abs_tol=0.0)
    return old == new
