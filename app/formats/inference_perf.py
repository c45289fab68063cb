"""inference-perf: summary and stage reports (`…_lifecycle_metrics.json`); per-request files are read beside it.

Everything is in seconds. `time_per_output_token` is TPOT over the token times it keeps, `inter_token_latency` the gaps between those, 0
within a chunk, `normalized_time_per_output_token` the whole request per token. Until 2025 each chunk was tokenised by itself and counted
a start token every time: then there are about twice as many token times as tokens, which the mean end-to-end latency shows.
"""

from collections.abc import Mapping
from dataclasses import replace

from app.domain.checks import Evidence, flagged
from app.domain.checks.figures import MEANS_DIFFER
from app.domain.derive import with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import CANONICAL, Distribution, Flag, MetricValue, RequestCounts, Run, Workload
from app.domain.text import clean_text, duration, percent
from app.formats.document import Document, Entry
from app.formats.importer import Importer, json_decline
from app.formats.inference_perf_requests import NO_MODEL, is_request, requests_run
from app.formats.load import offered_load
from app.formats.record import LARGEST, LARGEST_INTEGER, Record
from app.formats.serving import deployment_rates, first_known, itl_from_report

ID = "inference_perf"
SPREAD_TOKENS = "gap between token times, which are alike within a chunk"
POOLED = "A summary pools all stages of its run: import the stage files for their operating points, and do not add the two up."
STREAM_END = "request_latency runs to the end of the stream: ITL, which is taken from it, holds what comes after the last token."
NOT_STREAMED = "TTFT and the time per token were not measured: streaming was off. Turn it on (api: streaming: true) to split the phases."
_SERVER_METRICS = (
    "These are the server's own metrics of one stage, which belong to that stage's run and are no run by themselves: "
    "send its stage_N_lifecycle_metrics.json instead."
)
_LATENCIES = {
    "ttft_s": "time_to_first_token",
    "tpot_s": "time_per_output_token",
    "ntpot_s": "normalized_time_per_output_token",
    "e2e_s": "request_latency",
}
_STATS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99", "std": "std_dev", "min": "min", "max": "max"}
_RATES = {
    "requests_per_s": ("requests_per_sec",),
    "output_tokens_per_s": ("output_tokens_per_sec",),
    "total_tokens_per_s": ("total_tokens_per_sec",),
}
# Counting a start token with every chunk doubles the tokens; time after the last token stays far below that.
_COUNTED_TWICE = 1.25
_LATE_SHARE = 0.01
_MOST_LABELS = 8


def matches(document: Document) -> str | None:
    """None for reports (`successes` and `failures`), or a list of requests (`start_time`, `end_time`, `info`)."""
    if (reason := json_decline(document)) is not None:
        return reason
    requests = is_request(document.entries[0].values)
    for entry in document.entries:
        if requests and not is_request(entry.values):
            return f"{entry.where}no keys start_time, end_time and info"
        missing = [key for key in ("successes", "failures") if not isinstance(entry.values.get(key), dict)]
        if not requests and missing:
            return f"{entry.where}no key {missing[0]}"
    return None


def parse(document: Document) -> list[Run]:
    """One run for each report, one for a file of requests. Raises ImportRefused for server metrics and for files without a figure."""
    if is_request(document.entries[0].values):
        return [requests_run(document.entries, ID)]
    return [_run(entry) for entry in document.entries]


def _run(entry: Entry) -> Run:
    record = Record(entry.values, entry.where)
    load, good, bad = record.child("load_summary"), record.child("successes"), record.child("failures")
    if "latency" not in good and ("rate" in good or "request_latency" in good):
        raise ImportRefused(_SERVER_METRICS)
    counts = _counts(good.count("count"), bad.count("count"))
    offered = offered_load(load.raw("requested_rate"), load.count("concurrency"))
    workload = replace(
        _workload(good, counts.completed),
        concurrency=offered.concurrency,
        request_rate_per_s=offered.request_rate_per_s,
        rate_unlimited=offered.rate_unlimited,
    )
    run = Run(
        format=ID,
        load_mode=offered.mode,
        measured_at="client",
        workload=workload,
        requests=counts,
        duration_s=_duration(record, good, counts.completed),
        labels=_labels(load, bad),
        warnings=(NO_MODEL, *_count_note(load, counts), *(() if "requested_rate" in load else (POOLED,))),
    )
    return _measured(run, good, load, record)


