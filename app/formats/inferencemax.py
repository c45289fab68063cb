"""InferenceMAX / InferenceX aggregates (`agg_*.json`): one object, or a list of them, each one operating point.

Latencies are seconds without a suffix. `tput_per_gpu` counts prompt and output tokens; where prefill and decode have devices of their
own, the input and output rates are divided by those of their role. `isl` and `osl` are lengths asked for: the lengths that came are drawn
below them and follow from latencies and rates. The agentic scenario keeps counts, a duration and lengths, and its `itl` is its `tpot`.
Interactivity (`…_intvty`) is an inverse of TPOT and is not read: its p99 is the slow end, its spread has no meaning.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.domain.checks import Evidence, flagged
from app.domain.derive import with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Flag, MetricValue, Rate, RequestCounts, Run, Workload
from app.domain.text import duration, percent
from app.formats.document import Document
from app.formats.importer import Importer, json_decline
from app.formats.load import offered_load
from app.formats.record import LARGEST_INTEGER, Record
from app.formats.serving import SECONDS, deployment_rates, itl_from_report, reported

ID = "inferencemax"
_KEYS = ("hw", "framework", "conc", "tput_per_gpu")
_ENGINES = (("sglang", "sglang"), ("vllm", "vllm"), ("trt", "tensorrt-llm"))
_RATES = {
    "requests_per_s": ("mean_qps",),
    "output_tokens_per_s": ("output_tput_tps",),
    "total_tokens_per_s": ("total_tput_tps",),
}
_LABELS = (
    *("infmax_model_prefix", "isl", "osl", "spec_decoding", "disagg", "dp_attention", "is_multinode", "scenario_type", "offloading"),
    *("image", "prefill_tp", "prefill_ep", "prefill_num_workers", "num_prefill_gpu"),
    *("decode_tp", "decode_ep", "decode_num_workers", "num_decode_gpu", "server_gpu_cache_hit_rate"),
)
_UNSAID = frozenset({"", "none", "false", "null"})
_SWITCHES = ("spec_decoding", "disagg")
_HITS = "server_gpu_cache_hit_rate"
_VERSION = re.compile(r":v?(\d+\.\d+[\w.+-]{0,40})\Z")
_AS_ASKED = 0.01
_MOST_DEVICES = 1_000_000
ASKED_LENGTHS = "Lengths are those asked for (isl, osl): the file has nothing to tell those that came."


def matches(document: Document) -> str | None:
    """None when every object names hardware, framework and concurrency beside a rate per GPU."""
    return json_decline(document, *_KEYS)


def parse(document: Document) -> list[Run]:
    """One run for each object. Raises ImportRefused when one has neither a latency nor a rate."""
    return [_run(Record(entry.values, entry.where)) for entry in document.entries]


@dataclass(frozen=True)
class _Devices:
    """Devices of the whole deployment, and those that a rate of each role is divided by."""

    all: int | None
    prefill: int | None
    decode: int | None

    @property
    def by_role(self) -> bool:
        return self.prefill is not None and self.decode is not None and (self.prefill, self.decode) != (self.all, self.all)


def _devices(record: Record) -> _Devices:
    prefill, decode = record.count("num_prefill_gpu"), record.count("num_decode_gpu")
    if prefill and decode and prefill + decode <= _MOST_DEVICES:
        return _Devices(prefill + decode, prefill, decode)
    whole, each = record.positive("total_tput_tps"), record.positive("tput_per_gpu")
    tp = record.count("tp")
    # Agentic results say the rate of all as well, which tells the devices whatever the parallelism is called.
    count = round(whole / each) if whole and each and 1 <= whole / each < _MOST_DEVICES else (tp or 0) * (record.count("pp") or 1)
    count = count if count <= _MOST_DEVICES else 0
    return _Devices(count or None, count or None, count or None)


def _run(record: Record) -> Run:
    devices = _devices(record)
    load = offered_load(None, record.count("conc"))
    counts = _counts(record)
    agentic = "num_requests_successful" in record
    metrics: dict[str, MetricValue] = {}
    latencies = _latencies(record, counts.completed, agentic)
    workload, notes = _workload(record, latencies, devices, counts)
    workload = replace(workload, concurrency=load.concurrency)
    metrics.update(latencies)
    finding = itl_from_report(latencies, counts.completed, workload.output_tokens_total)
    if finding.itl is not None:
        metrics["itl_s"] = finding.itl
    duration_s = record.positive("duration_seconds")
    rates = deployment_rates(record, _RATES, duration_s, counts, workload)
    metrics.update({**_rates(record, devices), **rates.rates, **_cached(record, workload)})
    if not metrics and counts.completed != 0:
        raise ImportRefused(
            f"{record.path('mean_ttft')}, mean_tpot, mean_e2el and tput_per_gpu hold no figure: there is nothing to import."
        )
    run = replace(
        _identified(record, devices),
        duration_s=duration_s,
        load_mode=load.mode,
        workload=workload,
        requests=counts,
        metrics={} if counts.completed == 0 else metrics,
    )
    said = _itl_note(latencies, finding.note if finding.itl is not None else None, "itl_s" in metrics)
    run = replace(run, warnings=(*notes, *said, *rates.warnings, *record.warnings))
    checked = flagged(with_request_rates(run), Evidence(not_numbers=tuple(record.not_numbers), negative=tuple(record.negative)))
    return replace(checked, flags=(*checked.flags, *_own_flags(record, devices)))


def _latencies(record: Record, completed: int | None, agentic: bool) -> dict[str, Distribution]:
    stems = [("ttft_s", "ttft", completed), ("tpot_s", "tpot", None), ("e2e_s", "e2el", completed)]
    if not agentic:
        stems.append(("chunk_gap_s", "itl", None))
    found = ((key, reported(record, stem, SECONDS, n)) for key, stem, n in stems)
    return {key: distribution for key, distribution in found if distribution is not None}


def _counts(record: Record) -> RequestCounts:
    sent, completed = record.count("num_requests_total"), record.count("num_requests_successful")
    failed = max(0, sent - completed) if sent is not None and completed is not None else None
    return RequestCounts(sent, completed, failed)


def _cached(record: Record, workload: Workload) -> dict[str, MetricValue]:
    """Prompt tokens of a mean request that were in the server's cache: its hit rate, which is of tokens, times the mean prompt."""
    share, prompt = record.number(_HITS), workload.prompt_tokens_mean
    if share is None or share > 1 or prompt is None:
        return {}
    return {"cached_prompt_tokens": Distribution(mean=share * prompt, origin="derived")}


