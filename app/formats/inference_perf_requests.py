"""inference-perf's `per_request_lifecycle_metrics.json`: a list of requests, together one run with samples.

Times are seconds on the client's own clock. `output_token_times` are those of tokens, alike within a chunk, so that the distinct ones are
the chunks. A request ends with its last token; what comes after it (a usage chunk, the end of the stream) is no latency.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from app.domain.checks import Evidence, flagged
from app.domain.derive import aggregate_rates, request_distributions, with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import Floats, MetricValue, Rate, RequestCounts, RequestSamples, Run, Workload
from app.domain.text import clean_text
from app.formats.document import Entry
from app.formats.record import LARGEST_INTEGER, ArrayProblem, Record, floats
from app.formats.serving import CLIENT_TOKENIZER, SERVER_USAGE, first_known, per_request

NO_MODEL = "Model, server and load stand in config.yaml and not in this file: choose the model under Edit."
POOLED_REQUESTS = "The file holds the requests of all stages of its run, pooled here: import the stage files for their operating points."


def is_request(values: Mapping[str, object]) -> bool:
    """Whether an object is one request of such a file."""
    return "start_time" in values and "end_time" in values and isinstance(values.get("info"), dict)


@dataclass(frozen=True)
class _Request:
    """One request, times in seconds; NaN where not known. `counted` is the client's own count of tokens."""

    ok: bool
    start: float
    end: float
    prompt: float
    output: float
    counted: float
    by_server: bool
    ttft: float
    e2e: float
    gaps: Floats
    error: str


def requests_run(entries: tuple[Entry, ...], format_id: str) -> Run:
    """The run of all requests. Raises ImportRefused when none of them has a time."""
    records = [Record(entry.values, entry.where) for entry in entries]
    problems: list[str] = []
    requests = [_request(record, problems) for record in records]
    samples = _samples(requests)
    completed = int(samples.ok.sum())
    found = request_distributions(samples)
    if completed and not found:
        raise ImportRefused("No request has a start and an end: there is nothing to import.")
    duration_s = _duration(requests)
    workload = _workload(samples, completed)
    rates = aggregate_rates(duration_s, completed, workload.prompt_tokens_total, workload.output_tokens_total)
    metrics: dict[str, MetricValue] = {**found, **{key: Rate(value, "aggregate", "samples") for key, value in rates.items()}}
    by_server = bool(completed) and all(request.by_server for request in requests if request.ok)
    counted = sum(request.counted for request in requests if request.ok) if by_server else float("nan")
    run = Run(
        format=format_id,
        measured_at="client",
        duration_s=duration_s,
        workload=workload,
        requests=RequestCounts(samples.size, completed, samples.size - completed),
        token_count_source=SERVER_USAGE if by_server else CLIENT_TOKENIZER,
        metrics=metrics,
        samples=samples,
        warnings=(NO_MODEL, POOLED_REQUESTS, *_few(problems), *_few([note for record in records for note in record.warnings])),
    )
    evidence = Evidence(
        not_numbers=tuple(key for record in records for key in record.not_numbers),
        negative=_few([clause for record in records for clause in record.negative]),
        retokenized_output_tokens=int(counted) if counted == counted and counted < LARGEST_INTEGER else None,
    )
    return flagged(with_request_rates(run), evidence)


def _few(notes: list[str], most: int = 5) -> tuple[str, ...]:
    """The first few of many sentences, which come one a request."""
    return (*notes[:most], *((f"{len(notes) - most} more like these.",) if len(notes) > most else ()))


