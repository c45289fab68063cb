"""Exports that hold one object of statistics a metric, `{"unit": "ms", "avg": …, "p99": …}`: AIPerf and GenAI-Perf.

Both call the time per output token of a request `inter_token_latency`: TPOT here. The gap between chunks is `inter_chunk_latency`
(AIPerf alone). Units stand in the file and are taken from there; a metric in an unknown unit is left out, never guessed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.domain.checks import Evidence, flagged
from app.domain.derive import shortest_length, with_request_rates
from app.domain.run import CANONICAL, Distribution, Run, Workload
from app.domain.text import clean_text
from app.formats.load import Load
from app.formats.record import Record, whole_total
from app.formats.serving import deployment_rates, first_known, itl_from_report

UNITS_S: Mapping[str, float] = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
LATENCIES = {
    "ttft_s": "time_to_first_token",
    "tpot_s": "inter_token_latency",
    "chunk_gap_s": "inter_chunk_latency",
    "e2e_s": "request_latency",
    "ttft_answer_s": "time_to_first_output_token",
    "client_queue_s": "credit_to_start_latency",
    "e2e_from_schedule_s": "effective_latency",
}
RATES = {
    "requests_per_s": "request_throughput",
    "output_tokens_per_s": "output_token_throughput",
    "total_tokens_per_s": "total_token_throughput",
    "goodput_requests_per_s": "goodput",
}
_STATS = {"mean": "avg", **{stat: stat for stat in ("p50", "p90", "p95", "p99", "std", "min", "max")}}
_MAY_BE_ZERO = frozenset({"std", "min"})
# Two decimals move a figure below this by more than 1 %.
_COARSE_BELOW = 0.5
_FIRST_YEAR_S, _LAST_YEAR_S = 946_684_800, 4_102_444_800  # 2000 to 2100
NO_ENGINE = "The file does not say which engine answered: set it under Edit."


class StatExport:
    """The statistics of one file by metric tag. `aliases` are older tags of a metric; `rounded` says that figures have two decimals."""

    def __init__(self, record: Record, aliases: Mapping[str, tuple[str, ...]], rounded: bool = False) -> None:
        self._record = record
        self._aliases = aliases
        self.rounded = rounded
        self._read: list[Record] = []

    def _statistics(self, tag: str) -> Record | None:
        for name in (tag, *self._aliases.get(tag, ())):
            if isinstance(self._record.raw(name), dict):
                self._read.append(self._record.child(name))
                return self._read[-1]
        return None

    def value(self, tag: str) -> float | None:
        """The average of a metric in the file's unit, None where it has none or writes 0 for it."""
        statistics = self._statistics(tag)
        return None if statistics is None else statistics.positive("avg")

    def spread(self, tag: str) -> float | None:
        """The standard deviation of a metric in the file's unit, None where it has none."""
        statistics = self._statistics(tag)
        return None if statistics is None else statistics.number("std")

    def count(self, tag: str) -> int | None:
        """A whole number, None where there is none. Raises ImportRefused when something else stands there."""
        statistics = self._statistics(tag)
        return None if statistics is None else statistics.count("avg")

    def seconds(self, tag: str) -> float | None:
        """The average of a time in seconds."""
        statistics = self._statistics(tag)
        unit_s = None if statistics is None else _unit_s(statistics)
        value = None if statistics is None else statistics.positive("avg")
        return value * unit_s if value is not None and unit_s is not None else None

    def epoch_s(self, tag: str) -> float | None:
        """A Unix time in nanoseconds, in seconds; such figures are beyond what the gate lets through as a duration."""
        statistics = self._statistics(tag)
        return None if statistics is None else nanoseconds_s(statistics.raw("avg"))

    def latency(self, tag: str, n: int | None = None) -> Distribution | None:
        """The statistics of a time in seconds. A mean or percentile of 0 is no measurement, but between chunks."""
        statistics = self._statistics(tag)
        unit_s = None if statistics is None else _unit_s(statistics)
        if statistics is None or unit_s is None:
            return None
        gaps = tag == LATENCIES["chunk_gap_s"]
        values: dict[str, float | None] = {}
        for stat, key in _STATS.items():
            value = statistics.number(key)
            if value is not None and (value or stat in _MAY_BE_ZERO or (gaps and stat != "mean")):
                values[stat] = value * unit_s
        return (
            Distribution(**values, n=n, origin="reported", definition=CANONICAL)
            if values.keys() & {"mean", "p50", "p90", "p95", "p99"}
            else None
        )

    def oddities(self) -> Evidence:
        """What was no number or negative in the metrics that were read."""
        return Evidence(not_numbers=_once(each.not_numbers for each in self._read), negative=_once(each.negative for each in self._read))

    def warnings(self) -> tuple[str, ...]:
        """Sentences about what was left out of the metrics that were read."""
        return _once(each.warnings for each in self._read)


