"""vLLM `bench serve` (and its ancestor benchmark_serving.py): JSON of every era since 2023.

TTFT is POST sent to first chunk, the client's own queue outside. What the file calls ITL is the gap between chunks, pooled over all
requests: `chunk_gap_s` here. Latencies are of successful requests; when none succeeded every statistic is 0.0, not a measurement.

Eras told apart by their keys: `request_goodput:` with a colon (2024-10 to 2025-06), `failed` (since 2025-08), arrays only with
--save-detailed (since 2025-03), `latencies` and `queue_times` always (since 0.30), derived files in seconds without `_ms`. From
2024-03-27 to 2024-08-09 the completions client put TTFT first in the list of gaps (vllm #3277, #7372).
Anything else at top level is `--metadata` or a swept parameter: a label, never a metric.
"""

import re
from dataclasses import dataclass, replace

from app.domain.checks import Evidence, flagged
from app.domain.derive import with_request_rates
from app.domain.run import CANONICAL, Distribution, RequestCounts, Run
from app.domain.text import clean_text
from app.formats.document import Document
from app.formats.importer import Importer, json_decline
from app.formats.load import Load, offered_load
from app.formats.record import Record
from app.formats.request_arrays import ArrayReading, read_requests
from app.formats.serving import (
    CLIENT_TOKENIZER,
    MILLISECONDS,
    SECONDS,
    SERVER_USAGE,
    Merged,
    Naming,
    TokenTotals,
    first_known,
    itl_from_report,
    merged,
    reported,
    served_workload,
    token_totals,
    with_figures,
)
from app.formats.vllm_serve_waits import GOODPUT_KEYS, goodput, waits

ID = "vllm_bench_serve"
TTFT_AMONG_GAPS = "gap between chunks with each TTFT among them (vLLM client of 2024-03-27 to 2024-08-09)"
_POLLUTED_FROM, _POLLUTED_UNTIL = "20240327", "20240809"
_USAGE_COUNTS_SINCE = "20250122"
_STEMS = {"ttft_s": "ttft", "tpot_s": "tpot", "chunk_gap_s": "itl", "e2e_s": "e2el"}
_RATES = {
    "requests_per_s": ("request_throughput",),
    "output_tokens_per_s": ("output_throughput",),
    "total_tokens_per_s": ("total_token_throughput",),
}
_ENGINES = {
    "vllm": "vllm",
    "vllm-chat": "vllm",
    "sglang": "sglang",
    "tgi": "tgi",
    "tensorrt-llm": "tensorrt-llm",
    "lmdeploy": "lmdeploy",
    "deepspeed-mii": "deepspeed-mii",
    "llama.cpp": "llama.cpp",
    "scalellm": "scalellm",
}
_COMPLETIONS_CLIENTS = frozenset({"vllm", "openai", "sglang", "lmdeploy", "scalellm"})
_FIGURE = re.compile(r"(mean|median|std|min|max|p\d+(\.\d+)?)_(ttft|tpot|itl|e2el|client_queue_time|e2el_including_client_queue)(_ms)?\Z")
_CONSUMED = frozenset(
    {
        *("backend", "endpoint_type", "label", "model_id", "num_prompts", "request_rate", "max_concurrency"),
        *("duration", "completed", "failed", "total_input_tokens", "total_output_tokens", "dataset_name"),
        *GOODPUT_KEYS,
        *("request_throughput", "output_throughput", "total_token_throughput", "input_throughput", "rtfx"),
        # Counted in chunks and in whole seconds: neither a rate nor a concurrency.
        *("max_output_tokens_per_s", "max_concurrent_requests"),
    }
)
# Names under which people put what the file has no key for (--metadata, swept parameters).
_IDENTITY = {
    "hardware": ("hardware", "gpu", "gpu_type", "gpu_name", "accelerator"),
    "engine_version": ("vllm_version", "engine_version"),
    "weight_dtype": ("weight_dtype", "quantization", "dtype"),
    "kv_dtype": ("kv_cache_dtype", "kv_dtype"),
}
_SIZES = {
    "tp": ("tp", "tensor_parallel_size", "tp_size"),
    "pp": ("pp", "pipeline_parallel_size", "pp_size"),
    "ep": ("ep", "ep_size", "expert_parallel_size"),
    "dp": ("dp", "dp_size", "data_parallel_size"),
    "devices": ("devices", "num_gpus", "n_gpus", "gpu_count"),
}
_UNSAID = frozenset({"auto", "none", "null", "default", ""})
MOST_LABELS = 80
NO_PHASES = "The file has no TTFT and no time between tokens (an embedding run writes none): only the whole request is known, no phase."


