"""Two runs set side by side: may they be compared, what moved, by how much, and does it add up.

    delta total = delta TTFT + delta((output tokens - 1) x ITL) + remainder

A change counts when it exceeds the larger of 3 % and twice the spread between repeats; with single runs that floor is all there is, and
the comparison says so. p99 is shown and never decides which phase moved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from app.domain.attribution import Attribution, attribute
from app.domain.metrics import METRICS, Better
from app.domain.observed import Observed, observed_first_token, observed_step
from app.domain.pair_flags import pair_flags
from app.domain.percentile_rules import percentile_rule
from app.domain.point import Point
from app.domain.point_change import Pricing
from app.domain.reconciling import reconcile
from app.domain.run import Distribution, Flag, Rate, Run

Verdict = Literal["improved", "unchanged", "regressed", "insufficient data", "not comparable"]
MovedPhase = Literal["prefill", "decode", "both", "queue", "none"]
SettingValue = str | int | float | None

SINGLE_RUNS = "Single runs on both sides: the spread between repeats is not known, so a change counts from 3 %."
REPEATED = "A change counts from 3 %, or from twice the spread between repeats of these runs where that is larger."
NOISE_FLOOR = 0.03
SPREADS_PER_NOISE = 2.0
Spreads = Mapping[tuple[str, str], float]
"""Spread between repeats as a share of their mean, by (metric, statistic)."""
NO_SPREADS: Spreads = MappingProxyType({})
LENGTH_TOLERANCE = 0.05
SAMPLES_BEYOND_PERCENTILE = 10
WITHHELD = "withheld by a flag"
_TAIL = {"p90": 0.10, "p95": 0.05, "p99": 0.01}
_COMPARED_STATS = ("mean", "p50", "p90", "p95", "p99")


@dataclass(frozen=True)
class Side:
    """One run in a comparison; `settings` are the facts beside the metrics, by name.

    `point` is what the performance model prices it by, None where it cannot: then `unpriced` says why. `repeats` are the numbers of the
    runs that `run` is the mean of, where a side holds several.
    """

    id: int
    run: Run
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    point: Point | None = None
    unpriced: tuple[str, ...] = ()
    repeats: tuple[int, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """The numbers of all its runs."""
        return self.repeats or (self.id,)


@dataclass(frozen=True)
class Difference:
    """A setting that is not the same on both sides."""

    key: str
    base: SettingValue
    other: SettingValue


@dataclass(frozen=True)
class Comparable:
    """Whether the two answer the same question; `reasons` are sentences when they do not, `differing` lists every setting that differs."""

    ok: bool
    reasons: tuple[str, ...]
    differing: tuple[Difference, ...]
    agreeing: int


@dataclass(frozen=True)
class MetricDelta:
    """One statistic on both sides, in its SI unit. `ratio` is other / base, `change` ratio - 1, `noise` the change that does not count."""

    key: str
    stat: str
    base: float | None
    other: float | None
    delta: float | None
    ratio: float | None
    verdict: Verdict
    n: tuple[int | None, int | None]
    noise: float
    note: str = ""

    @property
    def change(self) -> float | None:
        """Relative change, a fraction of the base."""
        return None if self.ratio is None else self.ratio - 1


@dataclass(frozen=True)
class Comparison:
    """What is known about the difference between two runs."""

    base: Side
    other: Side
    comparable: Comparable
    metrics: tuple[MetricDelta, ...]
    attribution: Attribution | None
    phase: MovedPhase
    break_even_output_tokens: int | None
    notes: tuple[str, ...]
    flags: tuple[Flag, ...] = ()


def noise_of(spread: float | None) -> float:
    """The relative change that does not count: the larger of 3 % and twice the spread between repeats, where that is known."""
    return NOISE_FLOOR if spread is None else max(NOISE_FLOOR, SPREADS_PER_NOISE * spread)


def compare(base: Side, other: Side, spreads: Spreads = NO_SPREADS) -> Comparison:
    """Set `other` against `base`; `spreads` are those of repeats, where known. Never raises on absent figures, which stay absent."""
    comparable = comparability(base, other)
    metrics = tuple(metric_deltas(base.run, other.run, comparable, spreads))
    return Comparison(
        base=base,
        other=other,
        comparable=comparable,
        metrics=metrics,
        attribution=attribute(base.run, other.run, _pricing(base, other)),
        phase=moved_phase(base.run, other.run, spreads),
        break_even_output_tokens=break_even(base.run, other.run),
        notes=(_noise_words(base, other, spreads), *_reconciled(base.run, other.run)),
        flags=pair_flags(base.run, other.run),
    )


def _noise_words(base: Side, other: Side, spreads: Spreads) -> str:
    """What the threshold of a change rests on."""
    counts = (len(base.ids), len(other.ids))
    if counts == (1, 1):
        return REPEATED if spreads else SINGLE_RUNS
    named = " and ".join("a single run" if count == 1 else f"{count} repeats" for count in counts)
    if not spreads:
        return f"{named[0].upper()}{named[1:]}: too few for a spread, so a change counts from 3 %."
    return f"{named[0].upper()}{named[1:]}: a change counts from 3 %, or from twice the spread between repeats where that is larger."


def _pricing(base: Side, other: Side) -> Pricing:
    """How the model prices both; of a side that it cannot, the reasons, each beginning with the run's number."""
    why = [f"Run {side.id}: {reason}" for side in (base, other) if side.point is None for reason in side.unpriced]
    return Pricing(base.point, other.point, tuple(why))


