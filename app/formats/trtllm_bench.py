"""trtllm-bench: the JSON report (`--report_json`) of its throughput and latency benchmarks.

In process, milliseconds and tokens per second in every name. TPOT is (end - first token) / (tokens - 1) of each request, and 0 for a
request of one token; TTFT is 0 for a request without a first token: where such a 0 is the minimum, the mean counts it and keeps a
definition of its own. Percentiles are nearest-rank. Requests that failed are counted with the others. `avg_num_concurrent_requests` is
a measured mean. `streaming_metrics` is there for streamed runs alone, `decoding_stats` for speculative decoding. The report is the
richest of all in identity: `engine`, `machine`, `world_info`.
"""

from dataclasses import dataclass, replace

from app.domain.checks import Evidence, flagged
from app.domain.derive import with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import CANONICAL, Distribution, LoadMode, RequestCounts, Run, Workload
from app.formats.document import Document
from app.formats.identity import NO_MODEL, said_size, said_word
from app.formats.importer import Importer, json_decline
from app.formats.record import Record
from app.formats.serving import deployment_rates, first_known, itl_from_report
from app.formats.stat_export import exact_total

ID = "trtllm_bench"
_SECTIONS = ("engine", "world_info", "performance")
_RATES = {
    "requests_per_s": ("request_throughput_req_s",),
    "output_tokens_per_s": ("system_output_throughput_tok_s",),
    "total_tokens_per_s": ("system_total_throughput_tok_s",),
}
_STATS = {"mean": "average", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "min": "minimum", "max": "maximum"}
_MEASURED = ("mean", "p50", "p90", "p95", "p99")
_WORLD_LABELS = ("max_batch_size", "max_num_tokens", "scheduling_policy", "kv_cache_percentage")
WITH_ZEROS = {
    "ttft_s": "mean over all requests, those without a first token counted as 0",
    "tpot_s": "TPOT of requests, those of one token counted as 0",
}
NEAREST_RANK = "Percentiles are trtllm-bench's own: nearest rank, not interpolated."
FAILURES_INSIDE = "trtllm-bench counts requests that failed with the others: failures are not known."
MEASURED_MEAN = "The concurrency is the measured mean of the requests in flight, rounded: the report does not say the limit."


def matches(document: Document) -> str | None:
    """None when every object has the sections `engine`, `world_info` and `performance`."""
    if (reason := json_decline(document)) is not None:
        return reason
    for entry in document.entries:
        missing = [key for key in _SECTIONS if not isinstance(entry.values.get(key), dict)]
        if missing:
            return f"{entry.where}no object {missing[0]}"
    return None if document.entries else "no object"


def parse(document: Document) -> list[Run]:
    """One run for each report. Raises ImportRefused for one without a time."""
    return [_run(Record(entry.values, entry.where)) for entry in document.entries]


def _run(record: Record) -> Run:
    info, performance = record.child("request_info"), record.child("performance")
    run = _identified(record)
    completed = info.count("num_requests")
    duration_ms = performance.positive("total_latency_ms")
    prompt, output = info.positive("avg_input_length"), info.positive("avg_output_length")
    in_flight = info.positive("avg_num_concurrent_requests")
    run = replace(
        run,
        duration_s=duration_ms / 1e3 if duration_ms else None,
        load_mode=_load_mode(in_flight),
        requests=RequestCounts(completed=completed),
        workload=Workload(
            prompt_tokens_mean=prompt,
            output_tokens_mean=output,
            prompt_tokens_total=exact_total(prompt, completed),
            output_tokens_total=exact_total(output, completed),
            concurrency=round(in_flight) if in_flight and 1 <= round(in_flight) <= 10**9 else None,
        ),
        labels={**run.labels, **({"measured_concurrency": f"{in_flight:.6g}"} if in_flight else {})},
        warnings=(*run.warnings, FAILURES_INSIDE, *([MEASURED_MEAN] if in_flight else [])),
    )
    if completed == 0:
        return flagged(run)
    return _measured(run, record, (info, performance))


def _load_mode(in_flight: float | None) -> LoadMode | None:
    """One request at a time is never more than one in flight on average; of more, only the command line says how they came."""
    return "single" if in_flight is not None and in_flight <= 1.0 else None


