"""GuideLLM's benchmarks.csv, brought into the shape of its JSON report: one report with one benchmark for each row.

0.2 and 0.3 have one line of headers ("Successful Time to first token ms mean"), with the setting as JSON in the last columns. Since 0.4
three lines stand above each other: group, field with outcome and unit, statistic. Percentiles are one cell, a list from min to max, with
neither median nor count of their own.

0.4 to 0.7 take the headers of the first benchmark for all rows and leave out outcomes without a total, so that a row may stand under
headers of other columns: a row is read only where its own figures agree with the headers. 0.8 aligns its columns.
"""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.errors import ImportRefused
from app.formats.csv_rows import check_width, figure
from app.formats.document import Entry
from app.formats.json_reading import JsonProblem, read_parts
from app.formats.record import whole_total

_OLD_FIRST = ("Type", "Run Id", "Id", "Name")
_NEW_FIRST = ("Run Info", "Run Info")
_STATISTICS = {"mean": "mean", "median": "median", "std dev": "std_dev"}
_LIST = "[min, 0.1, 1, 5, 10, 25, 75, 90, 95, 99, max]"
_PLACES = ("min", "p001", "p01", "p05", "p10", "p25", "p75", "p90", "p95", "p99", "max")
_OLD_COLUMN = re.compile(r"(Successful|Errored|Incomplete|Total) (\w[\w ]{2,60}?) (mean|median|std dev|\[min, .*\])\Z")
_OLD_WORDS = {"Type": "type_", "Start Time": "start_time"}
_OLD_SETTINGS = {"Args": "args", "Worker": "worker", "Request Loader": "request_loader"}
# (group, unit) of the three-line headers as the JSON calls them.
_METRICS = {
    ("Request Latency", "Sec"): "request_latency",
    ("Time to First Token", "ms"): "time_to_first_token_ms",
    ("Time per Output Token", "ms"): "time_per_output_token_ms",
    ("Inter Token Latency", "ms"): "inter_token_latency_ms",
    ("Server Throughput", "Requests/Sec"): "requests_per_second",
    ("Server Throughput", "Concurrency"): "request_concurrency",
    ("Token Metrics", "Input Tokens"): "prompt_token_count",
    ("Token Metrics", "Output Tokens"): "output_token_count",
    ("Token Metrics", "Total Tokens"): "total_token_count",
    ("Token Throughput", "Output Tokens/Sec"): "output_tokens_per_second",
    ("Token Throughput", "Total Tokens/Sec"): "tokens_per_second",
    ("Token Streaming", "Iter Tokens/Iter"): "iter_tokens_per_iteration",
}
_TIMES = {"Duration": "duration", "Warmup": "warmup_duration", "Cooldown": "cooldown_duration"}
_OUTCOMES = ("successful", "incomplete", "errored", "total")
_COUNTED = ("prompt_token_count", "output_token_count")
_STRATEGY = re.compile(r"([a-z_]{1,40})(?:@(\d{1,12}(?:\.\d{1,6})?|unlimited))?\Z")
_ALIGNED_SINCE = 2
_SAME = 1e-6


def csv_kind(text: str) -> str | None:
    """`old` or `new` where the first line is a header of this tool, else None."""
    first = text.lstrip("\ufeff \t\r\n").split("\n", 1)[0].rstrip("\r")
    if first.startswith(",".join(_OLD_FIRST)) and f'"Successful Request latency {_LIST}"' in first:
        return "old"
    return "new" if first.startswith(",".join(_NEW_FIRST) + ",") and ",Benchmark," in first else None


def csv_entries(text: str, kind: str) -> list[Entry]:
    """One report for each row. Raises ImportRefused for a row whose columns cannot be told, or a table without rows."""
    rows = _rows(text)
    lines = 1 if kind == "old" else 3
    if len(rows) <= lines:
        raise ImportRefused("The table has a header and no row under it: there are no runs in it.")
    if kind == "old":
        return [_old(rows[0].cells, row) for row in rows[1:]]
    header = _three_lines([row.cells for row in rows[:3]])
    first: _Reading | None = None
    entries = []
    for row in rows[3:]:
        reading = _new(header, row)
        _check_columns(first or reading, reading, row.where)
        first = first or reading
        entries.append(Entry(row.where, reading.report))
    return entries


