"""NVIDIA AIPerf: the JSON and CSV exports of a run, and the per-request records (aiperf_records.py).

`inter_token_latency` is TPOT (of each request), `inter_chunk_latency` the gap between chunks, `time_to_second_token` a gap and no time
from the start. TTFT counts reasoning; `time_to_first_output_token` does not. Statistics are of requests that succeeded in phases that
count: warm-up stands apart (`warmup_metrics`, `exclude_from_results`) and is left out. `error_request_count` counts the others.

Eras: 0.1 has its metrics under `records` with short tags (ttft); 0.2 to 0.7 flat, without version; since 0.8 `schema_version` 1.0 to 1.4
and `aiperf_version`; the configuration is `endpoint.model_names` and `loadgen`, later `models.items` and `phases`.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from app.domain.checks import Evidence
from app.domain.errors import ImportRefused
from app.domain.run import Distribution, MetricValue, RequestCounts, Run
from app.domain.text import clean_text, duration, percent
from app.formats import aiperf_records
from app.formats.aiperf_devices import device_clocks, devices_of, gpu_name
from app.formats.aiperf_server import is_server_export, part_of, with_server
from app.formats.document import Document
from app.formats.identity import NO_MODEL
from app.formats.importer import Importer, json_decline
from app.formats.load import offered_load
from app.formats.record import Record
from app.formats.serving import CLIENT_TOKENIZER, SERVER_USAGE, first_known
from app.formats.stat_export import NO_ENGINE, StatExport, instant, measured, workload_of
from app.formats.stat_tables import ROUNDED, read_stat_tables, statistic_columns

ID = "aiperf"
_ALIASES = {
    "time_to_first_token": ("ttft",),
    "time_to_first_output_token": ("ttfo",),
    "total_isl": ("total_input_sequence_length",),
    "total_osl": ("total_output_sequence_length",),
    "min_request_timestamp": ("minimum_request_timestamp",),
}
_LABELS = ("aiperf_version", "schema_version", "benchmark_id")
_LOAD_LABELS = (
    *("arrival_pattern", "request_rate_mode", "request_count", "warmup_request_count", "benchmark_duration", "request_cancellation_rate"),
    *("kind", "type", "requests", "sessions", "duration", "prefill_concurrency", "smoothness"),
)
_LATER = 1.05
_NEWEST_SCHEMA = (1, 4)
_SCHEMA = re.compile(r"(\d{1,4})\.(\d{1,4})")


def matches(document: Document) -> str | None:
    """None for an export (`aiperf_version`, or `input_config` beside AIPerf's own metrics), records of requests, or AIPerf's CSV."""
    if not document.is_json:
        columns = statistic_columns(document.text)
        upwards = columns is not None and columns[:3] == ("avg", "min", "max") and columns[3:4] in (("sum",), ("p1",))
        return None if upwards else "no first line like Metric,avg,min,max,p1"
    if (reason := json_decline(document)) is not None:
        return reason
    if aiperf_records.matches(document) is None:
        return None
    for entry in document.entries:
        values = entry.values
        nested = isinstance(values.get("records"), dict)
        if "aiperf_version" not in values and not ("input_config" in values and (nested or "benchmark_duration" in values)):
            return f"{entry.where}no key aiperf_version, and no input_config beside benchmark_duration or records"
    return None


def parse(document: Document) -> list[Run]:
    """One run for each export, one for all the records of a file. Raises ImportRefused for AIPerf's other files."""
    if not document.is_json:
        return [_run_of_table(document.text)]
    if aiperf_records.matches(document) is None:
        return [aiperf_records.run_of_records(document, ID)]
    records = [Record(entry.values, entry.where) for entry in document.entries]
    servers = {record.text("benchmark_id"): record for record in records if is_server_export(record)}
    return [_beside(record, servers) for record in records if not is_server_export(record)]


def _beside(record: Record, servers: Mapping[str | None, Record]) -> Run:
    """A run, with its server's metrics where the upload has them too."""
    run, server = _run(record), servers.get(record.text("benchmark_id"))
    return run if server is None or not run.requests.completed else with_server(run, server)


def _run_of_table(text: str) -> Run:
    tables = read_stat_tables(text, thousands=False)
    export = StatExport(Record(tables.values), _ALIASES, rounded=True)
    run = replace(_base(export), warnings=(*tables.warnings, ROUNDED, NO_MODEL, NO_ENGINE))
    return measured(run, export, Evidence())


def _run(record: Record) -> Run:
    nested = isinstance(record.raw("records"), dict)
    export = StatExport(record.child("records") if nested else record, _ALIASES)
    config = record.child("input_config")
    load = _phase(config)
    base = _base(export, load)
    requests = base.requests
    if requests.failed is None and record.sequence("error_summary") == []:
        requests = RequestCounts(requests.completed, requests.completed, 0)
    usage = config.child("endpoint").raw("use_server_token_count") is True
    model = _model(config)
    devices = devices_of(record)
    run = replace(
        base,
        metrics={**device_clocks(devices), **_sending(export)},
        model=model,
        hardware=gpu_name(devices),
        token_count_source=SERVER_USAGE if usage else CLIENT_TOKENIZER,
        requests=requests,
        labels=_labels(record, config, load),
        workload=replace(base.workload, dataset=config.child("input").text("public_dataset")),
    )
    notes = (*(() if model else (NO_MODEL,)), NO_ENGINE, *_notes(record, export))
    done = measured(replace(run, warnings=(*notes, *record.warnings, *load.warnings)), export, _evidence(config))
    hits = export.value("overall_usage_prompt_cache_read_pct")
    return replace(done, flags=(*done.flags, *aiperf_records.cache_flag(min(1.0, hits / 100) if hits else None)))


def _base(export: StatExport, load: Record | None = None) -> Run:
    """What both exports have: counts, duration, tokens. Raises ImportRefused where there is no statistic of requests at all."""
    completed, failed = export.count("request_count"), export.count("error_request_count")
    if completed is None and export.latency("request_latency") is None:
        raise ImportRefused(
            "This file of AIPerf has no statistics of requests (it may hold time slices, server metrics or GPU telemetry, which belong to "
            "a run): send profile_export_aiperf.json."
        )
    counts = RequestCounts(None if completed is None or failed is None else completed + failed, completed, failed)
    phase = Record({}) if load is None else load
    offered = offered_load(first_known(phase.raw("request_rate"), phase.raw("rate")), phase.count("concurrency"))
    return Run(
        format=ID,
        duration_s=export.seconds("benchmark_duration"),
        started_at=instant(export.epoch_s("min_request_timestamp")),
        load_mode=offered.mode,
        measured_at="client",
        workload=workload_of(export, completed, offered),
        requests=counts,
    )


def _sending(export: StatExport) -> dict[str, MetricValue]:
    """Until a request was sent whole, the mean of it: the connection's overhead (waiting, address, connecting) and the writing."""
    parts = [export.latency(f"http_req_{name}") for name in ("connection_overhead", "sending")]
    means = [part.mean for part in parts if part is not None and part.mean is not None]
    # Over connections that are used again the overhead is 0, which is no statistic here.
    if parts[1] is None or parts[1].mean is None:
        return {}
    return {"client_send_s": Distribution(mean=sum(means), origin="derived")}


def _phase(config: Record) -> Record:
    """The load that was measured: `loadgen`, or the last phase whose results count."""
    phases = [phase for phase in config.sequence("phases") or [] if isinstance(phase, dict)]
    counted = [phase for phase in phases if phase.get("exclude_from_results") is not True and phase.get("kind") != "warmup"]
    return Record(counted[-1], "input_config.phases.") if counted else config.child("loadgen")


def _model(config: Record) -> str | None:
    names = config.child("endpoint").sequence("model_names") or []
    items = config.child("models").sequence("items") or []
    found = [*names, *(item.get("name") for item in items if isinstance(item, dict))]
    words = [clean_text(name) for name in found if isinstance(name, str) and clean_text(name)]
    return words[0] if len(words) == 1 else (clean_text(", ".join(words)) or None)


def _labels(record: Record, config: Record, load: Record) -> dict[str, str]:
    labels = {}
    sources = ((record, _LABELS), (load, _LOAD_LABELS), (config, ("scenario",)), (config.child("endpoint"), ("type", "streaming")))
    for source, keys in sources:
        for key in keys:
            if (value := source.label(key)) is not None:
                labels["endpoint_type" if source is not load and key == "type" else key] = value
    if record.raw("was_cancelled") is True:
        labels["was_cancelled"] = "true"
    return labels


def _notes(record: Record, export: StatExport) -> list[str]:
    notes = []
    schema = _SCHEMA.match(record.text("schema_version") or "")
    if schema and (int(schema[1]), int(schema[2])) > _NEWEST_SCHEMA:
        known = ".".join(map(str, _NEWEST_SCHEMA))
        notes.append(f"The file has schema {schema[0]}, newer than what is known here ({known}): what has kept its name is read.")
    if record.raw("was_cancelled") is True:
        notes.append("The run was cancelled before its end: the figures are of what had finished by then.")
    if (child := record.raw("warmup_metrics")) is not None and isinstance(child, dict):
        notes.append("Warm-up requests stand apart in the file (warmup_metrics) and are left out.")
    first, visible = export.seconds("time_to_first_token"), export.seconds("time_to_first_output_token")
    if first and visible and visible > first * _LATER:
        notes.append(
            f"Answers begin with reasoning: TTFT, {duration(first)} on average, counts it; "
            f"the first visible output comes after {duration(visible)}."
        )
    hits = export.value("theoretical_prefix_cache_hit")
    if hits:
        notes.append(
            f"Prompts share prefixes: up to {percent(hits / 100)} of their tokens can come from a prefix cache, "
            "so TTFT is not the time of whole prompts."
        )
    return notes


def _evidence(config: Record) -> Evidence:
    """The lengths asked for, where every request asks for the same (a stated spread of 0)."""
    asked = {}
    for word in ("input_tokens", "output_tokens"):
        lengths = config.child("input").child("prompt").child(word)
        asked[word] = lengths.positive("mean") if lengths.raw("stddev") == 0 else None
    # False is also the tool's default, and then no TTFT is measured.
    streamed = False if config.child("endpoint").raw("streaming") is False else None
    return Evidence(requested_prompt_tokens=asked["input_tokens"], requested_output_tokens=asked["output_tokens"], streamed=streamed)


IMPORTER = Importer(ID, "AIPerf", matches, parse, part_of=part_of, version=6)