def _measured(run: Run, record: Record, read: tuple[Record, ...]) -> Run:
    performance, streaming = record.child("performance"), record.child("streaming_metrics")
    completed, output = run.requests.completed, run.workload.output_tokens_mean
    parts = {
        "e2e_s": (performance, "request_latency_percentiles_ms", "avg_request_latency_ms"),
        "ttft_s": (streaming, "ttft_percentiles", "avg_ttft_ms"),
        "tpot_s": (streaming, "tpot_percentiles", "avg_tpot_ms"),
    }
    inside = {key: section.child(percentiles) for key, (section, percentiles, _) in parts.items()}
    metrics: dict[str, Distribution] = {}
    for key, (section, _, mean) in parts.items():
        # Requests of one token have no TPOT, so only of the others is the number certain.
        n = None if key == "tpot_s" else completed
        if (found := _latency(key, inside[key], section.positive(mean), n)) is not None:
            metrics[key] = found
    if not metrics:
        raise ImportRefused(f"{performance.path('avg_request_latency_ms')} holds no time: there is no run in this report.")
    finding = itl_from_report(metrics, completed, round(output * completed) if output and completed else None)
    if finding.itl is not None and "ttft_s" in metrics and metrics["ttft_s"].definition == CANONICAL:
        metrics["itl_s"] = finding.itl
    rates = deployment_rates(performance, _RATES, run.duration_s, run.requests, run.workload)
    speculation = _speculation(record)
    if (itl := metrics.get("itl_s")) is not None and itl.mean and speculation.tokens_per_step:
        metrics["step_s"] = Distribution(mean=itl.mean * speculation.tokens_per_step, origin="derived")
    records = (*read, streaming, *inside.values())
    notes = [*run.warnings, NEAREST_RANK, *speculation.notes, *rates.warnings]
    done = replace(
        run,
        metrics={**metrics, **rates.rates},
        labels={**run.labels, **speculation.labels},
        warnings=tuple(dict.fromkeys((*notes, *(note for each in records for note in each.warnings)))),
    )
    evidence = Evidence(
        not_numbers=tuple(key for each in records for key in each.not_numbers),
        negative=tuple(clause for each in records for clause in each.negative),
        streamed="ttft_s" in metrics,
    )
    return flagged(with_request_rates(done), evidence)


def _latency(key: str, percentiles: Record, mean_ms: float | None, n: int | None) -> Distribution | None:
    found = {stat: percentiles.positive(name) for stat, name in _STATS.items()}
    found["mean"] = first_known(mean_ms, found["mean"])
    if all(found[stat] is None for stat in _MEASURED):
        return None
    zeros = key in WITH_ZEROS and percentiles.number("minimum") == 0
    seconds = {stat: None if value is None else value * 1e-3 for stat, value in found.items()}
    return Distribution(**seconds, n=n, origin="reported", definition=WITH_ZEROS[key] if zeros else CANONICAL)


@dataclass(frozen=True)
class _Speculation:
    """What `decoding_stats` says: labels, and a sentence about tokens per step."""

    labels: dict[str, str]
    notes: tuple[str, ...] = ()
    tokens_per_step: float | None = None


def _speculation(record: Record) -> _Speculation:
    stats = record.child("decoding_stats")
    labels: dict[str, str] = {}
    if (mode := stats.label("mode")) is not None:
        labels["speculative_mode"] = mode
    length = stats.child("acceptance_length_percentiles").positive("average")
    share = stats.child("draft_acceptance_rate_percentiles").number("average")
    if share is not None:
        labels["draft_acceptance_rate"] = f"{share:.6g}"
    if length is None:
        return _Speculation(labels)
    labels["acceptance_length"] = f"{length:.6g}"
    note = f"Speculative decoding: a step makes {length:.3g} tokens on average, so it takes that many times the ITL."
    return _Speculation(labels, (note,), length)


def _identified(record: Record) -> Run:
    engine, machine, world = record.child("engine"), record.child("machine"), record.child("world_info")
    model = engine.text("model") or engine.text("model_path")
    labels = {key: value for key in _WORLD_LABELS if (value := world.label(key)) is not None}
    if (backend := engine.label("backend")) is not None:
        labels["backend"] = backend
    return Run(
        format=ID,
        engine="tensorrt-llm",
        engine_version=engine.text("version"),
        model=model,
        hardware=machine.text("name"),
        devices=said_size(world, "world_size"),
        tp=said_size(world, "tp_size"),
        pp=said_size(world, "pp_size"),
        ep=said_size(world, "ep_size"),
        weight_dtype=first_known(said_word(engine, "quantization"), said_word(engine, "dtype")),
        kv_dtype=said_word(engine, "kv_cache_dtype"),
        measured_at="in_process",
        labels=labels,
        warnings=() if model else (NO_MODEL,),
    )


IMPORTER = Importer(ID, "trtllm-bench report (JSON)", matches, parse, version=3)