@dataclass(frozen=True)
class _Lengths:
    """Mean prompt and output tokens of a request, and a sentence about where they are from."""

    prompt: float | None
    output: float | None
    note: str | None = None


def _workload(
    record: Record, latencies: Mapping[str, Distribution], devices: _Devices, counts: RequestCounts
) -> tuple[Workload, tuple[str, ...]]:
    lengths = _lengths(record, latencies, devices)
    exact = "mean_output_tokens_actual" in record
    workload = Workload(
        prompt_tokens_mean=lengths.prompt,
        output_tokens_mean=lengths.output,
        prompt_tokens_total=_total(lengths.prompt, counts.completed) if exact else None,
        output_tokens_total=_total(lengths.output, counts.completed) if exact else None,
        dataset=record.text("scenario_type"),
    )
    return workload, (lengths.note,) if lengths.note else ()


def _total(mean: float | None, completed: int | None) -> int | None:
    total = mean * completed if mean is not None and completed else None
    return round(total) if total is not None and total < LARGEST_INTEGER else None


def _lengths(record: Record, latencies: Mapping[str, Distribution], devices: _Devices) -> _Lengths:
    """The file's own means; else what latencies and rates tell, where that is not what was asked for; else what was asked for."""
    own = record.positive("mean_output_tokens_actual")
    if own is not None:
        return _Lengths(record.positive("mean_input_tokens"), own)
    asked_in, asked_out = record.positive("isl"), record.positive("osl")
    came = _output_that_came(latencies)
    if came is None or asked_out is None:
        return _Lengths(asked_in, asked_out, ASKED_LENGTHS if asked_in or asked_out else None)
    if abs(came / asked_out - 1) <= _AS_ASKED:
        return _Lengths(asked_in, asked_out)
    rates = _rates(record, devices)
    output, total = rates.get("output_tokens_per_s"), rates.get("total_tokens_per_s")
    prompt = came * (total.value / output.value - 1) if isinstance(output, Rate) and isinstance(total, Rate) else None
    note = f"The file asks for {asked_out:g} output tokens; its latencies are those of {came:.4g} on average, which is used."
    return _Lengths(prompt if prompt and prompt > 0 else None, came, note)


