"""SGLang `bench_serving`: one JSON object a line, one run each.

The key `itl` has three meanings. The native backends divide each gap between chunks by its new tokens and repeat it: token gaps, whose
mean is the token-weighted ITL. The OpenAI-style backends store raw gaps between chunks; where an acceptance length is known they split
those by re-tokenising the text. Identity comes from `server_info`, absent before 2025; then the file names no model at all.
`concurrency` is a measured mean, `max_concurrency` the limit. What was sent is not stored, so failures are known from details only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.domain.checks import Evidence, flagged
from app.domain.derive import SHORTEST_SHARE, statistics, with_request_rates
from app.domain.run import CANONICAL, Distribution, RequestCounts, Run
from app.domain.text import duration
from app.formats.document import Document
from app.formats.identity import NO_MODEL, is_said, said_size, said_word
from app.formats.importer import Importer, json_decline
from app.formats.load import Load, offered_load
from app.formats.record import Record
from app.formats.request_arrays import ArrayReading, read_requests
from app.formats.serving import (
    MILLISECONDS,
    SERVER_USAGE,
    Merged,
    TokenTotals,
    first_known,
    itl_from_report,
    merged,
    reported,
    served_workload,
    token_totals,
    with_figures,
)

ID = "sglang_bench_serving"
RETOKENISED = "gap between chunks split over the tokens of its re-tokenised text"
_DRAWN = ("random", "random-ids")
_NATIVE = frozenset({"sglang", "sglang-native"})
_ENGINES = (("sglang", "sglang"), ("vllm", "vllm"), ("lmdeploy", "lmdeploy"), ("trt", "tensorrt-llm"))
_RATES = {
    "requests_per_s": ("request_throughput",),
    "output_tokens_per_s": ("output_throughput",),
    "total_tokens_per_s": ("total_throughput",),
}
_LABELS = (
    *("backend", "dataset_name", "random_input_len", "random_output_len", "random_range_ratio", "sharegpt_output_len"),
    *("concurrency", "accept_length"),
)
_SERVER_LABELS = (
    *("attention_backend", "chunked_prefill_size", "max_running_requests", "mem_fraction_static", "schedule_policy", "dp_size"),
    *("speculative_num_steps", "disable_radix_cache", "disable_cuda_graph", "enable_torch_compile"),
    *("moe_a2a_backend", "stream_interval"),
    *("cuda_graph_max_bs", "max_total_tokens", "max_total_num_tokens", "cpu_offload_gb"),
)
# What is not set is off, and said so: a run beside one that has it on then differs by it. Lists (`lora_paths`) are on where they hold any.
_SWITCHES = {
    "speculative_algorithm": ("speculative_algorithm",),
    "disaggregation_mode": ("disaggregation_mode",),
    "enable_lora": ("enable_lora", "lora_paths"),
}


def matches(document: Document) -> str | None:
    """None when every object has the count of re-tokenised output tokens, which only this tool writes."""
    if (reason := json_decline(document)) is not None:
        return reason
    for entry in document.entries:
        if "total_output_tokens_retokenized" not in entry.values and not _older_or_cut_down(entry.values):
            return f"{entry.where}no key total_output_tokens_retokenized"
    return json_decline(document, "backend", "completed", "duration")


def _older_or_cut_down(values: Mapping[str, object]) -> bool:
    """Records without the re-tokenised count that still have this tool's pair of dataset keys and no vLLM model."""
    return "dataset_name" in values and "random_input_len" in values and "model_id" not in values


def parse(document: Document) -> list[Run]:
    """One run for each line."""
    return [_run(Record(entry.values, entry.where)) for entry in document.entries]


@dataclass(frozen=True)
class _Meaning:
    """What `itl` is in this record: the metric it belongs to and its definition."""

    key: str
    definition: str = CANONICAL

    @property
    def is_token_gap(self) -> bool:
        return self.key == "itl_s"


def _meaning(record: Record) -> _Meaning:
    if (record.text("backend") or "").lower() in _NATIVE:
        return _Meaning("itl_s")
    if (record.positive("accept_length") or 0) > 1:
        return _Meaning("itl_s", RETOKENISED)
    return _Meaning("chunk_gap_s")


