"""vLLM `bench latency` (and benchmark_latency.py): whole passes of one static batch, each iteration from its start to its last token.

Seconds. The batch starts and ends together, so an iteration is the whole request of every sequence; prompt pass and steps are not told
apart. The report (`--output-json`) says nothing of batch, lengths or model, newer ones name the model; its `*.pytorch.json` sibling has
the arguments, and with them the rates of the batch.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from app.domain.checks import Evidence, flagged
from app.domain.derive import statistics
from app.domain.errors import ImportRefused
from app.domain.run import Distribution, RequestCounts, Run
from app.domain.text import duration
from app.formats.document import Document
from app.formats.identity import NO_MODEL
from app.formats.importer import Importer, json_decline
from app.formats.pytorch_records import bench_reports, metric_names
from app.formats.record import ArrayProblem, Record, floats
from app.formats.serving import CONTRADICTION
from app.formats.static_batch import EXACT_COUNT, StaticBatch, read_batch
from app.formats.vllm_offline import offline_settings

ID = "vllm_bench_latency"
NO_SIZES = "The report has neither batch size nor lengths: only the time of a whole batch is known. Its *.pytorch.json sibling has them."
NO_PHASES = "A whole batch was timed, from its start to its last token: prefill and decode are not told apart."
SEVERAL_ANSWERS = "Every prompt was answered {n} times (n): output tokens of a request are not those of one sequence and are left out."


def matches(document: Document) -> str | None:
    """None when every object has `avg_latency` and `percentiles`, or is a record of the PyTorch form with the metric `latency`."""
    if (reason := json_decline(document)) is not None:
        return reason
    names = metric_names(document)
    if names is not None:
        return None if names == {"latency"} else f"records of the metric {min(names - {'latency'})}"
    return json_decline(document, "avg_latency", "percentiles")


def parse(document: Document) -> list[Run]:
    """One run for each report. Raises ImportRefused when there is no time in it."""
    if metric_names(document) is None:
        return [_run(Record(entry.values, entry.where), {}, None) for entry in document.entries]
    reports = bench_reports(document)
    return [
        _run(Record({**item.values, "latencies": item.values.get("latency")}, item.where), item.arguments, item.model) for item in reports
    ]


def _run(record: Record, arguments: Mapping[str, object], model: str | None) -> Run:
    asked = Record(arguments, record.path("args."))
    settings = offline_settings(asked)
    contradictions: list[str] = []
    e2e, total_s = _whole_batches(record, contradictions)
    if e2e is None:
        raise ImportRefused(f"{record.path('avg_latency')} and latencies hold no time: there is nothing to import.")
    name = model or record.text("model_id") or asked.text("model")
    run = Run(
        format=ID,
        engine="vllm",
        model=name,
        load_mode="static_batch",
        measured_at="in_process",
        duration_s=total_s,
        weight_dtype=settings.weight_dtype,
        kv_dtype=settings.kv_dtype,
        tp=settings.tp,
        pp=settings.pp,
        labels=settings.labels,
        metrics={"e2e_s": e2e},
    )
    notes = [NO_PHASES] if name else [NO_PHASES, NO_MODEL]
    if "batch_size" in asked:
        run, note = _sized(run, asked, e2e)
        notes += [note] if note else []
    else:
        notes.append(NO_SIZES)
    evidence = Evidence(tuple(record.not_numbers), tuple(record.negative), tuple(contradictions))
    return flagged(replace(run, warnings=(*notes, *record.warnings, *asked.warnings)), evidence)


def _whole_batches(record: Record, contradictions: list[str]) -> tuple[Distribution | None, float | None]:
    """The time of an iteration, from the samples where they are there, and of all iterations together (seconds)."""
    percentiles = record.child("percentiles")
    own = Distribution(
        mean=record.positive("avg_latency"),
        p50=percentiles.positive("50"),
        p90=percentiles.positive("90"),
        p99=percentiles.positive("99"),
        std=record.number("std_latency"),
    )
    record.warnings.extend(percentiles.warnings)
    reported = own if own.mean is not None or own.p50 is not None else None
    try:
        values = floats(record.sequence("latencies") or [], "latencies")
    except ArrayProblem as problem:
        record.warnings.append(f"latencies left aside: {problem}.")
        return reported, None
    values[values == 0] = np.nan
    computed = statistics(values)
    if computed is None or computed.mean is None or computed.n is None:
        return reported, None
    if own.mean is not None and abs(own.mean / computed.mean - 1) > CONTRADICTION:
        contradictions.append(f"avg_latency says {duration(own.mean)} and its samples give {duration(computed.mean)}")
    return computed, computed.mean * computed.n


def _sized(run: Run, asked: Record, e2e: Distribution) -> tuple[Run, str | None]:
    """The run with what was asked of the batch, its rates and a note; one request a sequence and iteration."""
    batch = read_batch(asked, "batch_size", "input_len", "output_len")
    answers = asked.count("n") or 1
    workload = batch.workload()
    each_s = e2e.mean or e2e.p50
    if answers != 1:
        made = StaticBatch(batch.size, batch.prompt_tokens, batch.output_tokens * answers)
        workload = replace(workload, output_tokens_mean=None, output_tokens_total=made.workload().output_tokens_total)
        note = SEVERAL_ANSWERS.format(n=answers)
    else:
        made, note = batch, None
    sized = replace(
        run,
        load_mode=batch.load_mode if answers == 1 else "static_batch",
        token_count_source=EXACT_COUNT,
        workload=workload,
        requests=RequestCounts(completed=batch.size),
        metrics={**run.metrics, **made.rates(each_s)},
    )
    return sized, note


IMPORTER = Importer(ID, "vLLM bench latency (JSON)", matches, parse, version=2)