def _output_that_came(latencies: Mapping[str, Distribution]) -> float | None:
    """1 + (mean e2e - mean TTFT) / mean TPOT: mean output tokens where requests are alike."""
    means = [found.mean if (found := latencies.get(key)) is not None else None for key in ("ttft_s", "e2e_s", "tpot_s")]
    ttft, e2e, tpot = means
    return 1 + (e2e - ttft) / tpot if ttft and e2e and tpot and e2e > ttft else None


def _rates(record: Record, devices: _Devices) -> dict[str, MetricValue]:
    """Rates of the whole deployment from those per GPU."""
    found: dict[str, MetricValue] = {}
    for key, name, count in (
        ("total_tokens_per_s", "tput_per_gpu", devices.all),
        ("output_tokens_per_s", "output_tput_per_gpu", devices.decode),
    ):
        each = record.positive(name)
        if each is not None and count:
            found[key] = Rate(each * count, "aggregate", "derived")
    return found


def _itl_note(latencies: Mapping[str, Distribution], note: str | None, has_itl: bool) -> tuple[str, ...]:
    gap, tpot = latencies.get("chunk_gap_s"), latencies.get("tpot_s")
    if note is not None:
        return (note,)
    if has_itl or gap is None or tpot is None or not gap.mean or not tpot.mean:
        return ()
    return (
        f"No token-weighted ITL: the file has no token counts, and its mean gap between chunks, {duration(gap.mean)}, is not its mean "
        f"TPOT, {duration(tpot.mean)}. TPOT stands.",
    )


def _own_flags(record: Record, devices: _Devices) -> tuple[Flag, ...]:
    flags = []
    total, output = record.positive("tput_per_gpu"), record.positive("output_tput_per_gpu")
    if total and output and total > output:
        text = f"tput_per_gpu, {total:.5g} tokens/s, counts prompt tokens too; output alone is {output:.5g} tokens/s per GPU."
        flags.append(Flag("throughput_includes_prompt", text))
    if devices.by_role:
        text = (
            f"The output rate per GPU is divided by the {devices.decode} devices that decode, the input rate by the {devices.prefill} "
            f"that prefill, not by all {devices.all}; the rates here are those of the whole deployment."
        )
        flags.append(Flag("per_role_gpu_denominator", text))
    hits = record.positive("server_gpu_cache_hit_rate")
    if hits is not None and hits <= 1:
        flags.append(Flag("prefix_cache_hits", f"The server found {percent(hits)} of the prompt tokens in its cache."))
    return tuple(flags)


def _identified(record: Record, devices: _Devices) -> Run:
    framework = record.text("framework")
    version = _VERSION.search(record.text("image") or "")
    labels = {key: label for key in _LABELS if (label := record.label(key)) is not None and label.lower() not in _UNSAID}
    # Of these "none" and "false" are said of the deployment: it has them off.
    labels |= {key: "off" for key in _SWITCHES if (label := record.label(key)) is not None and label.lower() in _UNSAID - {""}}
    return Run(
        format=ID,
        engine=next((engine for word, engine in _ENGINES if word in (framework or "").lower()), framework),
        engine_version=version.group(1) if version else None,
        model=record.text("model"),
        hardware=record.text("hw"),
        devices=devices.all,
        tp=record.count("tp") or None,
        pp=record.count("pp") or None,
        ep=record.count("ep") or None,
        weight_dtype=record.text("precision"),
        measured_at="client",
        labels=labels,
    )


IMPORTER = Importer(ID, "InferenceMAX / InferenceX aggregates (JSON)", matches, parse, version=2)
