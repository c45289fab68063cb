"""AIPerf's per-request records (profile_export.jsonl): one JSON object a request, all of one run.

Each has `metadata` (identity, clock, phase) and `metrics` (`{"value", "unit"}`; `inter_chunk_latency` a list). Warm-up records are left
out by their phase. A request failed that has an error or was cancelled. The file names neither model nor load.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np

from app.domain.checks import Evidence, flagged
from app.domain.derive import aggregate_rates, request_distributions, statistics, with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import Flag, Floats, MetricValue, Rate, RequestCounts, RequestSamples, Run, Workload
from app.domain.text import clean_text, percent
from app.formats.document import Document, Entry
from app.formats.record import ArrayProblem, Record, floats
from app.formats.serving import per_request, token_totals
from app.formats.stat_export import UNITS_S, instant, nanoseconds_s

ALONE = (
    "Records of requests name neither model, engine nor the limit of clients: choose them under Edit, "
    "or send profile_export_aiperf.json of the same run, which names them."
)
_TTFT = ("time_to_first_token", "ttft")
_ANSWER = ("time_to_first_output_token", "ttfo")


def matches(document: Document) -> str | None:
    """None when every object has `metadata` with a phase or a request id, and `metrics`."""
    for entry in document.entries:
        metadata, metrics = entry.values.get("metadata"), entry.values.get("metrics")
        if not isinstance(metadata, dict) or not isinstance(metrics, dict):
            return f"{entry.where}no objects metadata and metrics"
        if not metadata.keys() & {"x_request_id", "benchmark_phase", "credit_phase"}:
            return f"{entry.where}no metadata.x_request_id"
    return None if document.entries else "no object"


def cache_flag(share: float | None) -> tuple[Flag, ...]:
    """The flag of prompts that the server had in its cache, by the share of prompt tokens that its usage figures say; none at 0."""
    if not share:
        return ()
    text = f"The server says that {percent(share)} of the prompt tokens came from its cache: TTFT is not the time of whole prompts."
    return (Flag("prefix_cache_hits", text, ("prefill_tokens_per_s",)),)


@dataclass
class _Columns:
    """One entry a request that counts."""

    ok: list[bool] = field(default_factory=list)
    prompt: list[float] = field(default_factory=list)
    output: list[float] = field(default_factory=list)
    ttft: list[float] = field(default_factory=list)
    e2e: list[float] = field(default_factory=list)
    start_ns: list[int | None] = field(default_factory=list)
    gaps: list[Floats] = field(default_factory=list)
    answer: list[float] = field(default_factory=list)
    cached: list[float] = field(default_factory=list)
    due_ns: list[int | None] = field(default_factory=list)
    sending: list[float] = field(default_factory=list)
    all_thought: int = 0
    errors: list[str] = field(default_factory=list)
    odd: list[Record] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


def run_of_records(document: Document, format_id: str) -> Run:
    """The run of all records that are no warm-up. Raises ImportRefused where there is none."""
    counted = [entry for entry in document.entries if not _is_warm_up(entry)]
    if not counted:
        raise ImportRefused(f"All {len(document.entries)} records are of the warm-up phase: there is no measured request in the file.")
    columns = _Columns()
    for entry in counted:
        _add(columns, entry)
    samples = _samples(columns)
    completed = int(samples.ok.sum())
    counts = RequestCounts(samples.size, completed, samples.size - completed)
    warm_up = len(document.entries) - len(counted)
    notes = [ALONE, *([f"{warm_up} warm-up requests are left out."] if warm_up else []), *_odd(columns)]
    run = Run(
        format=format_id,
        duration_s=_duration_s(samples),
        started_at=_started_at(columns),
        measured_at="client",
        requests=counts,
        metrics=_client(columns) if completed else {},
        warnings=tuple(notes),
    )
    evidence = Evidence(
        not_numbers=tuple(key for record in columns.odd for key in record.not_numbers),
        negative=tuple(clause for record in columns.odd for clause in record.negative),
        answers_without_content=columns.all_thought,
    )
    return _measured(run, samples, evidence)


def _client(columns: _Columns) -> dict[str, MetricValue]:
    """The client's own part of the requests that succeeded."""
    found = statistics(np.where(columns.ok, columns.sending, np.nan))
    return {} if found is None else {"client_send_s": found}