@dataclass(frozen=True)
class _Line:
    """The cells of a row and the beginning of its paths."""

    where: str
    cells: Sequence[str]


def _rows(text: str) -> list[_Line]:
    """The rows with the line on which each ends: a cell may hold line ends."""
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff")), strict=True)
    rows = []
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append(_Line(f"line {reader.line_num}: ", cells))
    except csv.Error as error:
        raise ImportRefused(f"Line {reader.line_num} is no CSV row ({error}): mend or remove it, or send the JSON.") from error
    return rows


def _json(cell: str, where: str) -> object:
    """The object in a cell, None where it is empty or holds none."""
    if cell.strip()[:1] not in ("{", "["):
        return None
    try:
        parts = read_parts(cell).parts
    except JsonProblem as problem:
        raise ImportRefused(f"{where}a cell begins like JSON and is none ({problem.what}): send the JSON report.") from problem
    return parts[0].value if len(parts) == 1 else None


def _number(cell: str) -> object:
    """A figure. Counts are whole numbers here, as in the JSON."""
    value = figure(cell, ",")
    return int(value) if isinstance(value, float) and value.is_integer() and cell.strip().isdecimal() else value


def _put(statistics: dict[str, object], name: str, cell: str) -> None:
    """One statistic of a metric: a figure, or the list of percentiles."""
    if name in _STATISTICS:
        statistics[_STATISTICS[name]] = _number(cell)
        return
    parts = cell.strip().removeprefix("[").removesuffix("]").split(",")
    if not cell.strip().startswith("[") or len(parts) != len(_PLACES):
        return
    values = dict(zip(_PLACES, (figure(part, ",") for part in parts), strict=True))
    statistics["min"], statistics["max"] = values.pop("min"), values.pop("max")
    statistics["percentiles"] = values


def _with_sums(metrics: dict[str, dict[str, dict[str, object]]], completed: object) -> None:
    """What the table leaves out and follows: the count of latencies, and sums of tokens where mean x requests is whole."""
    if isinstance(completed, int) and "successful" in metrics.get("request_latency", {}):
        metrics["request_latency"]["successful"]["count"] = completed
    for key in _COUNTED:
        statistics = metrics.get(key, {}).get("successful", {})
        mean = statistics.get("mean")
        if isinstance(mean, (int, float)) and isinstance(completed, int) and 0 < mean * completed < 1e18:
            total = whole_total(mean * completed)
            if total is not None and abs(mean * completed - total) <= _SAME * max(1.0, total):
                statistics["total_sum"] = total


def _old(header: Sequence[str], row: _Line) -> Entry:
    check_width(row.cells, header, row.where.rstrip(": "))
    metrics: dict[str, dict[str, dict[str, object]]] = {}
    benchmark: dict[str, object] = {}
    totals: dict[str, object] = {}
    for name, cell in zip(header, row.cells, strict=True):
        if (match := _OLD_COLUMN.match(name)) is not None:
            outcome, metric, statistic = match.groups()
            key = metric.lower().replace(" ", "_")
            _put(metrics.setdefault(key, {}).setdefault(outcome.lower(), {}), statistic, cell)
        elif name in _OLD_SETTINGS:
            benchmark[_OLD_SETTINGS[name]] = _json(cell, row.where)
        elif name.removesuffix(" Requests").lower() in _OUTCOMES and name.endswith(" Requests"):
            totals[name.removesuffix(" Requests").lower()] = _number(cell)
        elif name == "Duration":
            benchmark["duration"] = _number(cell)
        elif name in _OLD_WORDS:
            benchmark[_OLD_WORDS[name]] = cell
    _with_sums(metrics, totals.get("successful"))
    benchmark |= {"metrics": {**metrics, "request_totals": totals}}
    return Entry(row.where, {"benchmarks": [benchmark]})


def _three_lines(lines: Sequence[Sequence[str]]) -> list[tuple[str, str, str]]:
    width = max(len(line) for line in lines)
    group, name, unit = ([*line, *[""] * (width - len(line))] for line in lines)
    return list(zip(group, name, unit, strict=True))


@dataclass(frozen=True)
class _Reading:
    """A row as a report, with what tells whether its cells stand under their own headers."""

    report: Mapping[str, object]
    width: int
    outcomes: frozenset[str]
    means: Mapping[str, object]
    aligned: bool