def _reconciled(base: Run, other: Run) -> tuple[str, ...]:
    """Of a client's run and its server's: whether both count the same requests."""
    sides = {run.measured_at: run for run in (base, other)}
    client, server = sides.get("client"), sides.get("server")
    if client is None or server is None or server.requests.completed is None or client.requests.completed is None:
        return ()
    found = reconcile(server.requests.completed, client.requests.completed, client.requests.failed or 0)
    text = f"The server began {found.served:,} answers, the client can name {found.explained:,} requests"
    return (f"{text}: none is missing." if not found.difference else f"{text}: {abs(found.difference):,} are known to one side only.",)


def decode_time_s(run: Run) -> float | None:
    """Seconds per further token of a mean request; None when it is not known."""
    found = observed_step(run)
    return found.value_s if found else None


def first_token_time_s(run: Run) -> float | None:
    """Seconds to the first token of a mean request; None when it is not known."""
    found = observed_first_token(run)
    return found.value_s if found else None


def comparability(base: Side, other: Side) -> Comparable:
    """Decide by workload, load and place of measurement; settings that differ are listed, since they are what was changed on purpose."""
    keys = sorted(set(base.settings) | set(other.settings))
    pairs = [Difference(key, base.settings.get(key), other.settings.get(key)) for key in keys]
    differing = tuple(pair for pair in pairs if pair.base != pair.other)
    reasons = [
        *_same_words("model", base.settings.get("model"), other.settings.get("model")),
        *_length_reasons(base.run, other.run),
        *_load_reasons(base.run, other.run),
        *_same_words("measured at", base.run.measured_at, other.run.measured_at),
    ]
    if 0 in (base.run.requests.completed, other.run.requests.completed):
        reasons.append("One of the runs completed no request.")
    return Comparable(not reasons, tuple(reasons), differing, len(keys) - len(differing))


def _same_words(what: str, base: SettingValue, other: SettingValue) -> list[str]:
    if base is None or other is None or base == other:
        return []
    return [f"The {what} differs: {base} against {other}."]