def _measured(run: Run, samples: RequestSamples, evidence: Evidence) -> Run:
    if not run.requests.completed:
        return flagged(run, evidence)
    totals = token_totals(None, None, samples)
    metrics: dict[str, MetricValue] = {**run.metrics, **request_distributions(samples)}
    for key, value in aggregate_rates(run.duration_s, run.requests.completed, totals.prompt, totals.output).items():
        metrics[key] = Rate(value, "aggregate", "derived")
    workload = Workload(
        prompt_tokens_mean=per_request(totals.prompt, run.requests.completed),
        output_tokens_mean=per_request(totals.output, run.requests.completed),
        prompt_tokens_total=totals.prompt,
        output_tokens_total=totals.output,
    )
    return flagged(with_request_rates(replace(run, samples=samples, workload=workload, metrics=metrics)), evidence)


def _is_warm_up(entry: Entry) -> bool:
    metadata = _inside(entry, "metadata")
    phase = metadata.raw("benchmark_phase") or metadata.raw("credit_phase")
    return isinstance(phase, str) and "warmup" in phase.lower()


def _inside(entry: Entry, key: str) -> Record:
    """The object under `key`, which matching has seen. Not by `Record.child`, whose cleaned paths cost more than the rest of a line."""
    value = entry.values.get(key)
    return Record(value if isinstance(value, dict) else {}, f"{entry.where}{key}.")


def _metric(entry: Entry, tag: str) -> Record:
    metrics = entry.values.get("metrics")
    value = metrics.get(tag) if isinstance(metrics, dict) else None
    return Record(value if isinstance(value, dict) else {}, f"{entry.where}metrics.{tag}.")


def _unit(metric: Record) -> float | None:
    unit = metric.raw("unit")
    return UNITS_S.get(unit.lower()) if isinstance(unit, str) else None


def _add(columns: _Columns, entry: Entry) -> None:
    metadata = _inside(entry, "metadata")
    error = _error(entry.values.get("error"), metadata)
    e2e = _seconds(columns, entry, ("request_latency",))
    columns.ok.append(not error and e2e is not None)
    columns.errors.append(error)
    columns.e2e.append(np.nan if e2e is None else e2e)
    columns.ttft.append(_or_nan(_seconds(columns, entry, _TTFT)))
    columns.prompt.append(_or_nan(_tokens(entry, "input_sequence_length")))
    columns.output.append(_or_nan(_tokens(entry, "output_sequence_length")))
    columns.start_ns.append(_moment(metadata, "request_start_ns" if "request_start_ns" in metadata else "timestamp_ns"))
    columns.due_ns.append(_moment(metadata, "credit_issued_ns"))
    columns.sending.append(_sending(columns, entry))
    columns.all_thought += int(not error and e2e is not None and _all_thought(entry))
    columns.gaps.append(_gaps(columns, entry))
    columns.answer.append(_or_nan(_seconds(columns, entry, _ANSWER)))
    columns.cached.append(_or_nan(_tokens(entry, "usage_prompt_cache_read_tokens")))


def _moment(metadata: Record, key: str) -> int | None:
    moment = metadata.raw(key)
    return moment if isinstance(moment, int) and nanoseconds_s(moment) is not None else None


def _sending(columns: _Columns, entry: Entry) -> float:
    """Seconds until a request was sent whole; NaN where its writing was not traced."""
    writing = _seconds(columns, entry, ("http_req_sending",))
    return np.nan if writing is None else writing + (_seconds(columns, entry, ("http_req_connection_overhead",)) or 0.0)


def _all_thought(entry: Entry) -> bool:
    """Whether all tokens of an answer were reasoning, by the two counts that AIPerf keeps of it."""
    visible, thought = _tokens(entry, "output_token_count"), _tokens(entry, "reasoning_token_count")
    return bool(thought) and not visible


def _error(error: object, metadata: Record) -> str:
    if isinstance(error, dict):
        return clean_text(" ".join(str(error[key]) for key in ("type", "code") if isinstance(error.get(key), (str, int)))) or "error"
    if error:
        return clean_text(str(error)) or "error"
    return "cancelled" if metadata.raw("was_cancelled") is True else ""