def _request(record: Record, problems: list[str]) -> _Request:
    info = record.child("info")
    answer = info.child("response_metrics")
    usage = answer.child("server_usage")
    # Before 0.4 the counts and times stood in `info` itself.
    counted = first_known(answer.count("output_tokens"), info.count("output_tokens"))
    output = first_known(usage.count("completion_tokens"), counted)
    prompt = first_known(usage.count("prompt_tokens"), info.count("input_tokens"))
    start, end = _time(record, "start_time"), _time(record, "end_time")
    times = _token_times(answer if "output_token_times" in answer else info, record, problems)
    first, last = (float(times[0]), float(times[-1])) if times.size else (float("nan"), end)
    error = _error(record)
    ok = not error and end >= start and output != 0
    return _Request(
        ok=ok,
        start=start,
        end=end,
        prompt=_known(prompt),
        output=_known(output),
        counted=_known(counted),
        by_server="completion_tokens" in usage,
        ttft=_span(start, first) if ok else float("nan"),
        e2e=_span(start, last) if ok else float("nan"),
        gaps=np.diff(np.unique(times)) if ok else np.empty(0),
        error=error,
    )


def _time(record: Record, key: str) -> float:
    return _known(record.number(key))


def _known(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _span(start: float, end: float) -> float:
    """The time between; NaN when it is not positive, since no answer comes at once."""
    return end - start if end > start else float("nan")


def _error(record: Record) -> str:
    """What went wrong, empty when nothing did."""
    if record.raw("error") is None:
        return ""
    error = record.child("error")
    words = [word for word in (error.text("error_type"), error.text("error_msg")) if word]
    return clean_text(": ".join(words)) or record.text("error") or "failed"


def _token_times(answer: Record, record: Record, problems: list[str]) -> Floats:
    """The times of tokens in order; empty when there are none, or when they run backwards."""
    values = answer.sequence("output_token_times")
    if not values:
        return np.empty(0)
    try:
        times = floats(values, "output_token_times")
    except ArrayProblem as problem:
        problems.append(f"{record.path('info')}: {problem}; the times of this request are left aside.")
        return np.empty(0)
    if not np.isfinite(times).all() or bool((np.diff(times) < 0).any()):
        problems.append(f"{record.path('info')}: its token times run backwards or are no times; they are left aside.")
        return np.empty(0)
    return times


def _samples(requests: list[_Request]) -> RequestSamples:
    start = np.array([request.start for request in requests], dtype=np.float64)
    errors = tuple(request.error for request in requests)
    return RequestSamples(
        ok=np.array([request.ok for request in requests], dtype=np.bool_),
        prompt_tokens=np.array([request.prompt for request in requests], dtype=np.float64),
        output_tokens=np.array([request.output for request in requests], dtype=np.float64),
        ttft_s=np.array([request.ttft for request in requests], dtype=np.float64),
        e2e_s=np.array([request.e2e for request in requests], dtype=np.float64),
        start_s=start - np.nanmin(start) if np.isfinite(start).any() else None,
        chunk_gaps_s=np.concatenate([request.gaps for request in requests]),
        chunk_gap_counts=np.array([request.gaps.size for request in requests], dtype=np.int64),
        errors=errors if any(errors) else (),
    )


def _duration(requests: list[_Request]) -> float | None:
    """From the first request sent to the last that ended."""
    starts = [request.start for request in requests if request.start == request.start]
    ends = [request.end for request in requests if request.end == request.end]
    lasted = max(ends) - min(starts) if starts and ends else 0.0
    return lasted if lasted > 0 else None


def _workload(samples: RequestSamples, completed: int) -> Workload:
    prompt, output = _total(samples.prompt_tokens, samples), _total(samples.output_tokens, samples)
    workload = Workload(prompt_tokens_mean=per_request(prompt, completed), output_tokens_mean=per_request(output, completed))
    return replace(workload, prompt_tokens_total=prompt, output_tokens_total=output)


def _total(column: Floats, samples: RequestSamples) -> int | None:
    """The sum over the requests that succeeded; one without a count makes it unknown, not smaller."""
    total = float(column[samples.ok].sum()) if samples.ok.any() else float("nan")
    return int(total) if total == total and total < LARGEST_INTEGER else None