def _once(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for group in groups for word in group))


def _unit_s(statistics: Record) -> float | None:
    unit = statistics.text("unit")
    known = UNITS_S.get((unit or "").lower())
    if known is None:
        said = f"has the unit “{clean_text(unit, 20)}”" if unit else "has no unit"
        statistics.warnings.append(f"{statistics.path('unit').removesuffix('.unit')} {said} and is left out.")
    return known


def nanoseconds_s(value: object) -> float | None:
    """A Unix time in nanoseconds as seconds, None for what is no number of a size that a clock can have."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value / 1e9 if 0 < value < 2**63 else None


def exact_total(mean: float | None, requests: int | None) -> int | None:
    """Tokens of all requests from their mean, where mean x requests is a whole number to a millionth; else None."""
    if mean is None or not requests:
        return None
    total = whole_total(mean * requests)
    return total if total is not None and abs(mean * requests - total) <= 1e-6 * max(1.0, total) else None


def instant(seconds: float | None) -> datetime | None:
    """A Unix time as an instant, None outside the years 2000 to 2100."""
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None and _FIRST_YEAR_S <= seconds < _LAST_YEAR_S else None


def workload_of(export: StatExport, completed: int | None, load: Load, dataset: str | None = None) -> Workload:
    """Tokens a request and in all from the file's statistics, beside the load that was offered."""
    prompt, output = export.value("input_sequence_length"), export.value("output_sequence_length")
    return Workload(
        prompt_tokens_mean=prompt,
        output_tokens_mean=output,
        shortest_length=shortest_length(output, export.spread("output_sequence_length")),
        prompt_tokens_total=first_known(export.count("total_isl"), exact_total(prompt, completed)),
        output_tokens_total=first_known(export.count("total_osl"), exact_total(output, completed)),
        concurrency=load.concurrency,
        request_rate_per_s=load.request_rate_per_s,
        rate_unlimited=load.rate_unlimited,
        dataset=dataset,
    )


@dataclass(frozen=True)
class _Rates:
    record: Record
    names: dict[str, tuple[str, ...]]


def _own_rates(export: StatExport, duration_s: float | None) -> _Rates:
    """The file's rates as one record. A rate that two decimals cut short is left to the totals where a duration is there."""
    values: dict[str, object] = {}
    for tag in RATES.values():
        value = export.value(tag)
        if value is not None and not (export.rounded and value < _COARSE_BELOW and duration_s):
            values[tag] = value
    return _Rates(Record(values), {metric: (tag,) for metric, tag in RATES.items()})


def measured(run: Run, export: StatExport, evidence: Evidence) -> Run:
    """`run`, which has its identity, workload, counts and what else is known, with the export's figures, its flags and warnings."""
    completed = run.requests.completed
    if completed == 0:
        return flagged(replace(run, metrics={}, warnings=(*run.warnings, *export.warnings())), evidence)
    metrics: dict[str, Distribution] = {}
    for key, tag in LATENCIES.items():
        # Requests of one token have no TPOT, so only of these two is the number certain.
        if (found := export.latency(tag, completed if key in ("ttft_s", "e2e_s") else None)) is not None:
            metrics[key] = found
    mean = run.workload.output_tokens_mean
    tokens = first_known(run.workload.output_tokens_total, round(mean * completed) if mean and completed else None)
    finding = itl_from_report(metrics, completed, tokens)
    if finding.itl is not None:
        metrics["itl_s"] = finding.itl
    own = _own_rates(export, run.duration_s)
    rates = deployment_rates(own.record, own.names, run.duration_s, run.requests, run.workload)
    odd = export.oddities()
    seen = replace(
        evidence,
        not_numbers=(*evidence.not_numbers, *odd.not_numbers),
        negative=(*evidence.negative, *odd.negative),
        tokens_per_chunk=first_known(evidence.tokens_per_chunk, finding.tokens_per_chunk),
    )
    notes = (*run.warnings, *([finding.note] if finding.note else ()), *rates.warnings, *export.warnings())
    return flagged(with_request_rates(replace(run, metrics={**run.metrics, **metrics, **rates.rates}, warnings=notes)), seen)