def _counts(completed: int | None, failed: int | None) -> RequestCounts:
    sent = None if completed is None else completed + (failed or 0)
    return RequestCounts(sent if sent is not None and sent <= LARGEST_INTEGER else None, completed, failed)


def _measured(run: Run, good: Record, load: Record, record: Record) -> Run:
    latency, throughput = good.child("latency"), good.child("throughput")
    children = [record, good, load, latency, throughput]
    if run.requests.completed == 0:
        return flagged(replace(run, warnings=(*run.warnings, *record.warnings)))
    found: dict[str, Distribution] = {}
    for key, name in _LATENCIES.items():
        child = latency.child(name)
        children.append(child)
        if (distribution := _statistics(child, run.requests.completed)) is not None:
            found[key] = distribution
    itl = itl_from_report(found, run.requests.completed, run.workload.output_tokens_total, gaps_are_sound=False)
    own = [flag for flag in (_counted_twice(run, found), _late(load, found), _not_streamed(found), _cached(good)) if flag is not None]
    metrics: dict[str, MetricValue] = {key: value for key, value in found.items() if not any(key in flag.withholds for flag in own)}
    if itl.itl is not None:
        metrics["itl_s"] = itl.itl
    gaps = _statistics(latency.child("inter_token_latency"), None)
    if gaps is not None and "tpot_s" in metrics:
        metrics["chunk_gap_s"] = replace(gaps, definition=SPREAD_TOKENS)
    rates = deployment_rates(throughput, _RATES, run.duration_s, run.requests, run.workload)
    metrics.update(rates.rates)
    metrics.update(_client_wait(load) if metrics else {})
    if not metrics:
        raise ImportRefused(f"{good.path('latency')} and throughput hold no figure: there is nothing to import.")
    notes = [note for child in children for note in child.warnings]
    said = [itl.note] if itl.note and itl.itl is None else _trailing(run, found)
    done = replace(run, metrics=metrics, warnings=(*run.warnings, *said, *rates.warnings, *notes))
    evidence = Evidence(
        not_numbers=tuple(key for child in children for key in child.not_numbers),
        negative=tuple(clause for child in children for clause in child.negative),
    )
    checked = flagged(with_request_rates(done), evidence)
    return replace(checked, flags=(*checked.flags, *own))


def _statistics(record: Record, n: int | None) -> Distribution | None:
    """The file's statistics of one latency; a mean or percentile of 0 stands for no value."""
    values = {stat: record.number(key) for stat, key in _STATS.items()}
    values["p50"] = first_known(values["p50"], record.number("p50"))
    for stat in ("mean", "p50", "p90", "p95", "p99"):
        values[stat] = values[stat] or None
    if all(values[stat] is None for stat in ("mean", "p50", "p90", "p95", "p99")):
        return None
    return Distribution(**values, n=n, origin="reported", definition=CANONICAL)


def _workload(good: Record, completed: int | None) -> Workload:
    prompt, output = _mean_tokens(good, "prompt_tokens", "prompt_len"), _mean_tokens(good, "output_tokens", "output_len")
    return Workload(
        prompt_tokens_mean=prompt,
        output_tokens_mean=output,
        prompt_tokens_total=_total(prompt, completed),
        output_tokens_total=_total(output, completed),
    )


def _mean_tokens(good: Record, *names: str) -> float | None:
    return first_known(*(good.child(name).positive("mean") for name in names))


def _total(mean: float | None, completed: int | None) -> int | None:
    total = mean * completed if mean is not None and completed else None
    return round(total) if total is not None and total < LARGEST_INTEGER else None


def _duration(record: Record, good: Record, completed: int | None) -> float | None:
    """The file's own, else what its request rate implies."""
    own = record.positive("benchmark_time_seconds")
    rate = good.child("throughput").positive("requests_per_sec")
    return own if own is not None else completed / rate if completed and rate else None


