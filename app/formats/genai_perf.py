"""GenAI-Perf: profile_export_genai_perf.json and its CSV (with commas between thousands, percentiles from p99 downwards).

TTFT is the first response that is not empty: of a model that reasons first the first visible one, reasoning not counted.
`inter_token_latency` is TPOT: (end to end - TTFT) / (n - 1) of each request, rounded to whole nanoseconds. `time_to_second_token` is a
gap and not read. Requests that failed, or answered with nothing, are dropped from every statistic and counted nowhere; the request
rate still counts them, so it tells how many there were: rate x duration, where the duration follows from tokens and token rate.
"""

from dataclasses import dataclass, replace

from app.domain.checks import Evidence
from app.domain.errors import ImportRefused
from app.domain.run import RequestCounts, Run
from app.domain.text import clean_text
from app.formats.device_clocks import DeviceStatistics, clock_metrics
from app.formats.document import Document
from app.formats.identity import NO_MODEL
from app.formats.importer import Importer, json_decline
from app.formats.load import Load, offered_load
from app.formats.record import Record
from app.formats.serving import CLIENT_TOKENIZER
from app.formats.stat_export import NO_ENGINE, StatExport, exact_total, measured, workload_of
from app.formats.stat_tables import ROUNDED, read_stat_tables, statistic_columns

ID = "genai_perf"
_ENGINES = {"tensorrtllm": "tensorrt-llm", "vllm": "vllm"}
_DROPPED = 1.01
_LABELS = ("warmup_request_count", "stability_percentage")
_CLOCKS = {"sm_clock_hz": "gpu_clock_sm", "memory_clock_hz": "gpu_clock_memory"}
NO_FAILURES = "GenAI-Perf drops requests that failed without counting them: failures are not known."


def matches(document: Document) -> str | None:
    """None for `input_config` beside `request_throughput` without AIPerf's keys, or a CSV whose percentiles begin with p99."""
    if not document.is_json:
        columns = statistic_columns(document.text)
        downwards = columns is not None and columns[:4] == ("avg", "min", "max", "p99")
        return None if downwards else "no first line like Metric,avg,min,max,p99"
    if (reason := json_decline(document)) is not None:
        return reason
    for entry in document.entries:
        for key in ("input_config", "request_throughput"):
            if key not in entry.values:
                return f"{entry.where}no key {key}"
        for key in ("aiperf_version", "benchmark_duration", "start_time"):
            if key in entry.values:
                return f"{entry.where}{key} is AIPerf's"
    return None if document.entries else "no object"


def parse(document: Document) -> list[Run]:
    """One run for each export."""
    if document.is_json:
        return [_run(Record(entry.values, entry.where)) for entry in document.entries]
    tables = read_stat_tables(document.text, thousands=True)
    export = StatExport(Record(tables.values), {}, rounded=True)
    base = _base(export, offered_load(None, None))
    return [measured(replace(base, warnings=(*tables.warnings, ROUNDED, NO_MODEL, NO_ENGINE, *base.warnings)), export, Evidence())]


def _run(record: Record) -> Run:
    export = StatExport(record, {})
    config = record.child("input_config")
    perf = config.child("perf_analyzer")
    stimulus = perf.child("stimulus")
    base = _base(export, offered_load(stimulus.raw("request_rate"), stimulus.count("concurrency")))
    model = _model(config)
    engine = _engine(config)
    labels = {key: value for key in _LABELS if (value := perf.label(key)) is not None}
    for key in ("backend", "service_kind", "type"):
        if (value := config.child("endpoint").label(key)) is not None:
            labels["endpoint_type" if key == "type" else key] = value
    notes = (*(() if model else (NO_MODEL,)), *(() if engine else (NO_ENGINE,)), *base.warnings)
    clocks = clock_metrics(_devices(record.child("telemetry_stats")))
    run = replace(base, model=model, engine=engine, labels=labels, metrics=clocks, warnings=notes)
    return measured(run, export, _evidence(config))


def _devices(telemetry: Record) -> list[DeviceStatistics]:
    """The devices of the telemetry, which has an object a metric with one a device in it, by the device's number."""
    known = {key: telemetry.child(name) for key, name in _CLOCKS.items() if isinstance(telemetry.raw(name), dict)}
    utilisation = telemetry.child("gpu_utilization")
    numbers = {number for each in (utilisation, *known.values()) for number, value in each.items() if isinstance(value, dict)}
    found = []
    for number in sorted(numbers):
        clocks = {key: Record({**dict(each.child(number).items()), "unit": each.raw("unit")}) for key, each in known.items()}
        found.append(DeviceStatistics(utilisation.child(number).number("avg"), clocks))
    return found


@dataclass(frozen=True)
class _Reach:
    """How long the run took and how many requests it sent, as far as rates and totals tell."""

    duration_s: float | None = None
    sent: int | None = None


def _base(export: StatExport, load: Load) -> Run:
    completed = export.count("request_count")
    if completed is None and export.latency("request_latency") is None:
        raise ImportRefused("This file of GenAI-Perf has neither request_count nor request_latency: there is no run in it.")
    reach = _reach(export, completed)
    notes = [NO_FAILURES]
    if reach.sent is not None and completed is not None and reach.sent > completed:
        notes = [
            f"The request rate counts about {reach.sent} requests, the statistics {completed}: the others failed or answered with nothing, "
            "and GenAI-Perf does not say which."
        ]
    return Run(
        format=ID,
        duration_s=reach.duration_s,
        load_mode=load.mode,
        measured_at="client",
        token_count_source=CLIENT_TOKENIZER,
        workload=workload_of(export, completed, load),
        requests=RequestCounts(reach.sent, completed, None),
        warnings=tuple(notes),
    )


def _reach(export: StatExport, completed: int | None) -> _Reach:
    """Duration = tokens / token rate (else requests / request rate), requests sent = request rate x duration.

    In a table of two decimals rates are too coarse for either where they are small.
    """
    tokens = exact_total(export.value("output_sequence_length"), completed)
    token_rate, request_rate = export.value("output_token_throughput"), export.value("request_throughput")
    if export.rounded or not completed:
        return _Reach()
    if not tokens or not token_rate:
        return _Reach(completed / request_rate) if request_rate else _Reach()
    duration_s = tokens / token_rate
    sent = request_rate * duration_s if request_rate else None
    return _Reach(duration_s, round(sent) if sent is not None and completed * _DROPPED < sent < 1e12 else None)


def _model(config: Record) -> str | None:
    names = [clean_text(name) for name in config.sequence("model_names") or [] if isinstance(name, str)]
    return clean_text(", ".join(name for name in names if name)) or None


def _engine(config: Record) -> str | None:
    """The backend of a Triton server. For an OpenAI-style service the key holds the tool's default, which says nothing."""
    endpoint = config.child("endpoint")
    if endpoint.text("service_kind") != "triton":
        return None
    return _ENGINES.get((endpoint.text("backend") or "").lower())


def _evidence(config: Record) -> Evidence:
    """The lengths asked for, where every request asks for the same."""
    asked = {}
    for word in ("synthetic_tokens", "output_tokens"):
        lengths = config.child("input").child(word)
        mean = lengths.raw("mean")
        known = isinstance(mean, (int, float)) and not isinstance(mean, bool) and mean > 0
        asked[word] = lengths.positive("mean") if known and lengths.raw("stddev") == 0 else None
    return Evidence(requested_prompt_tokens=asked["synthetic_tokens"], requested_output_tokens=asked["output_tokens"])


IMPORTER = Importer(ID, "GenAI-Perf", matches, parse, version=4)