def matches(document: Document) -> str | None:
    """None when every object has `model_id` and latency statistics under vLLM's names."""
    if (reason := json_decline(document)) is not None:
        return reason
    for entry in document.entries:
        if "total_output_tokens_retokenized" in entry.values:
            return f"{entry.where}total_output_tokens_retokenized is SGLang's"
        if "model_id" not in entry.values:
            return f"{entry.where}no key model_id"
        if naming_of(entry.values) is None:
            return f"{entry.where}no statistics named like mean_ttft_ms, median_ttft or mean_e2el_ms, and no ttfts"
    return None


def naming_of(values: object) -> Naming | None:
    """The naming of an object's latencies: milliseconds with `_ms`, seconds without a suffix; None when it has neither."""
    keys = values if isinstance(values, dict) else {}
    for naming in (MILLISECONDS, SECONDS):
        for stem in ("ttft", "e2el"):
            if any(f"{stat}_{stem}{naming.suffix}" in keys for stat in ("mean", "median", "p50", "p99")):
                return naming
    # A report that was told to print no statistics still has them in its arrays.
    return MILLISECONDS if "ttfts" in keys else None


def parse(document: Document) -> list[Run]:
    """One run for each object of the file."""
    return [serving_run(Record(entry.values, entry.where), ID) for entry in document.entries]


@dataclass(frozen=True)
class _Identity:
    """Who served: words of the file, None where it does not say, and what has to be said about them."""

    engine: str | None
    words: dict[str, str | None]
    sizes: dict[str, int | None]
    warnings: tuple[str, ...]


def serving_run(record: Record, format_id: str, evidence: Evidence | None = None) -> Run:
    """One run from a record under vLLM's JSON names (the console log is brought under them too).

    `evidence` is what the caller knows beside the record. Raises ImportRefused when a count is no count.
    """
    who = _identity(record)
    load = offered_load(record.raw("request_rate"), record.count("max_concurrency"))
    if "ramp_up_strategy" in record:
        load = replace(load, rate_unlimited=False, request_rate_per_s=None, mode="open")
    duration_s = record.positive("duration")
    counts = _counts(record)
    run = Run(
        format=format_id,
        engine=who.engine,
        model=record.text("model_id"),
        duration_s=duration_s,
        load_mode=load.mode,
        measured_at="client",
        token_count_source=_token_source(record),
        label=record.text("label"),
        workload=served_workload(load, TokenTotals(None, None), None, record.text("dataset_name")),
        requests=counts,
        labels=_labels(record),
        engine_version=who.words["engine_version"],
        hardware=who.words["hardware"],
        weight_dtype=who.words["weight_dtype"],
        kv_dtype=who.words["kv_dtype"],
        tp=who.sizes["tp"],
        pp=who.sizes["pp"],
        ep=who.sizes["ep"],
        dp=who.sizes["dp"],
        devices=who.sizes["devices"],
    )
    return _measured(run, record, load, who.warnings, evidence or Evidence())


