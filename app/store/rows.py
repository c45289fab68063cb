"""Between the domain's Run and the rows of the tables: pure, without a session.

What no database can hold (a number beyond 64 bits, a time outside the calendar) becomes "not known" with a warning that says so;
numbers that are not finite become "not known" too.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

from app.domain.run import (
    STATS,
    Distribution,
    Flag,
    LoadMode,
    MeasuredAt,
    MetricValue,
    Origin,
    Rate,
    RequestCounts,
    Run,
    Scope,
    Workload,
)
from app.store.records import NewRun, NewUpload
from app.store.tables import RunRow
from app.store.types import MAX_INT64, finite, storable_json, storable_name, storable_text

_RUN_TEXTS = ("format", "engine", "engine_version", "model", "hardware", "weight_dtype", "kv_dtype", "load_mode", "measured_at")
_RUN_INTEGERS = ("devices", "tp", "pp", "ep", "dp")
_WORKLOAD_FLOATS = ("prompt_tokens_mean", "output_tokens_mean", "request_rate_per_s", "shortest_length")
_WORKLOAD_INTEGERS = ("prompt_tokens_total", "output_tokens_total", "concurrency")
_COUNTS = ("sent", "completed", "failed")
VALUE = "value"
COUNT_ONLY = "n"
# The columns that lists sort by: column, metric, statistic.
_SUMMARIES = (
    ("ttft_p50_s", "ttft_s", "p50"),
    ("ttft_mean_s", "ttft_s", "mean"),
    ("prefill_mean_s", "prefill_s", "mean"),
    ("itl_mean_s", "itl_s", "mean"),
    ("tpot_mean_s", "tpot_s", "mean"),
    ("e2e_mean_s", "e2e_s", "mean"),
)


class MetricRow(NamedTuple):
    """One row of `metric_value` as it is read: a tuple, since one run has dozens."""

    run_id: int
    key: str
    stat: str
    value: float
    scope: str | None
    origin: str
    definition: str
    n: int | None


@dataclass(frozen=True)
class RunRows:
    """The rows of one run but for its samples, whose ids are set when they are stored."""

    columns: Mapping[str, Any]
    metrics: tuple[Mapping[str, Any], ...]
    tags: tuple[str, ...]


def to_rows(new: NewRun, upload: NewUpload, seq_in_file: int) -> RunRows:
    """The rows of a run that came as number `seq_in_file` (from 0) of a file."""
    run = new.run
    tags = clean_tags(new.tags)
    doubts: list[str] = []
    started_at = _moment(run.started_at, doubts)
    columns: dict[str, Any] = {name: getattr(run, name) for name in _RUN_TEXTS}
    columns |= {name: _int64(getattr(run, name), name, doubts) for name in _RUN_INTEGERS}
    columns |= _workload_columns(run.workload, doubts)
    columns |= {f"requests_{name}": _int64(getattr(run.requests, name), f"requests.{name}", doubts) for name in _COUNTS}
    columns |= summary_columns(run)
    columns |= {
        "project": upload.project,
        "seq_in_file": seq_in_file,
        "label": run.label,
        "notes": new.notes,
        "model_slug": new.model_slug,
        "hardware_slug": new.hardware_slug,
        "importer_version": run.importer_version,
        "token_count_source": run.token_count_source,
        "started_at": started_at,
        "duration_s": run.duration_s,
        "mbu": new.mbu,
        "mfu": new.mfu,
        "prefill_share": new.prefill_share,
        "happened_at": started_at or upload.received_at,
        "created_at": upload.received_at,
        "updated_at": upload.received_at,
        "flags": flags_to_json(run.flags),
        "labels": dict(run.labels),
        "said_by_file": None if new.said_by_file is None else dict(new.said_by_file),
        "said_by_person": dict(new.said_by_person),
        "search": search_text(
            columns | {"label": run.label, "model_slug": new.model_slug, "hardware_slug": new.hardware_slug}, tags, upload.name
        ),
    }
    metrics = tuple(row for key, value in run.metrics.items() for row in _metric_rows(key, value, doubts))
    columns["warnings"] = [*run.warnings, *doubts]
    return RunRows(columns=columns, metrics=metrics, tags=tags)


def from_row(row: RunRow, metrics: Sequence[MetricRow]) -> Run:
    """The domain's Run, without samples."""
    return Run(
        format=row.format,
        engine=row.engine,
        engine_version=row.engine_version,
        model=row.model,
        hardware=row.hardware,
        devices=row.devices,
        tp=row.tp,
        pp=row.pp,
        ep=row.ep,
        dp=row.dp,
        weight_dtype=row.weight_dtype,
        kv_dtype=row.kv_dtype,
        started_at=row.started_at,
        duration_s=row.duration_s,
        load_mode=cast(LoadMode | None, row.load_mode),
        measured_at=cast(MeasuredAt | None, row.measured_at),
        token_count_source=row.token_count_source,
        importer_version=row.importer_version,
        label=row.label,
        workload=_workload(row),
        requests=RequestCounts(sent=row.requests_sent, completed=row.requests_completed, failed=row.requests_failed),
        metrics=metrics_from_rows(metrics),
        flags=flags_from_json(row.flags),
        labels={str(key): str(value) for key, value in row.labels.items()},
        warnings=tuple(str(warning) for warning in row.warnings),
    )