def _seconds(columns: _Columns, entry: Entry, tags: Sequence[str]) -> float | None:
    """A time of one request in seconds; 0 is no measurement."""
    for tag in tags:
        metric = _metric(entry, tag)
        if "value" in metric:
            columns.odd.append(metric)
            unit_s = _unit(metric)
            value = metric.positive("value")
            if unit_s is None:
                columns.broken.append(f"{tag} is in no known unit")
            return value * unit_s if value is not None and unit_s is not None else None
    return None


def _tokens(entry: Entry, tag: str) -> int | None:
    return _metric(entry, tag).count("value")


def _gaps(columns: _Columns, entry: Entry) -> Floats:
    metric = _metric(entry, "inter_chunk_latency")
    unit_s = _unit(metric)
    values = metric.sequence("value")
    if unit_s is None or not values:
        return np.empty(0)
    try:
        return floats(values, "inter_chunk_latency") * unit_s
    except ArrayProblem as problem:
        columns.broken.append(str(problem))
        return np.empty(0)


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _or_none(values: Floats) -> Floats | None:
    """A column, None where no request has a value in it."""
    return values if bool(np.isfinite(values).any()) else None


def _odd(columns: _Columns) -> list[str]:
    found = dict.fromkeys(warning for record in columns.odd for warning in record.warnings)
    broken = [f"Gaps between chunks or times left out: {columns.broken[0]}, in {len(columns.broken)} places."] if columns.broken else []
    return [*list(found)[:10], *broken]


def _samples(columns: _Columns) -> RequestSamples:
    """Columns in the order in which the requests were sent, where every start is known; else in the file's order."""
    starts = [start for start in columns.start_ns if start is not None]
    complete = len(starts) == len(columns.start_ns)
    order = sorted(range(len(columns.ok)), key=lambda index: columns.start_ns[index] or 0) if complete else list(range(len(columns.ok)))
    ok = np.array([columns.ok[index] for index in order], dtype=np.bool_)

    def column(values: list[float]) -> Floats:
        return np.where(ok, np.array([values[index] for index in order], dtype=np.float64), np.nan)

    gaps = [columns.gaps[index] if columns.ok[index] else np.empty(0) for index in order]
    streamed = any(each.size for each in gaps) and not columns.broken
    first = min(starts) if starts else 0
    due = [columns.due_ns[index] for index in order]
    return RequestSamples(
        ok=ok,
        prompt_tokens=column(columns.prompt),
        output_tokens=column(columns.output),
        ttft_s=column(columns.ttft),
        e2e_s=column(columns.e2e),
        start_s=np.array([((columns.start_ns[index] or 0) - first) / 1e9 for index in order]) if complete else None,
        chunk_gaps_s=np.concatenate(gaps) if streamed else np.empty(0),
        chunk_gap_counts=np.array([each.size for each in gaps], dtype=np.int64) if streamed else np.empty(0, np.int64),
        errors=tuple(columns.errors[index] for index in order) if any(columns.errors) else (),
        ttft_answer_s=_or_none(column(columns.answer)),
        cached_tokens=_or_none(column(columns.cached)),
        scheduled_s=_due_s(due, [columns.start_ns[index] for index in order], first) if complete else None,
    )


def _due_s(due: list[int | None], starts: list[int | None], first: int) -> Floats | None:
    """When each request was due, counted like its start; never after it, as two clocks may say. None where one request does not say."""
    if not due or any(moment is None for moment in due):
        return None
    pairs = zip(due, starts, strict=True)
    return np.array([(min(moment or 0, start or 0) - first) / 1e9 for moment, start in pairs])


def _duration_s(samples: RequestSamples) -> float | None:
    """From the first request that succeeded to the last answer, as AIPerf's own benchmark duration."""
    if samples.start_s is None or not samples.ok.any():
        return None
    span = float((samples.start_s + samples.e2e_s)[samples.ok].max() - samples.start_s[samples.ok].min())
    return span if span > 0 else None


def _started_at(columns: _Columns) -> datetime | None:
    starts = [start for start in columns.start_ns if start is not None]
    return instant(nanoseconds_s(min(starts))) if starts else None