def _measured(run: Run, record: Record, load: Load, notes: tuple[str, ...], evidence: Evidence) -> Run:
    """The run with its figures, samples, flags and warnings."""
    if record.raw("duration") == 0:
        record.negative.append(f"{record.path('duration')} is 0, so there is no throughput")
    if run.requests.completed == 0:
        return flagged(replace(run, warnings=(*notes, *record.warnings)), _gathered(evidence, record, ArrayReading(), Merged({})))
    arrays = read_requests(record, run.duration_s, run.requests.completed, record.count("failed"))
    counts = _recounted(run.requests, arrays)
    totals = token_totals(record.count("total_input_tokens"), record.count("total_output_tokens"), arrays.samples)
    workload = served_workload(load, totals, counts.completed, record.text("dataset_name"))
    together = merged(_reported(record, run.requests.completed, arrays), arrays.samples)
    metrics = together.metrics
    warnings = [*notes, *_count_warnings(run.requests, counts, record, arrays), *arrays.warnings, *totals.warnings]
    if "itl_s" not in metrics:
        sound = "chunk_gap_s" not in metrics or metrics["chunk_gap_s"].definition == CANONICAL
        finding = itl_from_report(metrics, counts.completed, totals.output, sound)
        if finding.itl is not None:
            metrics["itl_s"] = finding.itl
        warnings.extend([finding.note] if finding.note else [])
        if not metrics.keys() & {"ttft_s", "tpot_s", "chunk_gap_s"}:
            warnings.append(NO_PHASES)
        evidence = replace(evidence, tokens_per_chunk=first_known(evidence.tokens_per_chunk, finding.tokens_per_chunk))
    beside = {**waits(record, _naming(record), load, arrays), **goodput(record)}
    run = replace(run, workload=workload, requests=counts, samples=arrays.samples, warnings=tuple(warnings))
    done = with_figures(run, together, record, _RATES)
    done = replace(done, metrics={**done.metrics, **beside})
    return flagged(with_request_rates(done), _gathered(evidence, record, arrays, together))


def _reported(record: Record, completed: int | None, arrays: ArrayReading) -> dict[str, Distribution]:
    naming = _naming(record)
    found = {}
    for key, stem in _STEMS.items():
        # Only of these two is it certain that every completed request is in the statistic.
        n = completed if key in ("ttft_s", "e2e_s") else None
        definition = TTFT_AMONG_GAPS if key == "chunk_gap_s" and _ttft_among_gaps(record, arrays) else CANONICAL
        distribution = reported(record, stem, naming, n, definition)
        if distribution is not None:
            found[key] = distribution
    if arrays.first_gap_is_ttft:
        # The file's own statistic holds what was just taken out of the samples: no contradiction, another quantity.
        found.pop("chunk_gap_s", None)
    return found


def _naming(record: Record) -> Naming:
    return naming_of(dict(record.items())) or MILLISECONDS


def _ttft_among_gaps(record: Record, arrays: ArrayReading) -> bool:
    date = (record.text("date") or "")[:8]
    client = (record.text("backend") or "").lower()
    return arrays.samples is None and _POLLUTED_FROM <= date <= _POLLUTED_UNTIL and client in _COMPLETIONS_CLIENTS


def _counts(record: Record) -> RequestCounts:
    sent, completed, failed = _sent(record), record.count("completed"), record.count("failed")
    if failed is None and sent is not None and completed is not None and sent >= completed:
        failed = sent - completed
    return RequestCounts(sent, completed, failed)


def _sent(record: Record) -> int | None:
    """The number of requests; None where `--metadata num_prompts=…` stands in its place, which is a word and then a label."""
    return None if isinstance(record.raw("num_prompts"), str) else record.count("num_prompts")


def _recounted(counts: RequestCounts, arrays: ArrayReading) -> RequestCounts:
    """Counts by the samples where there are any: a request without a token did not succeed."""
    if arrays.samples is None:
        return counts
    completed = int(arrays.samples.ok.sum())
    return RequestCounts(first_known(counts.sent, arrays.samples.size), completed, arrays.samples.size - completed)


def _count_warnings(before: RequestCounts, after: RequestCounts, record: Record, arrays: ArrayReading) -> list[str]:
    if arrays.samples is not None:
        if before.completed not in (None, after.completed):
            return [f"The file counts {before.completed} completed requests; {after.completed} of them produced a token and are used."]
        return []
    if record.raw("failed") is None and after.failed:
        return [f"The file does not count failures; the {after.failed} of {after.sent} requests that did not complete are taken as failed."]
    return []