def _run(record: Record) -> Run:
    load = offered_load(record.raw("request_rate"), record.count("max_concurrency"))
    completed = record.count("completed")
    run = _identified(
        Run(
            format=ID,
            engine=_engine(record.text("backend") or ""),
            duration_s=record.positive("duration"),
            load_mode=load.mode,
            measured_at="client",
            token_count_source=SERVER_USAGE,
            label=record.text("tag"),
            workload=served_workload(load, TokenTotals(None, None), None, record.text("dataset_name")),
            requests=RequestCounts(completed=completed),
            labels=_labels(record),
        ),
        record,
    )
    if completed == 0:
        for stem in ("e2e_latency", "ttft", "tpot", "itl"):
            reported(record, stem, MILLISECONDS)  # to notice the NaN that an empty run writes
        return flagged(replace(run, warnings=(*run.warnings, *record.warnings)), Evidence(not_numbers=tuple(record.not_numbers)))
    return _measured(run, record, load)


def _measured(run: Run, record: Record, load: Load) -> Run:
    """The run with its figures, samples, flags and warnings."""
    meaning = _meaning(record)
    arrays = read_requests(record, run.duration_s, run.requests.completed, None, gaps_are_tokens=meaning.is_token_gap)
    counts = _counts(run.requests, record, arrays)
    totals = token_totals(record.count("total_input_tokens"), record.count("total_output_tokens"), arrays.samples)
    drawn = None if arrays.samples is not None else _shortest_drawn(record)
    workload = served_workload(load, totals, counts.completed, record.text("dataset_name"), drawn)
    together = _latencies(record, meaning, counts.completed, arrays)
    metrics = together.metrics
    warnings = [*run.warnings, *arrays.warnings, *totals.warnings]
    tokens_per_chunk = record.positive("accept_length")
    if "itl_s" not in metrics or metrics["itl_s"].mean is None or metrics["itl_s"].definition != CANONICAL:
        finding = itl_from_report(metrics, counts.completed, totals.output)
        if finding.itl is not None:
            metrics["itl_s"] = _filled(finding.itl, metrics.get("itl_s"))
        warnings.extend([finding.note] if finding.note else _why_no_mean(metrics))
        tokens_per_chunk = first_known(tokens_per_chunk, finding.tokens_per_chunk)
    run = replace(run, workload=workload, requests=counts, samples=arrays.samples, warnings=tuple(warnings))
    done = with_figures(run, together, record, _RATES)
    evidence = Evidence(
        not_numbers=tuple(record.not_numbers),
        negative=(*record.negative, *arrays.negative),
        contradictions=together.contradictions,
        empty_outputs=arrays.empty_outputs,
        peak_output_tokens_per_s=record.positive("max_output_tokens_per_s"),
        tokens_per_chunk=tokens_per_chunk,
        requested_prompt_tokens=_fixed_length(record, "random_input_len"),
        requested_output_tokens=_fixed_length(record, "random_output_len"),
        retokenized_output_tokens=record.count("total_output_tokens_retokenized"),
    )
    return flagged(with_request_rates(done), evidence)


def _latencies(record: Record, meaning: _Meaning, completed: int | None, arrays: ArrayReading) -> Merged:
    found: dict[str, Distribution] = {}
    for key, stem, n in (("ttft_s", "ttft", completed), ("tpot_s", "tpot", None), ("e2e_s", "e2e_latency", completed)):
        if (distribution := reported(record, stem, MILLISECONDS, n)) is not None:
            found[key] = distribution
    gaps = reported(record, "itl", MILLISECONDS, None, meaning.definition)
    if gaps is not None:
        found[meaning.key] = gaps
    together = merged(found, arrays.samples)
    if arrays.token_gaps_s is not None and meaning.definition == CANONICAL:
        _take_token_gaps(together, arrays, meaning)
    return together


def _take_token_gaps(together: Merged, arrays: ArrayReading, meaning: _Meaning) -> None:
    """Percentiles of ITL from the stored token gaps; the mean stays the sum of decode times over the sum of tokens."""
    gaps = None if arrays.token_gaps_s is None else statistics(arrays.token_gaps_s, meaning.definition)
    whole = together.metrics.get("itl_s")
    if gaps is not None:
        mean = whole.mean if whole is not None and whole.origin == "samples" else gaps.mean
        together.metrics["itl_s"] = replace(gaps, mean=mean, n=first_known(whole.n if whole else None, gaps.n))


