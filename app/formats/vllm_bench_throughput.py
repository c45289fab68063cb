"""vLLM `bench throughput` (and benchmark_throughput.py): all requests handed to the engine at once, offline.

`tokens_per_second` counts prompt and output tokens together: it is `total_tokens_per_s`, never an output rate. How the tokens divide is
not in the report (newer ones name the model); its `*.pytorch.json` sibling has the arguments, and where every request was made of the
same lengths they tell.
"""

from collections.abc import Mapping
from dataclasses import replace

from app.domain.checks import Evidence, flagged
from app.domain.errors import ImportRefused
from app.domain.run import MetricValue, Rate, RequestCounts, Run, Workload
from app.formats.document import Document
from app.formats.identity import NO_MODEL
from app.formats.importer import Importer, json_decline
from app.formats.pytorch_records import bench_reports, metric_names
from app.formats.record import LARGEST_INTEGER, Record
from app.formats.serving import CONTRADICTION
from app.formats.vllm_offline import offline_settings

ID = "vllm_bench_throughput"
NO_SPLIT = "tokens_per_second counts prompt and output tokens together, and the report does not say how they divide: no output rate."
NO_PHASES = "An offline bench times all requests together: no TTFT, no time between tokens, so no phase."
_METRICS = frozenset({"requests_per_second", "tokens_per_second"})
_TOTAL = "total_num_tokens"


def matches(document: Document) -> str | None:
    """None when every object has `elapsed_time`, `num_requests` and `tokens_per_second`, or is a PyTorch record of such a rate."""
    if (reason := json_decline(document)) is not None:
        return reason
    names = metric_names(document)
    if names is not None:
        return None if names <= _METRICS else f"records of the metric {min(names - _METRICS)}"
    return json_decline(document, "elapsed_time", "num_requests", "tokens_per_second")


def parse(document: Document) -> list[Run]:
    """One run for each report. Raises ImportRefused when it has no time."""
    if metric_names(document) is None:
        return [_run(Record(entry.values, entry.where), {}, None) for entry in document.entries]
    return [_run(Record(_scalars(item.values), item.where), item.arguments, item.model) for item in bench_reports(document)]


def _scalars(values: Mapping[str, object]) -> dict[str, object]:
    """PyTorch records hold each rate as a list of one."""
    return {key: value[0] if key in _METRICS and isinstance(value, list) and value else value for key, value in values.items()}


def _run(record: Record, arguments: Mapping[str, object], model: str | None) -> Run:
    elapsed = record.positive("elapsed_time")
    if elapsed is None:
        raise ImportRefused(f"{record.path('elapsed_time')} holds no time: there is nothing to import.")
    asked = Record(arguments, record.path("args."))
    settings = offline_settings(asked)
    requests, total = record.count("num_requests"), record.count(_TOTAL)
    name = model or record.text("model_id") or asked.text("model")
    run = Run(
        format=ID,
        engine="vllm" if (asked.text("backend") or "vllm").startswith("vllm") else None,
        model=name,
        duration_s=elapsed,
        load_mode="offline",
        measured_at="in_process",
        weight_dtype=settings.weight_dtype,
        kv_dtype=settings.kv_dtype,
        tp=settings.tp,
        pp=settings.pp,
        workload=_workload(asked, requests, total),
        requests=RequestCounts(requests, requests),
        labels={**settings.labels, **({_TOTAL: str(total)} if total else {})},
    )
    metrics, notes = _rates(record, run, total)
    notes = [*notes, *([] if name else [NO_MODEL]), *record.warnings, *asked.warnings]
    evidence = Evidence(tuple(record.not_numbers), tuple(record.negative))
    return flagged(replace(run, metrics=metrics, warnings=(NO_PHASES, *notes)), evidence)


def _workload(asked: Record, requests: int | None, total: int | None) -> Workload:
    """The lengths that were asked for, where requests x (input + output) is the total that was counted; else nothing but the rate."""
    prompt, output = asked.count("input_len"), asked.count("output_len")
    unlimited = Workload(rate_unlimited=True, dataset=asked.text("dataset_name"))
    if not requests or not total or prompt is None or output is None or requests * (prompt + output) != total:
        return unlimited
    if requests * max(prompt, output) > LARGEST_INTEGER:
        return unlimited
    return replace(
        unlimited,
        prompt_tokens_mean=float(prompt),
        output_tokens_mean=float(output),
        prompt_tokens_total=requests * prompt,
        output_tokens_total=requests * output,
    )


def _rates(record: Record, run: Run, total: int | None) -> tuple[dict[str, MetricValue], list[str]]:
    """Requests and tokens per second, the file's own where its totals / elapsed_time agree within 1 %, and what is to be said."""
    metrics: dict[str, MetricValue] = {}
    notes = []
    for key, name, count in (
        ("requests_per_s", "requests_per_second", run.requests.completed),
        ("total_tokens_per_s", "tokens_per_second", total),
    ):
        own, follows = record.positive(name), count / run.duration_s if count and run.duration_s else None
        agrees = own is not None and (follows is None or abs(own / follows - 1) <= CONTRADICTION)
        if own is not None and agrees:
            metrics[key] = Rate(own, "aggregate", "reported")
        elif follows is not None:
            metrics[key] = Rate(follows, "aggregate", "derived")
        if own is not None and not agrees:
            notes.append(f"{record.path(name)} says {own:.5g} where totals / elapsed_time give {follows:.5g}, which is used.")
    output = run.workload.output_tokens_total
    if output and run.duration_s:
        metrics["output_tokens_per_s"] = Rate(output / run.duration_s, "aggregate", "derived")
    elif output is None:
        notes.append(NO_SPLIT)
    return metrics, notes


IMPORTER = Importer(ID, "vLLM bench throughput (JSON)", matches, parse, version=2)