def _new(header: Sequence[tuple[str, str, str]], row: _Line) -> _Reading:
    check_width(row.cells, [name for _, name, _ in header], row.where.rstrip(": "))
    metrics: dict[str, dict[str, dict[str, object]]] = {}
    fields: dict[tuple[str, str], str] = {}
    for (group, name, unit), cell in zip(header, row.cells, strict=True):
        outcome, _, of = name.partition(" ")
        metric = _METRICS.get((group, of))
        if metric is not None and outcome.lower() in _OUTCOMES:
            if cell.strip():
                _put(metrics.setdefault(metric, {}).setdefault(outcome.lower(), {}), unit.lower(), cell)
        elif (group, name) not in fields:
            fields[group, name] = cell
    totals = {outcome: _number(fields.get(("Request Counts", outcome.capitalize()), "")) for outcome in _OUTCOMES}
    _with_sums(metrics, totals["successful"])
    metadata = _json(fields.get(("Runtime Info", "Metadata"), ""), row.where)
    version = metadata.get("version") if isinstance(metadata, dict) else None
    schema = version if isinstance(version, int) else 1
    benchmark: dict[str, object] = {
        "type_": fields.get(("Benchmark", "Type"), ""),
        "start_time": fields.get(("Timings", "Start Time"), ""),
        "config": _config(fields, row.where),
        "metrics": {**metrics, "request_totals": totals},
        **{key: _number(fields.get(("Timings", name), "")) for name, key in _TIMES.items()},
    }
    report = {
        "metadata": metadata if isinstance(metadata, dict) else {"version": schema},
        "args" if schema == 1 else "config": _json(fields.get(("Runtime Info", "Arguments"), ""), row.where),
        "benchmarks": [benchmark],
    }
    counted = frozenset(outcome for outcome in ("incomplete", "errored") if totals[outcome])
    means = {key: metrics.get(key, {}).get("successful", {}).get("mean") for key in (*_COUNTED, "total_token_count")}
    return _Reading(report, len(row.cells), counted, means, schema >= _ALIGNED_SINCE)


def _config(fields: Mapping[tuple[str, str], str], where: str) -> dict[str, object]:
    profile = _json(fields.get(("Run Info", "Profile"), ""), where)
    backend = _json(fields.get(("Run Info", "Backend"), ""), where)
    index = _number(fields.get(("Run Info", "Run Index"), ""))
    strategy = _strategy(fields.get(("Benchmark", "Strategy"), ""), profile if isinstance(profile, dict) else {}, index)
    return {"profile": profile, "backend": backend, "strategy": strategy}


def _strategy(word: str, profile: Mapping[str, object], index: object) -> dict[str, object]:
    """The strategy of a row: 0.8 writes its rate behind it ("constant@4.00"), before that the profile lists what it ran, in order."""
    match = _STRATEGY.match(word.strip())
    if match is None:
        return {}
    kind, value = match.groups()
    if value is not None:
        limit = float(value) if value != "unlimited" else None
        if kind in ("concurrent", "throughput"):
            return {"type_": kind, "streams" if kind == "concurrent" else "max_concurrency": None if limit is None else int(limit)}
        return {"type_": kind, "rate": limit}
    ran = profile.get("completed_strategies")
    if isinstance(ran, list) and isinstance(index, int) and index < len(ran):
        found = ran[index]
        if isinstance(found, dict) and found.get("type_") == kind:
            return dict(found)
    return {"type_": kind}


def _check_columns(first: _Reading, row: _Reading, where: str) -> None:
    """Raises ImportRefused for a row that stands under headers of other columns, as far as its figures tell."""
    means = [row.means[key] for key in (*_COUNTED, "total_token_count")]
    prompt, output, total = (value if isinstance(value, (int, float)) else None for value in means)
    adds_up = prompt is None or output is None or total is None or abs(prompt + output - total) <= _SAME * max(1.0, total)
    if row.aligned or (adds_up and row.outcomes == first.outcomes):
        return
    raise ImportRefused(
        f"The row on {where.rstrip(': ')} has outcomes (incomplete or failed requests) that the first row has not, and this version of "
        "GuideLLM writes the headers of the first row alone, so its figures cannot be told apart: send the JSON report."
    )
