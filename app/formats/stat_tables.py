"""The CSV exports of AIPerf and GenAI-Perf: blocks of rows under `Metric,avg,…` and `Metric,Value`, one row a metric.

They are brought under the names of the JSON export: "Time to First Token (ms)" is `time_to_first_token` in `ms`. The order of the
columns tells the tools apart: AIPerf writes percentiles upwards (p1 first), GenAI-Perf downwards (p99 first) and puts commas between
thousands. Figures have two decimals.
"""

import re
from dataclasses import dataclass

from app.domain.text import clean_text
from app.formats.csv_rows import RESAVED, cells_of, check_width, figure, in_exponent_notation, numbered_lines

_HEADER = re.compile(r"\s*\"?Metric\"?\s*([,;\t])", re.IGNORECASE)
_ROW_NAME = re.compile(r"(.*?)\s*\(([^()]*)\)\s*\Z", re.DOTALL)
_INSTANT = "_timestamp"
ROUNDED = "The CSV export has figures with two decimals; the JSON export has them in full, and names model and load."


@dataclass(frozen=True)
class StatTables:
    """Statistics by metric tag as in the JSON export, and what was odd about the rows."""

    values: dict[str, object]
    warnings: tuple[str, ...] = ()


def statistic_columns(text: str) -> tuple[str, ...] | None:
    """The columns after `Metric` of the first line, lower case; None when the text does not begin with such a header."""
    first = text.lstrip("\ufeff \t\r\n").split("\n", 1)[0].rstrip("\r")
    match = _HEADER.match(first)
    if match is None or len(first) > 2000:
        return None
    return tuple(name.strip().strip('"').lower() for name in first.split(match.group(1))[1:])


def read_stat_tables(text: str, thousands: bool) -> StatTables:
    """Every row under a header with `avg` or `Value`; rows of other blocks (GPU telemetry) are passed over.

    `thousands` says that commas inside a figure divide thousands. Raises ImportRefused for a row that is no CSV.
    """
    values: dict[str, object] = {}
    warnings: list[str] = []
    header: list[str] = []
    delimiter = ","
    for number, line in numbered_lines(text):
        if (match := _HEADER.match(line)) is not None:
            delimiter = match.group(1)
            header = [name.strip().lower() for name in cells_of(line, delimiter, number)]
        elif not line.strip(" \t,;"):
            # A block ends; what follows without a header of its own (GPU telemetry) is none of ours.
            header = []
        elif header[1:2] in (["avg"], ["value"]):
            _add_row(values, header, cells_of(line, delimiter, number), number, thousands, delimiter, warnings)
    return StatTables(values, tuple(dict.fromkeys(warnings)))


def _add_row(
    values: dict[str, object], header: list[str], cells: list[str], number: int, thousands: bool, delimiter: str, warnings: list[str]
) -> None:
    check_width(cells, header, f"line {number}", may_be_shorter=True)
    name, unit = _name_and_unit(cells[0])
    if name in values:
        warnings.append(f"line {number}: {clean_text(cells[0], 60)} stands twice; the first row is read.")
        return
    if any(in_exponent_notation(cell) for cell in cells[1:]):
        warnings.append(RESAVED)
        if name.endswith(_INSTANT):
            # 1.76E+18 ns is right to half a month.
            return
    row: dict[str, object] = {"unit": unit}
    for column, cell in zip(header[1:], cells[1:], strict=False):
        if (value := figure(cell, delimiter, thousands, f"line {number}: ")) is not None:
            row["avg" if column == "value" else column] = value
    values[name] = row


def _name_and_unit(cell: str) -> tuple[str, str]:
    match = _ROW_NAME.match(cell[:200])
    title, unit = (match.group(1), match.group(2)) if match else (cell[:200], "")
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_"), unit.strip()
