"""Any flat JSON whose keys name statistic, quantity and unit: `avg_TTFT_s`, `p99_itl_ms`, `median_latency_us`.

The unit is the key's own and never guessed, though it may differ from key to key; a key without one is left out. What a file means by a
name is not known here: its figures are kept under a definition that says so, and never compared with those of another. Asked last, when
no tool's own importer knows the file.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.domain.checks import Evidence, flagged
from app.domain.derive import with_request_rates
from app.domain.run import Distribution, MetricValue, Rate, RequestCounts, Run, Workload
from app.domain.text import clean_text
from app.formats.document import Document
from app.formats.identity import NO_MODEL
from app.formats.importer import Importer, json_decline
from app.formats.record import Record

ID = "generic"
NOT_STATED = "as its file names it, with no definition stated"
_QUANTITIES = {
    "ttft": "ttft_s",
    "time_to_first_token": "ttft_s",
    "itl": "itl_s",
    "inter_token_latency": "itl_s",
    "tpot": "tpot_s",
    "time_per_output_token": "tpot_s",
    "latency": "e2e_s",
    "e2e": "e2e_s",
    "e2e_latency": "e2e_s",
    "request_latency": "e2e_s",
}
_STATISTICS = {"avg": "mean", "mean": "mean", "median": "p50", **{name: name for name in ("p50", "p90", "p95", "p99", "min", "max")}}
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_FIGURE = re.compile(f"({'|'.join(_STATISTICS)})_({'|'.join(_QUANTITIES)})_({'|'.join(_UNITS)})", re.IGNORECASE)
_DURATIONS = ("benchmark_time", "benchmark_duration", "duration", "total_time", "elapsed_time")
_COUNTS = {
    "output_tokens_total": ("total_output_token", "total_output_tokens"),
    "prompt_tokens_total": ("total_input_token", "total_input_tokens", "total_prompt_tokens"),
    "concurrency": ("concurrency", "max_concurrency"),
}
_REQUESTS = ("completed", "num_requests", "successful_requests")
# A phase must be among them: a latency alone may be anything's.
_PHASES = frozenset({"ttft_s", "itl_s", "tpot_s"})
_LEAST = 2


@dataclass(frozen=True)
class _Figure:
    """One statistic of one quantity in seconds, and the key and unit it came under."""

    key: str
    metric: str
    stat: str
    unit: str
    seconds: float


def matches(document: Document) -> str | None:
    """None when every object has two figures or more whose keys name statistic, quantity and unit, one of them a phase's."""
    if (reason := json_decline(document)) is not None:
        return reason
    for entry in document.entries:
        named = [found for key in entry.values if (found := _FIGURE.fullmatch(key))]
        if len(named) < _LEAST or not any(_QUANTITIES[found[2].lower()] in _PHASES for found in named):
            return f"{entry.where}fewer than two keys that name statistic, quantity and unit, such as avg_ttft_ms"
    return None


def parse(document: Document) -> list[Run]:
    """One run for each object."""
    return [_run(Record(entry.values, entry.where)) for entry in document.entries]


def _run(record: Record) -> Run:
    figures = _figures(record)
    duration_s, notes = _duration(record)
    counts = {ours: _first_count(record, keys) for ours, keys in _COUNTS.items()}
    metrics: dict[str, MetricValue] = {
        metric: _distribution({each.stat: each.seconds for each in figures if each.metric == metric})
        for metric in dict.fromkeys(each.metric for each in figures)
    }
    if duration_s and counts["output_tokens_total"]:
        metrics["output_tokens_per_s"] = Rate(counts["output_tokens_total"] / duration_s, "aggregate", "derived")
    units = {each.unit for each in figures}
    read_as = ", ".join(f"{clean_text(each.key, 40)} as {each.stat} of {each.metric} in {each.unit}" for each in figures)
    run = Run(
        format=ID,
        model=record.text("model") or record.text("model_id"),
        duration_s=duration_s,
        measured_at="client",
        workload=Workload(
            prompt_tokens_total=counts["prompt_tokens_total"],
            output_tokens_total=counts["output_tokens_total"],
            concurrency=counts["concurrency"],
        ),
        requests=RequestCounts(completed=_first_count(record, _REQUESTS)),
        metrics=metrics,
    )
    evidence = Evidence(
        not_numbers=tuple(record.not_numbers),
        negative=tuple(record.negative),
        mixed_units=tuple(each.key for each in figures) if len(units) > 1 else (),
    )
    warnings = (f"Read by the names of the keys: {read_as}.", *notes, *([] if run.model else [NO_MODEL]), *record.warnings)
    return flagged(with_request_rates(replace(run, warnings=warnings)), evidence)


def _distribution(found: Mapping[str, float]) -> Distribution:
    return Distribution(
        mean=found.get("mean"),
        p50=found.get("p50"),
        p90=found.get("p90"),
        p95=found.get("p95"),
        p99=found.get("p99"),
        min=found.get("min"),
        max=found.get("max"),
        definition=NOT_STATED,
    )


def _figures(record: Record) -> list[_Figure]:
    found = []
    for key, _ in record.items():
        named = _FIGURE.fullmatch(key)
        value = record.positive(key) if named else None
        if named and value is not None:
            statistic, quantity, unit = (part.lower() for part in named.groups())
            found.append(_Figure(key, _QUANTITIES[quantity], _STATISTICS[statistic], unit, value * _UNITS[unit]))
    return found


def _duration(record: Record) -> tuple[float | None, tuple[str, ...]]:
    """How long the run lasted, from a key with its unit, or in seconds where the key names none, which is said."""
    for stem in _DURATIONS:
        for unit, factor in _UNITS.items():
            if (value := record.positive(f"{stem}_{unit}")) is not None:
                return value * factor, ()
        if (value := record.positive(stem)) is not None:
            return value, (f"{record.path(stem)} names no unit and is taken as seconds.",)
    return None, ()


def _first_count(record: Record, keys: tuple[str, ...]) -> int | None:
    return next((count for key in keys if (count := record.count(key)) is not None), None)


IMPORTER = Importer(ID, "flat JSON with units in its keys", matches, parse)