def _length_reasons(base: Run, other: Run) -> list[str]:
    reasons = []
    pairs = (
        ("mean prompt length", base.workload.prompt_tokens_mean, other.workload.prompt_tokens_mean),
        ("mean output length", base.workload.output_tokens_mean, other.workload.output_tokens_mean),
    )
    for what, a, b in pairs:
        if a and b and abs(b - a) > LENGTH_TOLERANCE * a:
            reasons.append(f"The {what} differs by more than 5 %: {a:,.0f} against {b:,.0f} tokens.")
    if base.workload.context_depth_tokens != other.workload.context_depth_tokens:
        depths = f"{base.workload.context_depth_tokens:,} against {other.workload.context_depth_tokens:,}"
        reasons.append(f"The context already present differs: {depths} tokens.")
    return reasons


def _load_reasons(base: Run, other: Run) -> list[str]:
    a, b = base.workload, other.workload
    if a.concurrency is not None and b.concurrency is not None and a.concurrency != b.concurrency:
        return [f"The number of clients differs: {a.concurrency:,} against {b.concurrency:,}."]
    if base.load_mode is not None and other.load_mode is not None and base.load_mode != other.load_mode:
        return [f"The kind of load differs: {base.load_mode} against {other.load_mode}."]
    rate_a, rate_b = a.request_rate_per_s, b.request_rate_per_s
    if rate_a and rate_b and abs(rate_b - rate_a) > LENGTH_TOLERANCE * rate_a:
        return [f"The request rate differs: {rate_a:g} against {rate_b:g} a second."]
    return []


def metric_deltas(base: Run, other: Run, comparable: Comparable, spreads: Spreads = NO_SPREADS) -> list[MetricDelta]:
    """Every metric that either side has, one row per statistic, in the registry's order."""
    rows: list[MetricDelta] = []
    for key, metric in METRICS.items():
        a, b = base.metrics.get(key), other.metrics.get(key)
        if isinstance(a, Rate) or isinstance(b, Rate):
            rate_a, rate_b = base.rate(key), other.rate(key)
            rows.append(_rate_delta(key, metric.better, rate_a, rate_b, comparable, spreads))
        elif a is not None or b is not None:
            sides = (base.distribution(key), other.distribution(key))
            rows.extend(_stat_deltas(key, metric.better, sides, _unlike_percentiles(base, other, key), comparable, spreads))
    withheld = base.withheld | other.withheld
    return [_withhold(row) if withheld & {row.key, f"{row.key}.{row.stat}"} else row for row in rows]


def _withhold(row: MetricDelta) -> MetricDelta:
    """A figure that a flag makes unusable on either side is not compared, and the row says so."""
    return replace(row, base=None, other=None, delta=None, ratio=None, verdict="insufficient data", note=WITHHELD)


def _rate_delta(key: str, better: Better, a: Rate | None, b: Rate | None, comparable: Comparable, spreads: Spreads) -> MetricDelta:
    note = ""
    if a is not None and b is not None:
        if a.scope != b.scope:
            note = f"scope {a.scope} against {b.scope}"
        elif a.definition != b.definition:
            note = f"definition {a.definition} against {b.definition}"
    values = (a.value if a else None, b.value if b else None)
    return _row(key, "value", values, better, (None, None), note, comparable, spreads)


def _unlike_percentiles(base: Run, other: Run, key: str) -> str:
    """What to say of percentiles that the two took by different rules; nothing where the rules agree."""
    rules = [percentile_rule(run, found) for run in (base, other) if (found := run.distribution(key)) is not None]
    return f"percentiles by {rules[0]} against {rules[1]}" if len(rules) > 1 and rules[0] != rules[1] else ""


def _stat_deltas(
    key: str,
    better: Better,
    sides: tuple[Distribution | None, Distribution | None],
    unlike_percentiles: str,
    comparable: Comparable,
    spreads: Spreads,
) -> list[MetricDelta]:
    (a, b), note = sides, ""
    if a is not None and b is not None and a.definition != b.definition:
        note = f"definition {a.definition} against {b.definition}"
    rows = []
    for stat in _COMPARED_STATS:
        values = (a.stat(stat) if a else None, b.stat(stat) if b else None)
        if values != (None, None):
            why = note or (unlike_percentiles if stat.startswith("p") else "")
            rows.append(_row(key, stat, values, better, (a.n if a else None, b.n if b else None), why, comparable, spreads))
    return rows


