"""From the numbers of a case to domain objects: names and units are changed here, nothing is worked out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.domain.checks import Evidence, as_shown, flagged
from app.domain.derive import request_distributions, with_request_rates
from app.domain.readings import ChunkStream, dispatch_times, samples_of_streams
from app.domain.run import Distribution, MetricValue, Rate, RequestCounts, RequestSamples, Run, Workload

Given = Mapping[str, Any]
MS = 1e-3
MHZ = 1e6

# The case's name of a mean -> ours, and what its unit is multiplied by.
MEANS = {
    "mean_ttft_ms": ("ttft_s", MS),
    "ttft_ms": ("ttft_s", MS),
    "client_ttft_ms": ("ttft_s", MS),
    "server_ttft_ms": ("server_ttft_s", MS),
    "mean_tpot_ms": ("tpot_s", MS),
    "tpot_ms": ("tpot_s", MS),
    "itl_ms": ("itl_s", MS),
    "e2e_ms": ("e2e_s", MS),
    "latency_ms": ("e2e_s", MS),
    "generation_time_ms": ("decode_s", MS),
    "prefill_latency_ms": ("prefill_s", MS),
    "gap_s": ("idle_before_s", 1.0),
    "sm_mhz": ("sm_clock_hz", MHZ),
    "mem_mhz": ("memory_clock_hz", MHZ),
}
RATES = {
    "output_throughput_tok_s": ("output_tokens_per_s", "aggregate"),
    "pp_tok_s": ("prefill_tokens_per_s", "request"),
    "tg_tok_s": ("decode_tokens_per_s", "request"),
}
WORKLOAD = {
    "concurrency": "concurrency",
    "max_concurrency": "concurrency",
    "c": "concurrency",
    "batch": "concurrency",
    "isl": "prompt_tokens_mean",
    "prompt_tokens": "prompt_tokens_mean",
    "prompt_tokens_each": "prompt_tokens_mean",
    "sequence_length": "prompt_tokens_mean",
    "usage_prompt_tokens": "prompt_tokens_mean",
    "osl": "output_tokens_mean",
    "output_tokens": "output_tokens_mean",
    "output_tokens_each": "output_tokens_mean",
    "total_output_tokens": "output_tokens_total",
}
EVIDENCE = {
    "peak_output_tok_s": "peak_output_tokens_per_s",
    "accept_length": "tokens_per_chunk",
    "reported_prefill": "reported_prefill_per_s",
    "requested": "requested_prompt_tokens",
    "client_counted_tokens": "retokenized_output_tokens",
    "retokenized_tokens": "retokenized_output_tokens",
    "tflops_by_block": "rate_blocks",
}
# Names under which a case counts the output tokens of its one request.
COUNTED = ("output_tokens", "usage_completion_tokens", "streamed_tokens")


def shown(given: Given, figures: Mapping[str, MetricValue] | None = None) -> Run:
    """The run of a case as the product stores and shows it; `figures` are metrics that it already has."""
    run = run_of(given)
    evidence = Evidence(
        **{ours: tuple(given[name]) if isinstance(given[name], list) else given[name] for name, ours in EVIDENCE.items() if name in given}
    )
    return as_shown(flagged(with_request_rates(replace(run, metrics={**run.metrics, **(figures or {})})), evidence))


def run_of(given: Given) -> Run:
    """A run with everything that the case gives of it."""
    workload = Workload(**{ours: given[name] for name, ours in WORKLOAD.items() if is_number(given.get(name))})
    metrics: dict[str, MetricValue] = {
        ours: Distribution(mean=given[name] * unit) for name, (ours, unit) in MEANS.items() if is_number(given.get(name))
    }
    metrics |= {ours: Rate(given[name], scope) for name, (ours, scope) in RATES.items() if is_number(given.get(name))}  # type: ignore[arg-type]
    run = Run(
        format="generic",
        measured_at="client",
        duration_s=given.get("duration_s"),
        load_mode="static_batch" if "prefill_latency_ms" in given else None,
        workload=workload,
        requests=RequestCounts(completed=given.get("completed")),
        metrics=metrics,
    )
    samples = samples_of(given)
    if samples is None:
        return run
    counted = replace(workload, output_tokens_mean=None)
    counts = RequestCounts(samples.size, int(samples.ok.sum()), 0)
    return replace(run, samples=samples, requests=counts, workload=counted, metrics=dict(request_distributions(samples)))


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def samples_of(given: Given) -> RequestSamples | None:
    """Per-request columns of a case that has single requests, whatever it calls them."""
    for builder in (_requests, _timeline, _waves, _schedule, _chunks, _one_stream, _one_request, _reasoned, _first_tokens):
        if (found := builder(given)) is not None:
            return found
    return None


def columns(
    ttft_s: Sequence[float], e2e_s: Sequence[float] | None = None, output: Sequence[float] | None = None, **more: Any
) -> RequestSamples:
    size = len(ttft_s)
    unknown = np.full(size, np.nan)
    return RequestSamples(
        ok=np.ones(size, dtype=np.bool_),
        prompt_tokens=more.pop("prompt_tokens", unknown),
        output_tokens=unknown if output is None else np.array(output, dtype=np.float64),
        ttft_s=np.array(ttft_s, dtype=np.float64),
        e2e_s=unknown if e2e_s is None else np.array(e2e_s, dtype=np.float64),
        **more,
    )


def _requests(given: Given) -> RequestSamples | None:
    rows = given.get("requests")
    if not isinstance(rows, list):
        return None
    return columns(*([row[name] * unit for row in rows] for name, unit in (("ttft_ms", MS), ("e2e_ms", MS), ("output_tokens", 1.0))))


def _timeline(given: Given) -> RequestSamples | None:
    rows = given.get("timeline")
    if rows is None:
        return None
    starts, ends = (np.array([row[name] for row in rows], dtype=np.float64) for name in ("start", "end"))
    unknown = [float("nan")] * len(rows)
    return columns(unknown, list(ends - starts), [row["tokens"] for row in rows], start_s=starts)


def _waves(given: Given) -> RequestSamples | None:
    """An opening wave and the rest: listed, evenly spaced, or all alike."""
    if "first_wave" in given.get("ttft_s", ()):
        wave, rest = given["ttft_s"]["first_wave"], given["ttft_s"]["rest"]
        itl = given["itl_p50_ms"]
        firsts = [*wave, *(rest["start"] + rest["step"] * index for index in range(rest["count"]))]
        gaps = [itl["first_wave"] * MS] * len(wave) + [itl["rest"] * MS] * rest["count"]
        return samples_of_streams([ChunkStream(first, [gap], [1, 1]) for first, gap in zip(firsts, gaps, strict=True)])
    if "first_wave_ttft_ms" in given:
        clients, size = given["concurrency"], given["requests"]
        return columns([given["first_wave_ttft_ms"] * MS] * clients + [given["steady_ttft_ms"] * MS] * (size - clients))
    return None


def _schedule(given: Given) -> RequestSamples | None:
    if "schedule_interval_ms" not in given:
        return None
    count = given["requests"]
    due, service = np.arange(count) * given["schedule_interval_ms"] * MS, np.full(count, given["service_ms"] * MS)
    sent = dispatch_times(due, service, given["max_concurrency"])
    return columns([float("nan")] * count, list(service), start_s=sent, scheduled_s=due)


def _chunks(given: Given) -> RequestSamples | None:
    if "chunk_gap_ms" in given:
        count = given["chunks"]
        stream = ChunkStream(given["ttft_ms"] * MS, [given["chunk_gap_ms"] * MS] * (count - 1), [given["tokens_per_chunk"]] * count)
        return samples_of_streams([stream])
    return None


def _one_stream(given: Given) -> RequestSamples | None:
    """One answer whose tokens come evenly."""
    if not all(is_number(given.get(name)) for name in ("ttft_ms", "itl_ms", "output_tokens")):
        return None
    count = given["output_tokens"]
    return samples_of_streams([ChunkStream(given["ttft_ms"] * MS, [given["itl_ms"] * MS] * (count - 1), [1] * count)])


def _one_request(given: Given) -> RequestSamples | None:
    tokens = next((given[name] for name in COUNTED if is_number(given.get(name))), None)
    if tokens is None or not is_number(given.get("ttft_ms")) or not is_number(given.get("e2e_ms")):
        return None
    chunks = {"chunks": np.array([float(given["sse_chunks"])])} if "sse_chunks" in given else {}
    return columns([given["ttft_ms"] * MS], [given["e2e_ms"] * MS], [tokens], **chunks)


def _reasoned(given: Given) -> RequestSamples | None:
    if "first_reasoning_ms" not in given:
        return None
    answer = np.array([given["first_content_ms"] * MS])
    first, end = [given["first_reasoning_ms"] * MS], [given["end_ms"] * MS]
    return columns(first, end, [given["usage_completion_tokens"]], ttft_answer_s=answer)


def _first_tokens(given: Given) -> RequestSamples | None:
    """Only the first tokens of several requests are known."""
    if isinstance(listed := given.get("ttft_ms"), list):
        more = {"start_s": np.array(given["sent_at_ms"]) * MS} if "sent_at_ms" in given else {}
        if "prompt_tokens" in given:
            more["prompt_tokens"] = np.full(len(listed), float(given["prompt_tokens"]))
        output = [given["output_tokens"]] * len(listed) if "output_tokens" in given else None
        return columns([value * MS for value in listed], None, output, **more)
    times = given.get("ttft_s")
    if isinstance(times, list):
        return columns(times)
    if isinstance(times, dict) and "repeat" in times:
        return columns([value for value, count in times["repeat"] for _ in range(count)])
    return None
