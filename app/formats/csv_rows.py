"""Rows of a CSV under their header, whatever divides the columns: what the importers of tables share.

A row that is longer than its header is refused with its line: shifting columns would turn one figure into another. Commas are decimal
marks only where semicolons divide the columns, and divide thousands only where a tool is known to write them.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.domain.errors import ImportRefused
from app.domain.text import clean_text

_THOUSANDS = re.compile(r"-?\d{1,3}(,\d{3})+(\.\d+)?\Z")
_DECIMAL_COMMA = re.compile(r"-?(\d+|\d{1,3}(\.\d{3})+),\d+\Z")
# Between semicolons a point may divide thousands, as decimal commas go with, or be the decimal point.
_EITHER_POINT = re.compile(r"-?[1-9]\d{0,2}\.\d{3}\Z")
_FIGURE = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z|[-+]?(nan|inf|infinity)\Z", re.IGNORECASE)
_EXPONENT = re.compile(r"-?\d+[.,]?\d*[eE][+-]?\d+\Z")
_LONGEST_CELL = 60
_LONGEST_HEADER = 20_000
DELIMITERS = ",;\t"
RESAVED = "Figures stand in exponent notation: a spreadsheet re-saved the file, and digits and times may be lost."


@dataclass(frozen=True)
class Header:
    """The columns of a table and what divides them."""

    names: tuple[str, ...]
    delimiter: str


@dataclass(frozen=True)
class Row:
    """The cells of one line; `where` begins the path of its columns in messages."""

    where: str
    cells: tuple[str, ...]


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers, whichever way they end."""
    yield from enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1)


def read_header(line: str) -> Header | None:
    """The header that a line is, None when it is not sound. Empty names at its end (a comma too many) are left out."""
    if len(line) > _LONGEST_HEADER:
        return None
    delimiter = max(DELIMITERS, key=line.count)
    try:
        names = [name.strip() for name in next(csv.reader([line], delimiter=delimiter, strict=True), [])]
    except csv.Error:
        return None
    while names and not names[-1]:
        names.pop()
    return Header(tuple(names), delimiter)


def first_header(text: str) -> Header | None:
    """The header in the first line that is not empty."""
    return next((read_header(line) for _, line in numbered_lines(text[: _LONGEST_HEADER * 2]) if line.strip()), None)


def cells_of(line: str, delimiter: str, number: int) -> list[str]:
    """The cells of one line. Raises ImportRefused when it is no CSV."""
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise ImportRefused(f"Line {number} is no CSV row ({error}): mend or remove it.") from error


def check_width(cells: Sequence[str | None], columns: Sequence[str], where: str, may_be_shorter: bool = False) -> None:
    """Raises ImportRefused for a row that does not have as many cells as there are columns."""
    if len(cells) == len(columns) or (may_be_shorter and len(cells) < len(columns)):
        return
    word = "longer" if len(cells) > len(columns) else "shorter"
    raise ImportRefused(
        f"The row on {where} is {word} than its header ({len(cells)} cells under {len(columns)} columns), so its figures cannot be told "
        "apart: send the JSON output, or mend the row."
    )


def read_rows(text: str) -> tuple[Header, list[Row]]:
    """The header in the first line and the rows below it. Raises ImportRefused when there is none, or for one that does not fit."""
    header: Header | None = None
    rows: list[Row] = []
    for number, line in numbered_lines(text):
        if not line.strip():
            continue
        if header is None:
            header = read_header(line) or Header((), ",")
            continue
        cells = cells_of(line, header.delimiter, number)
        while len(cells) > len(header.names) and not cells[-1].strip():
            cells.pop()
        check_width(cells, header.names, f"line {number}")
        rows.append(Row(f"line {number}: ", tuple(cells)))
    if header is None or not rows:
        raise ImportRefused("The table has a header and no row under it: there are no runs in it.")
    return header, rows


def in_exponent_notation(cell: str) -> bool:
    """Whether a cell is a figure like 1.76E+18: no tool writes those here, a spreadsheet does, with the digits it shows."""
    return _EXPONENT.match(cell.strip()) is not None


def figure(cell: str, delimiter: str, thousands: bool = False, where: str = "") -> float | str | None:
    """A cell as a figure; None when it is empty, the text itself (which the gate of figures turns away) for anything else.

    Raises ImportRefused, with `where` in front, for a figure between semicolons that may mean two things.
    """
    word = cell.strip()
    if word == "":
        return None
    if thousands and delimiter == "," and _THOUSANDS.match(word):
        word = word.replace(",", "")
    elif delimiter == ";" and _DECIMAL_COMMA.match(word):
        # A spreadsheet that divides columns with semicolons writes decimal commas.
        word = word.replace(".", "").replace(",", ".")
    elif delimiter == ";" and _EITHER_POINT.match(word):
        raise ImportRefused(
            f"{where}“{word}” may be {word.replace('.', '')} or {word.replace('.', ',')} in a table with semicolons: save it with commas "
            "between columns and points in figures."
        )
    return float(word) if len(word) <= _LONGEST_CELL and _FIGURE.match(word) else clean_text(word, _LONGEST_CELL)