def _gathered(evidence: Evidence, record: Record, arrays: ArrayReading, together: Merged) -> Evidence:
    queue_ms = record.number("mean_client_queue_time_ms")
    return replace(
        evidence,
        not_numbers=(*evidence.not_numbers, *record.not_numbers),
        negative=(*evidence.negative, *record.negative, *arrays.negative),
        contradictions=together.contradictions,
        contradicted=together.contradicted,
        empty_outputs=arrays.empty_outputs,
        peak_output_tokens_per_s=record.positive("max_output_tokens_per_s"),
        tokens_per_chunk=first_known(evidence.tokens_per_chunk, record.positive("spec_decode_acceptance_length")),
        answers_without_content=_all_thought(record, arrays),
        client_queue_mean_s=first_known(arrays.client_queue_mean_s, None if queue_ms is None else queue_ms / 1e3),
    )


def _all_thought(record: Record, arrays: ArrayReading) -> int:
    """Answers of a chat with tokens and without a text: the client keeps the visible text alone, and times reasoning too.

    A completion is all text, so that one without any is of tokens that print nothing.
    """
    texts, samples = record.sequence("generated_texts"), arrays.samples
    client = f"{record.text('backend') or ''} {record.text('endpoint_type') or ''}".lower()
    if texts is None or samples is None or len(texts) != samples.size or "chat" not in client:
        return 0
    return sum(1 for text, good, tokens in zip(texts, samples.ok, samples.output_tokens, strict=True) if text == "" and good and tokens > 0)


def _identity(record: Record) -> _Identity:
    backend = record.text("backend") or record.text("endpoint_type")
    engine = _ENGINES.get((backend or "").lower())
    warnings = []
    if engine is None and backend:
        warnings.append(f"The backend “{backend}” is a protocol: the file does not say which engine answered; set it under Edit.")
    said = next((word for key in ("engine", "framework") if (word := record.text(key))), None)
    if engine and said and not engine.startswith(said.lower()):
        warnings.append(f"A label says “{said}”, the backend says “{backend}”: the engine is the backend's; correct it under Edit.")
    words: dict[str, str | None] = {}
    for name, keys in _IDENTITY.items():
        words[name] = next((word for key in keys if (word := record.text(key)) and word.lower() not in _UNSAID), None)
    sizes = {name: next((size for key in keys if (size := _size(record.raw(key)))), None) for name, keys in _SIZES.items()}
    return _Identity(engine, words, sizes, tuple(warnings))


def _size(value: object) -> int | None:
    """A small whole number from a label, None for anything else."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) <= 6:
        value = int(value.strip())
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1_000_000 else None


def _token_source(record: Record) -> str | None:
    date = (record.text("date") or "")[:8]
    if not date.isdecimal():
        return None
    return SERVER_USAGE if date >= _USAGE_COUNTS_SINCE else CLIENT_TOKENIZER


def _labels(record: Record) -> dict[str, str]:
    """Everything at top level that is no figure of the benchmark: metadata, swept parameters, the client's settings."""
    labels: dict[str, str] = {}
    left_out = 0
    for key, _ in record.items():
        as_metadata = key == "num_prompts" and isinstance(record.raw(key), str)
        if (key in _CONSUMED and not as_metadata) or (_FIGURE.match(key) and not isinstance(record.raw(key), str)):
            continue
        value = record.label(key)
        if value is None:
            continue
        if len(labels) >= MOST_LABELS:
            left_out += 1
            continue
        labels[clean_text(key, 60)] = value
    if "date" in labels:
        # The tool writes local time without saying which: kept as it is, never turned into an instant.
        labels["date_timezone"] = "not stated"
    if left_out:
        record.warnings.append(f"{left_out} more keys are left out: a run keeps {MOST_LABELS} labels.")
    return labels


IMPORTER = Importer(ID, "vLLM bench serve (JSON)", matches, parse, version=4)