def _row(
    key: str,
    stat: str,
    values: tuple[float | None, float | None],
    better: Better,
    n: tuple[int | None, int | None],
    note: str,
    comparable: Comparable,
    spreads: Spreads,
) -> MetricDelta:
    a, b = values
    delta = b - a if a is not None and b is not None else None
    ratio = b / a if a and b is not None else None
    noise = noise_of(spreads.get((key, stat)))
    verdict, why = _verdict(stat, ratio, better, n, note, comparable, noise)
    return MetricDelta(key, stat, a, b, delta, ratio, verdict, n, noise, why)


def _verdict(
    stat: str, ratio: float | None, better: Better, n: tuple[int | None, int | None], note: str, comparable: Comparable, noise: float
) -> tuple[Verdict, str]:
    if note:
        return "not comparable", note
    if ratio is None:
        return "insufficient data", "known on one side only"
    if not comparable.ok:
        return "not comparable", "the workloads differ"
    if why := too_few(stat, n):
        return "insufficient data", why
    if abs(ratio - 1) <= noise:
        return "unchanged", ""
    smaller_is_better = better == "lower"
    return ("improved", "") if (ratio < 1) == smaller_is_better else ("regressed", "")


def too_few(stat: str, n: Sequence[int | None]) -> str:
    """Why a percentile cannot be judged on these numbers of samples; nothing where it can, or where `stat` is no tail."""
    tail = _TAIL.get(stat)
    if tail is None:
        return ""
    beyond = [round(count * tail) for count in n if count is not None]
    if len(beyond) < len(n):
        return "number of samples not known"
    return f"rests on {min(beyond)} samples beyond it" if min(beyond) < SAMPLES_BEYOND_PERCENTILE else ""


def moved_phase(base: Run, other: Run, spreads: Spreads = NO_SPREADS) -> MovedPhase:
    """Which phase changed by more than the noise, judged on the mean first token and the mean step."""
    prefill = _moved(observed_first_token(base), observed_first_token(other), spreads)
    decode = _moved(observed_step(base), observed_step(other), spreads)
    if prefill and _queue_explains(base, other):
        return "both" if decode else "queue"
    if prefill and decode:
        return "both"
    return "prefill" if prefill else "decode" if decode else "none"


def _moved(a: Observed | None, b: Observed | None, spreads: Spreads) -> bool:
    if a is None or b is None or a.value_s <= 0:
        return False
    return abs(b.value_s / a.value_s - 1) > noise_of(spreads.get((a.key, a.stat)))


def _queue_explains(base: Run, other: Run) -> bool:
    queues = [run.distribution("queue_s") for run in (base, other)]
    firsts = [first_token_time_s(run) for run in (base, other)]
    if queues[0] is None or queues[1] is None or queues[0].mean is None or queues[1].mean is None or firsts[0] is None or firsts[1] is None:
        return False
    moved = firsts[1] - firsts[0]
    return moved != 0 and (queues[1].mean - queues[0].mean) / moved > 0.5


def break_even(base: Run, other: Run) -> int | None:
    """Smallest output length at which the side with the slower first token is not slower in total; None when the phases move together.

    n = 1 + ceil(delta TTFT / -delta ITL).
    """
    firsts = (first_token_time_s(base), first_token_time_s(other))
    steps = (decode_time_s(base), decode_time_s(other))
    if firsts[0] is None or firsts[1] is None or steps[0] is None or steps[1] is None:
        return None
    first, step = firsts[1] - firsts[0], steps[1] - steps[0]
    if first * step >= 0:
        return None
    quotient = -first / step
    return 1 + int(quotient) + (0 if quotient == int(quotient) else 1)
