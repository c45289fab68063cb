"""Gates: clauses that a run must not break, as a pipeline writes them, and their judgement with the reason.

    spec   = clause {"," clause}
    clause = metric ["." stat] (">" | "<") bound
    bound  = ["+" | "-"] number "%"  against the base, or  number unit  of the run by itself

`itl.p50>+5%` is broken when the median ITL is more than 5 % above the base's, `ttft.p95>500ms` when TTFT p95 is above half a second.
A change past its bound but within the noise of the comparison does not break a clause and says so. What is not known, withheld by a flag,
rests on too few samples or may not be compared breaks it, unless the caller allows that: a gate never passes because nothing was measured.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from app.domain.comparison import WITHHELD, Comparison, MetricDelta, Side, too_few
from app.domain.errors import InvalidRequest
from app.domain.metrics import METRICS, Metric
from app.domain.run import CANONICAL, Run

Operator = Literal[">", "<"]
Outcome = Literal["holds", "broken", "within noise", "missing", "withheld", "insufficient data", "not comparable"]
JUDGED_STATS = ("mean", "p50", "p90", "p95")
_MOST_CLAUSES = 50
_UNJUDGED = frozenset({"missing", "withheld", "insufficient data", "not comparable"})
_SUFFIXES = MappingProxyType({"s": "_s", "Hz": "_hz", "FLOP/byte": "_flops_per_byte"})
_TIMES_S = MappingProxyType({"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9, "min": 60.0})
_CLAUSE = re.compile(r"\s*(?P<metric>\w+)(?:\.(?P<stat>\w*))?\s*(?P<operator>[<>])(?P<bound>.*)", re.DOTALL)
_BOUND = re.compile(r"\s*(?P<sign>[+\-−]?)\s*(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*(?P<unit>.*?)\s*", re.DOTALL)


@dataclass(frozen=True)
class Clause:
    """One condition that must not come true. `bound` is a fraction of the base where `relative`, else in the metric's SI unit."""

    text: str
    key: str
    stat: str
    operator: Operator
    bound: float
    relative: bool


@dataclass(frozen=True)
class ClauseResult:
    """What became of a clause. `change` and `noise` are fractions of the base; `note` says why where it could not be judged."""

    clause: Clause
    outcome: Outcome
    broken: bool
    base: float | None = None
    value: float | None = None
    change: float | None = None
    noise: float | None = None
    n: tuple[int | None, int | None] = (None, None)
    note: str = ""


@dataclass(frozen=True)
class Gate:
    """The judgement of one run by a spec; `base_id` is None where there was no base to compare with.

    `base_ids` and `run_ids` are the numbers of all runs of each side: of repeats, whose means are judged, there are several.
    """

    base_id: int | None
    run_id: int
    results: tuple[ClauseResult, ...]
    base_ids: tuple[int, ...] = ()
    run_ids: tuple[int, ...] = ()

    @property
    def passed(self) -> bool:
        """True when no clause is broken."""
        return not any(result.broken for result in self.results)


def _names() -> Mapping[str, str]:
    """The key of every name that a metric may be called by: the key itself, and the key without its unit."""
    names = {}
    for key, metric in METRICS.items():
        names[key.removesuffix(_SUFFIXES.get(metric.unit, "_per_s"))] = key
    return names | {key: key for key in METRICS}


NAMES: Mapping[str, str] = _names()


def parse_spec(texts: Sequence[str]) -> tuple[Clause, ...]:
    """The clauses of one or more specs, in order. Raises InvalidRequest saying at which character and what may stand there."""
    clauses = tuple(clause for text in texts for clause in _clauses(text))
    if len(clauses) > _MOST_CLAUSES:
        raise InvalidRequest("spec", f"{len(clauses)} clauses are too many: {_MOST_CLAUSES} at most.")
    return clauses


def _clauses(spec: str) -> list[Clause]:
    found, at = [], 1
    for part in spec.split(","):
        found.append(_clause(part, at))
        at += len(part) + 1
    return found


def _clause(part: str, at: int) -> Clause:
    if not part.strip():
        raise _unreadable(at, "there is no clause here: write one such as itl.p50>+5%")
    match = _CLAUSE.fullmatch(part)
    if match is None:
        start = re.match(r"\s*[\w.]*\s*", part)
        raise _unreadable(at + (start.end() if start else 0), "a clause is a metric, > or <, and a bound, such as itl.p50>+5%")
    metric = _metric(match["metric"], at + match.start("metric"))
    stat = _stat(metric, match["stat"], at + (match.end("metric") if match["stat"] is None else match.start("stat")))
    bound, relative = _bound(match["bound"], metric, at + match.start("bound"))
    operator: Operator = ">" if match["operator"] == ">" else "<"
    return Clause(" ".join(part.split()), metric.key, stat, operator, bound, relative)


def _metric(name: str, at: int) -> Metric:
    key = NAMES.get(name)
    if key is None:
        raise _unreadable(at, "there is no metric of this name; the glossary lists them, such as ttft, itl, output_tokens_per_s")
    return METRICS[key]


def _stat(metric: Metric, stat: str | None, at: int) -> str:
    if metric.kind == "rate":
        if stat not in (None, "value"):
            raise _unreadable(at, f"{metric.key} is one figure and has no statistics: write it without")
        return "value"
    if stat == "p99":
        raise _unreadable(at, "p99 is shown and never decides, since it rests on too few requests: take p50, p90, p95 or mean")
    if stat not in JUDGED_STATS:
        raise _unreadable(at, f"say which statistic of {metric.key}: {', '.join(f'.{name}' for name in JUDGED_STATS)}")
    return stat