def _count_note(load: Record, counts: RequestCounts) -> tuple[str, ...]:
    said = load.count("count")
    if said is None or counts.sent is None or said == counts.sent:
        return ()
    return (f"load_summary counts {said} requests; successes and failures add up to {counts.sent}, which is used.",)


def _labels(load: Record, bad: Record) -> dict[str, str]:
    labels = {key: label for key in ("requested_rate", "achieved_rate", "send_duration") if (label := load.label(key)) is not None}
    for name, value in list(bad.child("by_label").items())[:_MOST_LABELS]:
        count = value.get("count") if isinstance(value, Mapping) else None
        if isinstance(count, int) and abs(count) <= LARGEST_INTEGER:
            labels[f"failed: {clean_text(name, 60)}"] = str(count)
    return labels


def _counted_twice(run: Run, found: Mapping[str, Distribution]) -> Flag | None:
    """Said when TPOT divides the decode time by far more tokens than came out."""
    implied, output, tpot = _token_times(found), run.workload.output_tokens_mean, found.get("tpot_s")
    if implied is None or tpot is None or not tpot.mean or not output or output <= 1:
        return None
    if (implied - 1) / (output - 1) <= _COUNTED_TWICE:
        return None
    return Flag(
        "tokenizer_mismatch",
        f"The file's time per output token, {duration(tpot.mean)}, is that of {implied:.4g} tokens a request, where {output:.4g} came out: "
        "the client tokenised each chunk by itself. ITL is taken from the whole request; TPOT is left out.",
        ("tpot_s",),
    )


def _token_times(found: Mapping[str, Distribution]) -> float | None:
    """Token times a request that mean end-to-end latency, TTFT and TPOT imply together."""
    ttft, e2e, tpot = (found[key].mean if key in found else None for key in ("ttft_s", "e2e_s", "tpot_s"))
    return (e2e - ttft) / tpot + 1 if ttft and e2e and tpot else None


def _trailing(run: Run, found: Mapping[str, Distribution]) -> tuple[str, ...]:
    """Said when whole requests last longer than their tokens explain, and not because those were counted twice."""
    implied, output = _token_times(found), run.workload.output_tokens_mean
    if implied is None or not output or output <= 1 or not MEANS_DIFFER < (implied - 1) / (output - 1) - 1 <= _COUNTED_TWICE - 1:
        return ()
    return (STREAM_END,)


def _client_wait(load: Record) -> dict[str, MetricValue]:
    """The mean time between the moments that requests were due and sent; a mean below 0 is of two clocks, and says nothing."""
    delay = load.child("schedule_delay").raw("mean")
    if isinstance(delay, bool) or not isinstance(delay, (int, float)) or not 0 <= delay < LARGEST:
        return {}
    return {"client_queue_s": Distribution(mean=float(delay))}


def _late(load: Record, found: Mapping[str, Distribution]) -> Flag | None:
    """Said when requests left the client later than they were due."""
    delay = load.child("schedule_delay").raw("mean")
    e2e = found["e2e_s"].mean if "e2e_s" in found else None
    if not isinstance(delay, float) or not e2e or not e2e * _LATE_SHARE < delay < float("inf"):
        return None
    return Flag(
        "client_queue_excluded",
        f"Requests left the client {duration(delay)} after they were due, on average, before the clock started: "
        "latency from the intended moment is longer.",
    )


def _not_streamed(found: Mapping[str, Distribution]) -> Flag | None:
    if "e2e_s" not in found or "ttft_s" in found or "tpot_s" in found:
        return None
    return Flag("non_streaming_no_phase_split", NOT_STREAMED)


def _cached(good: Record) -> Flag | None:
    tokens = good.child("prompt_tokens")
    cached, total = tokens.positive("cached"), tokens.positive("total")
    if cached is None or total is None or cached > total:
        return None
    return Flag("prefix_cache_hits", f"{percent(cached / total)} of the prompt tokens were in the server's cache.")


IMPORTER = Importer(ID, "inference-perf reports and requests (JSON)", matches, parse, version=3)