def as_stored(rows: RunRows) -> Run:
    """The run as it will be read back from these rows, without samples."""
    row = RunRow(upload_id=0, **storable_json(rows.columns))
    metrics = [MetricRow(0, *(each[name] for name in MetricRow._fields[1:])) for each in rows.metrics]
    return from_row(row, metrics)


def metrics_from_rows(rows: Iterable[MetricRow]) -> dict[str, MetricValue]:
    """The metrics of one run from its rows, by key."""
    grouped: dict[str, list[MetricRow]] = {}
    for row in rows:
        grouped.setdefault(row.key, []).append(row)
    return {key: _metric(group) for key, group in grouped.items()}


def summary_columns(run: Run) -> dict[str, float | None]:
    """The columns of a run that lists sort by: means and medians in seconds, the output rate of the whole server."""
    columns: dict[str, float | None] = {}
    for column, key, stat in _SUMMARIES:
        distribution = run.distribution(key)
        columns[column] = finite(distribution.stat(stat)) if distribution else None
    rate = run.rate("output_tokens_per_s")
    columns["output_tokens_per_s"] = finite(rate.value) if rate and rate.scope == "aggregate" else None
    return columns


def flags_to_json(flags: Iterable[Flag]) -> list[dict[str, Any]]:
    """Flags as plain data."""
    return [
        {"flag": flag.flag, "evidence": flag.evidence, "withholds": list(flag.withholds), "figures": dict(flag.figures)} for flag in flags
    ]


def flags_from_json(data: Iterable[Mapping[str, Any]]) -> tuple[Flag, ...]:
    """Flags from what `flags_to_json` gave."""
    return tuple(Flag(flag["flag"], flag["evidence"], tuple(flag["withholds"]), flag.get("figures", {})) for flag in data)


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags without surrounding space, empty ones and repetitions, in order of the alphabet."""
    return tuple(sorted({cleaned for tag in tags if (cleaned := storable_name(tag.strip()).strip())}))


def fold(text: str) -> str:
    """Text as a search compares it: one form of each character, no difference of case."""
    return unicodedata.normalize("NFKC", storable_text(text)).casefold()


def search_text(columns: Mapping[str, Any], tags: Iterable[str], file_name: str) -> str:
    """Everything a search looks into, one item a line."""
    names = ("label", "model", "model_slug", "hardware", "hardware_slug", "engine")
    return fold("\n".join([*(str(columns[name]) for name in names if columns.get(name)), *tags, file_name]))


def _workload_columns(workload: Workload, doubts: list[str]) -> dict[str, Any]:
    columns: dict[str, Any] = {name: getattr(workload, name) for name in _WORKLOAD_FLOATS}
    columns |= {name: _int64(getattr(workload, name), f"workload.{name}", doubts) for name in _WORKLOAD_INTEGERS}
    columns["context_depth_tokens"] = _int64(workload.context_depth_tokens, "workload.context_depth_tokens", doubts) or 0
    return columns | {"rate_unlimited": workload.rate_unlimited, "dataset": workload.dataset}


def _workload(row: RunRow) -> Workload:
    return Workload(
        prompt_tokens_mean=row.prompt_tokens_mean,
        output_tokens_mean=row.output_tokens_mean,
        prompt_tokens_total=row.prompt_tokens_total,
        output_tokens_total=row.output_tokens_total,
        concurrency=row.concurrency,
        request_rate_per_s=row.request_rate_per_s,
        rate_unlimited=row.rate_unlimited,
        context_depth_tokens=row.context_depth_tokens,
        dataset=row.dataset,
        shortest_length=row.shortest_length,
    )


def _metric_rows(key: str, metric: MetricValue, doubts: list[str]) -> list[dict[str, Any]]:
    shared = {"key": key, "origin": metric.origin, "definition": metric.definition}
    if isinstance(metric, Rate):
        value = finite(metric.value)
        return [] if value is None else [shared | {"stat": VALUE, "value": value, "scope": metric.scope, "n": None}]
    n = _int64(metric.n, f"metrics.{key}.n", doubts)
    known = {stat: value for stat in STATS if (value := finite(metric.stat(stat))) is not None}
    if not known and n is not None:
        known = {COUNT_ONLY: float(n)}
    return [shared | {"stat": stat, "value": value, "scope": None, "n": n} for stat, value in known.items()]


def _metric(rows: Sequence[MetricRow]) -> MetricValue:
    first = rows[0]
    origin = cast(Origin, first.origin)
    if first.stat == VALUE:
        return Rate(first.value, cast(Scope, first.scope), origin, first.definition)
    stats = {row.stat: row.value for row in rows if row.stat != COUNT_ONLY}
    return Distribution(**stats, n=first.n, origin=origin, definition=first.definition)


def _int64(value: int | None, where: str, doubts: list[str]) -> int | None:
    if value is None or -MAX_INT64 <= value <= MAX_INT64:
        return value
    doubts.append(f"{where} is beyond 64 bits and was not kept.")
    return None


def _moment(moment: datetime | None, doubts: list[str]) -> datetime | None:
    """The moment in UTC; a moment without a time zone is taken as UTC, and one beyond the calendar is not kept."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        return moment.replace(tzinfo=UTC)
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        doubts.append("started_at lies outside the calendar and was not kept.")
        return None