def _bound(text: str, metric: Metric, at: int) -> tuple[float, bool]:
    match = _BOUND.fullmatch(text)
    if match is None:
        raise _unreadable(at, "the bound is a number with % or a unit, such as +5% or 500ms")
    size, sign, unit = float(match["number"]), match["sign"], match["unit"]
    if not math.isfinite(size):
        raise _unreadable(at + match.start("number"), "this number is too large")
    if unit == "%":
        return (-size if sign in ("-", "−") else size) / 100, True
    where = at + match.start("unit")
    if sign:
        raise _unreadable(where, "a bound with a sign is a change against the base, so it needs a %")
    if metric.unit == "s":
        if unit not in _TIMES_S:
            raise _unreadable(where, f"{metric.key} is a time: give the bound a %, or a unit such as ms or s")
        return size * _TIMES_S[unit], False
    if unit not in ("", metric.unit):
        raise _unreadable(where, f"{metric.key} is in {metric.unit}: write that unit, none, or a %")
    return size, False


def _unreadable(at: int, what: str) -> InvalidRequest:
    return InvalidRequest("spec", f"The gate cannot be read at character {at}: {what}.")


def judge(clauses: Sequence[Clause], comparison: Comparison, allow_missing: bool = False) -> Gate:
    """Each clause against the comparison: relative ones by its row, absolute ones by the other run alone."""
    rows = {(row.key, row.stat): row for row in comparison.metrics}
    results = [
        _against_base(clause, rows.get((clause.key, clause.stat)), comparison, allow_missing)
        if clause.relative
        else _alone(clause, comparison.other.run, allow_missing)
        for clause in clauses
    ]
    return Gate(comparison.base.id, comparison.other.id, tuple(results), comparison.base.ids, comparison.other.ids)


def judge_alone(clauses: Sequence[Clause], side: Side, why: str, allow_missing: bool = False) -> Gate:
    """A run without a base, and `why` there is none: absolute clauses are judged, relative ones have nothing to be set against."""
    results = [
        _unjudged(clause, "missing", why, allow_missing) if clause.relative else _alone(clause, side.run, allow_missing)
        for clause in clauses
    ]
    return Gate(None, side.id, tuple(results), (), side.ids)


def _against_base(clause: Clause, row: MetricDelta | None, comparison: Comparison, allow_missing: bool) -> ClauseResult:
    if row is None:
        return _unjudged(clause, "missing", f"neither run has it{_instead(clause, comparison.other.run)}", allow_missing)
    known: Mapping[str, float | None] = {"base": row.base, "value": row.other}
    if row.note == WITHHELD:
        return _unjudged(clause, "withheld", "a flag of one of the runs withholds it", allow_missing)
    if row.verdict == "not comparable":
        return _unjudged(clause, "not comparable", " ".join(comparison.comparable.reasons) or row.note, allow_missing, **known)
    if row.base is None or row.other is None:
        side, run = ("base", comparison.base.run) if row.base is None else ("run", comparison.other.run)
        return _unjudged(clause, "missing", f"the {side} does not have it{_instead(clause, run)}", allow_missing, **known)
    if row.change is None:
        return _unjudged(clause, "insufficient data", "the base is 0, so there is no relative change", allow_missing, **known)
    if row.verdict == "insufficient data":
        return _unjudged(clause, "insufficient data", row.note, allow_missing, **known)
    outcome: Outcome = "holds"
    if _beyond(clause, row.change):
        outcome = "broken" if abs(row.change) > row.noise else "within noise"
    return ClauseResult(clause, outcome, outcome == "broken", row.base, row.other, row.change, row.noise, row.n)


def _alone(clause: Clause, run: Run, allow_missing: bool) -> ClauseResult:
    """An absolute clause: the figure must be the run's own, of our definition, and rest on enough requests."""
    if run.withheld & {clause.key, f"{clause.key}.{clause.stat}"}:
        return _unjudged(clause, "withheld", "a flag of the run withholds it", allow_missing)
    spread, rate = run.distribution(clause.key), run.rate(clause.key)
    value = rate.value if rate else spread.stat(clause.stat) if spread else None
    definition = rate.definition if rate else spread.definition if spread else CANONICAL
    n = spread.n if spread else None
    if value is None:
        return _unjudged(clause, "missing", f"the run does not have it{_instead(clause, run)}", allow_missing)
    if definition != CANONICAL:
        return _unjudged(clause, "not comparable", f"the tool means something else by it: {definition}", allow_missing, value=value)
    if why := too_few(clause.stat, (n,)):
        return _unjudged(clause, "insufficient data", why, allow_missing, value=value)
    outcome: Outcome = "broken" if _beyond(clause, value) else "holds"
    return ClauseResult(clause, outcome, outcome == "broken", None, value, None, None, (None, n))


def _instead(clause: Clause, run: Run) -> str:
    """The statistics that a run does have of a metric, as a hint."""
    found = run.distribution(clause.key)
    known = [name for name in JUDGED_STATS if found is not None and found.stat(name) is not None]
    return f"; it has {' and '.join(f'{clause.key}.{name}' for name in known)}" if known else ""


def _beyond(clause: Clause, value: float) -> bool:
    return value > clause.bound if clause.operator == ">" else value < clause.bound


def _unjudged(
    clause: Clause, outcome: Outcome, note: str, allow_missing: bool, base: float | None = None, value: float | None = None
) -> ClauseResult:
    return ClauseResult(clause, outcome, not allow_missing, base, value, note=note)


def is_unjudged(outcome: Outcome) -> bool:
    """True for a clause that could not be decided, whether or not that breaks it."""
    return outcome in _UNJUDGED
