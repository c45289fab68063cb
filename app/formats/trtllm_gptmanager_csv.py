"""TensorRT-LLM's gptManagerBenchmark (C++): the one-row CSV of its older benchmark, and the tables people gather from several.

Milliseconds, with the unit in each name. `avg_inter_token_latency(ms)` is TPOT: (end - first token) / (tokens - 1) of each sequence, in
process, over those of two tokens or more. `token_throughput` counts output tokens alone and `num_samples` the sequences without an
error. Percentiles are nearest-rank. Without streaming there is neither TTFT nor time per token. Lengths and model are not in the file;
the mean output length is token rate / sequence rate. Numbers have six digits.
"""

from dataclasses import replace

from app.domain.checks import Evidence, flagged
from app.domain.derive import with_request_rates
from app.domain.errors import ImportRefused
from app.domain.run import CANONICAL, Distribution, RequestCounts, Run, Workload
from app.domain.text import clean_text
from app.formats.csv_rows import Header, Row, figure, first_header, read_rows
from app.formats.document import Document
from app.formats.importer import Importer
from app.formats.record import Record
from app.formats.serving import deployment_rates, itl_from_report
from app.formats.stat_export import exact_total

ID = "trtllm_gptmanager_csv"
_NEEDED = ("num_samples", "total_latency(ms)", "avg_sequence_latency(ms)")
_LATENCIES = {"ttft_s": "time_to_first_token(ms)", "tpot_s": "inter_token_latency(ms)", "e2e_s": "sequence_latency(ms)"}
_STATS = {"mean": "avg", **{stat: stat for stat in ("p50", "p90", "p99", "min", "max")}}
_MEASURED = ("mean", "p50", "p90", "p99")
_RATES = {"requests_per_s": ("seq_throughput(seq/sec)",), "output_tokens_per_s": ("token_throughput(token/sec)",)}
_COUNTS = frozenset({"num_samples", "num_error_samples"})
_MOST_LABELS = 40
NEAREST_RANK = "Percentiles are TensorRT-LLM's own: nearest rank, not interpolated."
NO_IDENTITY = "The file names neither model, prompt length nor hardware: choose them under Edit."


def matches(document: Document) -> str | None:
    """None for a CSV whose first line has this tool's columns."""
    if document.is_json:
        return "JSON, not a CSV"
    header = first_header(document.text)
    missing = [name for name in _NEEDED if header is None or name not in header.names]
    return f"no column {missing[0]} in the first line" if missing else None


def parse(document: Document) -> list[Run]:
    """One run for each row. Raises ImportRefused for a row without a time."""
    header, rows = read_rows(document.text)
    return [_run(_record(header, row)) for row in rows]


def _record(header: Header, row: Row) -> Record:
    values: dict[str, object] = {}
    for name, cell in zip(header.names, row.cells, strict=True):
        value = figure(cell, header.delimiter, where=row.where)
        # Counts are whole numbers, written as such.
        values[name] = int(value) if name in _COUNTS and isinstance(value, float) and value.is_integer() else value
    return Record(values, row.where)


def _run(record: Record) -> Run:
    completed, failed = record.count("num_samples"), record.count("num_error_samples")
    duration_ms = record.positive("total_latency(ms)")
    sequences, tokens = record.positive(_RATES["requests_per_s"][0]), record.positive(_RATES["output_tokens_per_s"][0])
    output = tokens / sequences if tokens and sequences else None
    run = Run(
        format=ID,
        engine="tensorrt-llm",
        duration_s=duration_ms / 1e3 if duration_ms else None,
        measured_at="in_process",
        workload=Workload(output_tokens_mean=output, output_tokens_total=exact_total(output, completed)),
        requests=RequestCounts(None if completed is None or failed is None else completed + failed, completed, failed),
        labels=_labels(record),
        warnings=(NO_IDENTITY,),
    )
    if completed == 0:
        return flagged(replace(run, warnings=(*run.warnings, *record.warnings)), Evidence(not_numbers=tuple(record.not_numbers)))
    return _measured(run, record)


def _measured(run: Run, record: Record) -> Run:
    completed, output = run.requests.completed, run.workload.output_tokens_mean
    metrics = {key: found for key, stem in _LATENCIES.items() if (found := _latency(record, key, stem, completed)) is not None}
    if not metrics:
        raise ImportRefused(f"{record.path('avg_sequence_latency(ms)')} holds no time: there is no run in this row.")
    tokens = round(output * completed) if output and completed else None
    finding = itl_from_report(metrics, completed, tokens)
    if finding.itl is not None:
        metrics["itl_s"] = finding.itl
    rates = deployment_rates(record, _RATES, run.duration_s, run.requests, run.workload)
    notes = (*run.warnings, NEAREST_RANK, *([finding.note] if finding.note else ()), *rates.warnings, *record.warnings)
    done = replace(run, metrics={**metrics, **rates.rates}, warnings=notes)
    evidence = Evidence(tuple(record.not_numbers), tuple(record.negative), streamed="ttft_s" in metrics)
    return flagged(with_request_rates(done), evidence)


def _latency(record: Record, key: str, stem: str, completed: int | None) -> Distribution | None:
    """The statistics under one stem; a figure of 0 is what the tool writes where nothing was measured."""
    found = {stat: record.positive(f"{word}_{stem}") for stat, word in _STATS.items()}
    if all(found[stat] is None for stat in _MEASURED):
        return None
    seconds = {stat: None if value is None else value * 1e-3 for stat, value in found.items()}
    # Sequences of one token have no time per token, so only of the others is the number certain.
    return Distribution(**seconds, n=None if key == "tpot_s" else completed, origin="reported", definition=CANONICAL)


def _labels(record: Record) -> dict[str, str]:
    """Columns that others added beside the tool's own, like the utilisation of the device."""
    own = {*_COUNTS, "total_latency(ms)", *(name for names in _RATES.values() for name in names)}
    own |= {f"{word}_{stem}" for word in _STATS.values() for stem in _LATENCIES.values()}
    labels: dict[str, str] = {}
    for name, _ in record.items():
        if name not in own and len(labels) < _MOST_LABELS and (value := record.label(name)) is not None:
            labels[clean_text(name, 60)] = value
    return labels


IMPORTER = Importer(ID, "TensorRT-LLM gptManagerBenchmark (CSV)", matches, parse, version=2)
