"""SGLang `bench_one_batch` and `bench_one_batch_server`: one static batch a line.

`bench_one_batch` runs in process: `prefill_latency` is the prompt pass of the whole batch, `median_decode_latency` the median step, and
`total_latency` the sum of the pass and all output_len - 1 steps. The server variant times one request of `batch_size` prompts at the
client: `last_ttft` ends when the last sequence has its first token, and `output_throughput` is batch x output / (latency - last_ttft).
Where a server starts the sequences in waves that last first token comes near the end, and the rate after it means nothing.
"""

from dataclasses import replace

from app.domain.checks import Evidence, flagged
from app.domain.derive import with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Flag, MetricValue, RequestCounts, Run
from app.domain.text import duration, percent
from app.formats.document import Document
from app.formats.identity import NO_MODEL
from app.formats.importer import Importer, json_decline
from app.formats.record import Record
from app.formats.static_batch import EXACT_COUNT, StaticBatch, read_batch

ID = "sglang_one_batch"
LAST_TTFT = "until the last sequence of the batch has its first token"
AFTER_LAST_TTFT = "(latency - last_ttft) / (output tokens - 1)"
_SIZES = ("batch_size", "input_len", "output_len")
_IN_PROCESS, _SERVER = ("prefill_latency", "total_latency"), ("latency", "overall_throughput")
_LABELS = ("output_throughput", "last_gen_throughput", "acc_length", "cache_hit_rate", "num_early_stopped")
# Reading a prompt token is never slower than making one, in the same batch; twice leaves room for the front-end.
_FASTER_THAN_READING, _MOSTLY_WAITING = 2.0, 0.5


def matches(document: Document) -> str | None:
    """None when every object has the sizes of a batch and the times of one of the two tools."""
    if (reason := json_decline(document, *_SIZES)) is not None:
        return reason
    for entry in document.entries:
        if not any(all(key in entry.values for key in keys) for keys in (_IN_PROCESS, _SERVER)):
            return f"{entry.where}neither prefill_latency and total_latency nor latency and overall_throughput"
    return None


def parse(document: Document) -> list[Run]:
    """One run for each line. Raises ImportRefused when a line has no batch or no time."""
    return [_run(Record(entry.values, entry.where)) for entry in document.entries]


def _run(record: Record) -> Run:
    batch = read_batch(record, *_SIZES)
    name = record.text("run_name")
    run = Run(
        format=ID,
        engine="sglang",
        load_mode=batch.load_mode,
        token_count_source=EXACT_COUNT,
        label=None if name == "default" else name,
        workload=batch.workload(),
        labels={key: label for key in _LABELS if (label := record.label(key)) not in (None, "0", "0.0", "-1")},
        warnings=(NO_MODEL,),
    )
    run = _in_process(run, record, batch) if "prefill_latency" in record else _at_server(run, record, batch)
    if not run.metrics:
        raise ImportRefused(f"{record.path('latency')}, prefill_latency and total_latency hold no time: there is nothing to import.")
    evidence = Evidence(not_numbers=tuple(record.not_numbers), negative=tuple(record.negative))
    return _with_flags(replace(run, warnings=(*run.warnings, *record.warnings)), evidence)


def _with_flags(run: Run, evidence: Evidence) -> Run:
    """The run's data flags behind those that only this importer can tell."""
    checked = flagged(with_request_rates(run), evidence)
    return replace(checked, flags=(*run.flags, *checked.flags))


def _in_process(run: Run, record: Record, batch: StaticBatch) -> Run:
    prefill, total = record.positive("prefill_latency"), record.positive("total_latency")
    metrics: dict[str, MetricValue] = {}
    if prefill is not None:
        metrics["prefill_s"] = Distribution(mean=prefill)
        metrics["prefill_tokens_per_s"] = batch.prefill_rate(prefill)
    if (step := _step(record, batch, prefill, total)) is not None:
        metrics["itl_s"] = metrics["step_s"] = step
    if total is not None:
        metrics["e2e_s"] = Distribution(mean=total)
    return replace(
        run,
        duration_s=total,
        measured_at="in_process",
        requests=RequestCounts(completed=batch.size),
        metrics={**metrics, **batch.rates(total)},
    )


def _step(record: Record, batch: StaticBatch, prefill: float | None, total: float | None) -> Distribution | None:
    """A step of the batch: the file's median, and the mean that its total leaves for the steps."""
    median = record.positive("median_decode_latency")
    mean = batch.step_s(total - prefill) if prefill is not None and total is not None else None
    if median is None and mean is None:
        return None
    return Distribution(mean=mean, p50=median, n=batch.output_tokens - 1 if mean else None, origin="derived" if mean else "reported")


def _at_server(run: Run, record: Record, batch: StaticBatch) -> Run:
    latency = record.positive("latency")
    if latency is None:
        return run
    metrics: dict[str, MetricValue] = {"e2e_s": Distribution(mean=latency), **batch.rates(latency)}
    first = _last_ttft(record, batch, latency)
    waves = None if first is None else _in_waves(batch, first, latency)
    if first is not None and waves is None:
        metrics["ttft_s"] = Distribution(mean=first, origin="reported" if "last_ttft" in record else "derived", definition=LAST_TTFT)
        if (step := batch.step_s(latency - first)) is not None:
            metrics["itl_s"] = Distribution(mean=step, n=batch.output_tokens - 1, origin="derived", definition=AFTER_LAST_TTFT)
    return replace(
        run,
        duration_s=latency,
        measured_at="client",
        requests=RequestCounts(sent=batch.size),
        metrics=metrics,
        flags=(waves,) if waves else (),
    )


def _last_ttft(record: Record, batch: StaticBatch, latency: float) -> float | None:
    """The file's own, or in files before 0.5 what its output rate was divided by; None when that is no time within the batch."""
    own = record.positive("last_ttft")
    rate = record.positive("output_throughput")
    after = batch.size * batch.output_tokens / rate if rate else None
    first = own if own is not None else latency - after if after is not None else None
    return first if first is not None and 0 < first <= latency else None


def _in_waves(batch: StaticBatch, first: float, latency: float) -> Flag | None:
    """Said when tokens would come out faster than prompts were read: then the last first token waited for other sequences to end."""
    read = batch.size * batch.prompt_tokens / first
    made = batch.size * batch.output_tokens / (latency - first) if latency > first else float("inf")
    if batch.size == 1 or first / latency < _MOSTLY_WAITING or made <= _FASTER_THAN_READING * read:
        return None
    return Flag(
        "server_queue_in_ttft",
        f"The last first token came after {duration(first)}, {percent(first / latency)} of the batch: the server ran the {batch.size} "
        f"sequences in waves. The {made:.4g} tokens/s that the file gives for the time after it ({read:.4g} prompt tokens/s before it) "
        f"count tokens made earlier; over the whole batch it is {batch.size * batch.output_tokens / latency:.4g} tokens/s.",
        ("ttft_s", "itl_s", "decode_tokens_per_s", "prefill_tokens_per_s"),
    )


IMPORTER = Importer(ID, "SGLang bench_one_batch and bench_one_batch_server (JSONL)", matches, parse, version=2)
