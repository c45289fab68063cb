"""The CSV exports of AIPerf and GenAI-Perf: blocks of rows under `Metric,avg,…` and `Metric,Value`, one row a metric.

They are brought under the names of the JSON export: "Time to First Token (ms)" is `time_to_first_token` in `ms`. The order of the
columns tells the tools apart: AIPerf writes percentiles upwards (p1 first), GenAI-Perf downwards (p99 first) and puts commas between
thousands. Figures have two decimals.
"""

import csv
import re
from dataclasses import dataclass

from app.domain.errors import ImportRefused
from app.domain.text import clean_text

_HEADER = re.compile(r"\s*\"?Metric\"?\s*([,;\t])", re.IGNORECASE)
_ROW_NAME = re.compile(r"(.*?)\s*\(([^()]*)\)\s*\Z", re.DOTALL)
_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?\Z")
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+\Z")
_FIGURE = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z|[-+]?(nan|inf|infinity)\Z", re.IGNORECASE)
_LONGEST_CELL = 60
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
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if (match := _HEADER.match(line)) is not None:
            delimiter = match.group(1)
            header = [name.strip().lower() for name in _cells(line, delimiter, number)]
        elif not line.strip(" \t,;"):
            # A block ends; what follows without a header of its own (GPU telemetry) is none of ours.
            header = []
        elif header[1:2] in (["avg"], ["value"]):
            _add_row(values, header, _cells(line, delimiter, number), number, thousands, delimiter, warnings)
    return StatTables(values, tuple(warnings))


def _cells(line: str, delimiter: str, number: int) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise ImportRefused(f"Line {number} is no CSV row ({error}): mend or remove it.") from error


def _add_row(
    values: dict[str, object], header: list[str], cells: list[str], number: int, thousands: bool, delimiter: str, warnings: list[str]
) -> None:
    if len(cells) > len(header):
        raise ImportRefused(
            f"The row on line {number} is longer than its header ({len(cells)} cells under {len(header)} columns), so its figures "
            "cannot be told apart: send the JSON export, or mend the row."
        )
    name, unit = _name_and_unit(cells[0])
    if name in values:
        warnings.append(f"line {number}: {clean_text(cells[0], 60)} stands twice; the first row is read.")
        return
    row: dict[str, object] = {"unit": unit}
    for column, cell in zip(header[1:], cells[1:], strict=False):
        if (value := _value(cell.strip(), thousands, delimiter)) is not None:
            row["avg" if column == "value" else column] = value
    values[name] = row


def _name_and_unit(cell: str) -> tuple[str, str]:
    match = _ROW_NAME.match(cell[:200])
    title, unit = (match.group(1), match.group(2)) if match else (cell[:200], "")
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_"), unit.strip()


def _value(cell: str, thousands: bool, delimiter: str) -> float | str | None:
    """A figure, None for an empty cell, the text itself (which the gate of figures turns away) for anything else."""
    if cell == "":
        return None
    if thousands and delimiter == "," and _THOUSANDS.match(cell):
        cell = cell.replace(",", "")
    elif delimiter == ";" and _DECIMAL_COMMA.match(cell):
        # A spreadsheet that divides columns with semicolons writes decimal commas.
        cell = cell.replace(",", ".")
    return float(cell) if len(cell) <= _LONGEST_CELL and _FIGURE.match(cell) else clean_text(cell, _LONGEST_CELL)