def _filled(derived: Distribution, own: Distribution | None) -> Distribution:
    """The derived mean beside the percentiles that the file has, where those mean the same."""
    if own is None or own.definition != CANONICAL:
        return derived
    return replace(own, mean=derived.mean, n=derived.n, origin="derived")


def _why_no_mean(metrics: Mapping[str, Distribution]) -> list[str]:
    itl = metrics.get("itl_s")
    if itl is None or itl.mean is not None or itl.p50 is None:
        return []
    return [f"The file has the median gap between tokens, {duration(itl.p50)}, and no mean: no decode rate follows."]


def _counts(counts: RequestCounts, record: Record, arrays: ArrayReading) -> RequestCounts:
    if arrays.samples is None:
        return counts
    completed = int(arrays.samples.ok.sum())
    if counts.completed not in (None, completed):
        record.warnings.append(f"The file counts {counts.completed} completed requests; {completed} of them produced a token and are used.")
    return RequestCounts(arrays.samples.size, completed, arrays.samples.size - completed)


def _fixed_length(record: Record, key: str) -> float | None:
    """The length asked for, where every request asks for the same: lengths are drawn between ratio x length and length."""
    fixed = record.raw("dataset_name") in _DRAWN and record.raw("random_range_ratio") in (1, 1.0)
    return record.positive(key) if fixed else None


def _shortest_drawn(record: Record) -> float | None:
    """The shortest answer asked for as a share of the longest, where the file says that lengths are drawn: one token at least."""
    ratio, longest = record.number("random_range_ratio"), record.positive("random_output_len")
    if record.raw("dataset_name") not in _DRAWN or ratio is None or ratio >= 1 or longest is None:
        return None
    return max(round(max(ratio, 1.0 / longest), 3), SHORTEST_SHARE)


def _engine(backend: str) -> str | None:
    return next((engine for prefix, engine in _ENGINES if backend.lower().startswith(prefix)), None)


def _identified(run: Run, record: Record) -> Run:
    """Model, version, parallelism and formats from `server_info`, None where it does not say."""
    server = record.child("server_info")
    model = server.text("model_path") or server.text("served_model_name") or record.text("model_id") or record.text("model")
    tp, pp, dp = said_size(server, "tp_size"), said_size(server, "pp_size"), said_size(server, "dp_size")
    # Under data-parallel attention the ranks share the devices of the tensor-parallel group.
    copies = 1 if server.raw("enable_dp_attention") else dp
    return replace(
        run,
        model=model,
        engine_version=server.text("version"),
        tp=tp,
        pp=pp,
        ep=said_size(server, "ep_size"),
        dp=dp,
        devices=tp * pp * copies if tp and pp and copies else None,
        weight_dtype=said_word(server, "quantization") or said_word(server, "dtype"),
        kv_dtype=said_word(server, "kv_cache_dtype"),
        warnings=() if model else (NO_MODEL,),
    )


def _labels(record: Record) -> dict[str, str]:
    server = record.child("server_info")
    labels = {}
    for source, keys in ((record, _LABELS), (server, _SERVER_LABELS)):
        for key in keys:
            if (value := source.label(key)) is not None and is_said(value):
                # The measured mean must not be read as the limit of clients.
                labels["measured_concurrency" if key == "concurrency" else key] = value
    if isinstance(rate := record.raw("request_rate"), str):
        labels["request_rate"] = rate[:60]
    return {**labels, **_switches(server)}


def _switches(server: Record) -> dict[str, str]:
    """Each switch as its word, "true" or "off"; none where the server does not list it."""
    found = {}
    for name, keys in _SWITCHES.items():
        there = [key for key in keys if key in server]
        words = [word for key in there if (word := server.label(key)) is not None and is_said(word) and word != "false"]
        if any(server.sequence(key) for key in there):
            words.append("true")
        if there:
            found[name] = words[0] if words else "off"
    return found


IMPORTER = Importer(ID, "SGLang bench_serving (JSONL)", matches, parse, version=3)
