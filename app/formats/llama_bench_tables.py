"""The rows of llama-bench in its table outputs: CSV, SQL statements, and the markdown table that a console log carries.

Each reader gives rows under the column names of the JSON output, with the line they stand on. A row that does not fit its header is
refused with its line: shifting columns would turn one figure into another.
"""

import bisect
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from app.domain.errors import ImportRefused
from app.domain.text import clean_text
from app.formats.csv_rows import RESAVED, cells_of, check_width, in_exponent_notation, numbered_lines

NUMERIC = frozenset(
    {
        *("build_number", "model_size", "model_n_params", "n_prompt", "n_gen", "n_depth"),
        *("avg_ns", "stddev_ns", "avg_ts", "stddev_ts"),
    }
)
_CSV_HEADER = re.compile(r'^[ \t]*"?build_commit"?[ \t]*([,;\t])', re.MULTILINE)
_SQL_INSERT = re.compile(r"INSERT\s+INTO\s+[\"`\[]?\w+[\"`\]]?\s*\((\s*build_commit[^()]*)\)\s*VALUES\s*", re.IGNORECASE)
_SQL_CREATE = re.compile(r"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?[\"`\[]?\w+[\"`\]]?\s*\(\s*build_commit\b", re.IGNORECASE)
_SQL_TOKEN = re.compile(r"\s*(?:'((?:[^']|'')*)'|([^\s,()';]+)|([(),;]))")
_MARKDOWN_HEADER = re.compile(r"^\|\s*model\s*\|\s*size\s*\|\s*params\s*\|\s*backend\s*\|.*\|\s*test\s*\|\s*t/s\s*\|\s*$", re.MULTILINE)
_TEST = re.compile(r"(?:pp(\d{1,9}))?(?:\+?tg(\d{1,9}))?(?: @ d(\d{1,9}))?\Z")
_SPEED = re.compile(r"(\d+(?:\.\d+)?)(?:\s*(?:±|\+/?-|Â±|\ufffd)\s*(\d+(?:\.\d+)?))?\Z")
_BUILD = re.compile(r"^build:\s*([0-9a-f]{4,40})\s*\((\d{1,9})\)", re.MULTILINE)
_DEVICE = re.compile(r"^[ \t]*Device (\d+): (.+?)(?:, (?:compute capability|gfx|VMM|Wave|VRAM).*)?$", re.MULTILINE)
_VULKAN_DEVICE = re.compile(r"^ggml_vulkan: (\d+) = (.+?) \|", re.MULTILINE)
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?\Z")
_COMMA = re.compile(r"-?\d+,\d+\Z")
# The markdown columns under their names in the other outputs.
_COLUMNS = {
    "model": "model_type",
    "size": "model_size_text",
    "params": "model_n_params_text",
    "backend": "backends",
    "threads": "n_threads",
    "ngl": "n_gpu_layers",
    "ncmoe": "n_cpu_moe",
    "fa": "flash_attn",
    "mmap": "use_mmap",
    "dio": "use_direct_io",
    "sm": "split_mode",
    "mg": "main_gpu",
    "ts": "tensor_split",
    "nkvo": "no_kv_offload",
    "dev": "devices",
    "embd": "embeddings",
}


@dataclass(frozen=True)
class TableRow:
    """One row under the JSON output's names; `where` begins the path of its columns in messages."""

    where: str
    values: Mapping[str, object]


@dataclass(frozen=True)
class Table:
    """The rows of a file and sentences about what was odd."""

    rows: tuple[TableRow, ...]
    warnings: tuple[str, ...] = ()


def table_kind(text: str) -> str | None:
    """`csv`, `sql` or `markdown` where `text` carries a header of llama-bench, else None."""
    if _SQL_INSERT.search(text) or _SQL_CREATE.search(text):
        return "sql"
    if _CSV_HEADER.search(text):
        return "csv"
    return "markdown" if _MARKDOWN_HEADER.search(text) else None


def read_table(text: str, kind: str) -> Table:
    """The rows of a table of this kind. Raises ImportRefused for a row that does not fit its header."""
    return {"csv": _read_csv, "sql": _read_sql, "markdown": _read_markdown}[kind](text)


class _Lines:
    """Line numbers of offsets in a text."""

    def __init__(self, text: str) -> None:
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def at(self, offset: int) -> int:
        """The line, counted from 1, on which the character at `offset` stands."""
        return bisect.bisect_left(self._ends, offset) + 1


def _read_csv(text: str) -> Table:
    """Blocks of rows, each under a header line; lines before the first header and blocks without rows are passed over."""
    rows: list[TableRow] = []
    warnings: list[str] = []
    header: list[str] = []
    delimiter = ","
    for number, line in numbered_lines(text):
        if (match := _CSV_HEADER.match(line)) is not None:
            delimiter = match.group(1)
            header = [name.strip() for name in cells_of(line, delimiter, number)]
        elif not line.strip():
            continue
        elif header:
            cells = cells_of(line, delimiter, number)
            check_width(cells, header, f"line {number}")
            rows.append(_csv_row(header, cells, number, delimiter, warnings))
    return Table(tuple(rows), tuple(dict.fromkeys(warnings)))


def _csv_row(header: list[str], cells: list[str], number: int, delimiter: str, warnings: list[str]) -> TableRow:
    where = f"line {number}: "
    values = {name: _value(name, cell, where, delimiter) for name, cell in zip(header, cells, strict=True)}
    if any(in_exponent_notation(cell) for name, cell in zip(header, cells, strict=True) if name in NUMERIC):
        warnings.append(RESAVED)
    return TableRow(where, values)


def _value(name: str, cell: str, where: str, delimiter: str = ",") -> object:
    """A cell as what its column holds. A comma is a decimal mark only where it does not divide the columns."""
    text = cell.strip()
    if text == "" or text.upper() == "NULL":
        return None
    if name not in NUMERIC:
        return text
    if delimiter == ";" and _COMMA.match(text):
        text = text.replace(",", ".")
    if not (_PLAIN.match(text) or in_exponent_notation(text)) or len(text) > 40:
        raise ImportRefused(f"{where}{name} is “{clean_text(text, 40)}”, which is no number: write it with a point and without separators.")
    return int(text) if text.lstrip("-").isdecimal() else float(text.replace(",", "."))


def _read_sql(text: str) -> Table:
    rows: list[TableRow] = []
    warnings: list[str] = []
    lines = _Lines(text)
    for statement in _SQL_INSERT.finditer(text):
        names = [name.strip(' \t\r\n"`[]') for name in statement.group(1).split(",")]
        for values, offset in _tuples(text, statement.end()):
            where = f"line {lines.at(offset)}"
            if len(values) == len(names) + 1:
                names, values = _with_opencl(names, values, warnings)
            check_width(values, names, where)
            cells = zip(names, values, strict=True)
            rows.append(TableRow(f"{where}: ", {name: _value(name, value or "", f"{where}: ") for name, value in cells}))
    return Table(tuple(rows), tuple(dict.fromkeys(warnings)))


def _tuples(text: str, position: int) -> Iterator[tuple[list[str | None], int]]:
    """The parenthesised value lists of a statement, with their offsets; NULL is None. Ends at anything that is none."""
    values: list[str | None] | None = None
    start = position
    while (match := _SQL_TOKEN.match(text, position)) is not None:
        position = match.end()
        quoted, bare, mark = match.groups()
        if mark == "(":
            values, start = [], match.start(3)
        elif mark == ")" and values is not None:
            yield values, start
            values = None
        elif values is None:
            if mark != ",":
                return
        elif quoted is not None:
            values.append(quoted.replace("''", "'"))
        elif bare is not None:
            values.append(None if bare.upper() == "NULL" else bare)


def _with_opencl(names: list[str], values: list[str | None], warnings: list[str]) -> tuple[list[str], list[str | None]]:
    """Builds of 2023 wrote the value of `opencl` without naming the column, between `cuda` and `metal`.

    The statement is taken that way only when the row's own arithmetic agrees: tokens / avg_ns must give avg_ts.
    """
    if "cuda" not in names or "opencl" in names:
        return names, values
    at = names.index("cuda") + 1
    full = [*names[:at], "opencl", *names[at:]]
    row = dict(zip(full, values, strict=True))
    try:
        tokens = float(row.get("n_prompt") or 0) + float(row.get("n_gen") or 0)
        nanoseconds, rate = float(row.get("avg_ns") or 0), float(row.get("avg_ts") or 0)
    except ValueError:
        return names, values
    if nanoseconds <= 0 or rate <= 0 or abs(tokens / nanoseconds * 1e9 / rate - 1) > 0.01:
        return names, values
    warnings.append("Statements have one value more than columns: builds of 2023 left out the name `opencl`, which is put back.")
    return full, values


def _read_markdown(text: str) -> Table:
    rows: list[TableRow] = []
    warnings: list[str] = []
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    last = max((index for index, line in enumerate(lines) if line.strip()), default=0)
    header: list[str] = []
    for number, line in enumerate(lines):
        stripped = line.strip()
        if _MARKDOWN_HEADER.match(stripped):
            header = _split_row(stripped)
        elif header and stripped.startswith("|") and not set(stripped) <= set("|-: "):
            cells = _split_row(stripped)
            if number == last and (not stripped.endswith("|") or len(cells) < len(header)):
                warnings.append(f"Line {number + 1} is cut off and left out.")
                continue
            check_width(cells, header, f"line {number + 1}")
            rows.append(_markdown_row(header, cells, f"line {number + 1}: "))
    return Table(_with_surroundings(text, rows), tuple(warnings))


def _split_row(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _markdown_row(header: list[str], cells: list[str], where: str) -> TableRow:
    values: dict[str, object] = {}
    for name, cell in zip(header, cells, strict=True):
        if name == "test":
            values.update(_test(cell, where))
        elif name == "t/s":
            values.update(_speed(cell, where))
        elif cell:
            values[_COLUMNS.get(name, name)] = cell
    return TableRow(where, values)


def _test(cell: str, where: str) -> dict[str, object]:
    match = _TEST.match(cell)
    if match is None or not (match.group(1) or match.group(2)):
        raise ImportRefused(f"{where}test is “{clean_text(cell, 40)}”; known are pp512, tg128, pp512+tg128, each with @ d4096 behind it.")
    prompt, generated, depth = (int(group or 0) for group in match.groups())
    return {"n_prompt": prompt, "n_gen": generated, "n_depth": depth}


def _speed(cell: str, where: str) -> dict[str, object]:
    match = _SPEED.match(cell)
    if match is None:
        raise ImportRefused(f"{where}t/s is “{clean_text(cell, 40)}”, which is no rate like 325.63 ± 1.72.")
    values: dict[str, object] = {"avg_ts": float(match.group(1))}
    if match.group(2):
        values["stddev_ts"] = float(match.group(2))
    return values


def _with_surroundings(text: str, rows: list[TableRow]) -> tuple[TableRow, ...]:
    """Build and device from the log around the table: the build line follows its rows, devices are listed before them."""
    lines = _Lines(text)
    builds = [(lines.at(match.start()), match.group(1), int(match.group(2))) for match in _BUILD.finditer(text)]
    # By index, since a log of several benchmarks lists the same device each time.
    devices = {match.group(1): match.group(2).strip() for match in (*_DEVICE.finditer(text), *_VULKAN_DEVICE.finditer(text))}
    done = []
    for row in rows:
        line = int(row.where.split()[1].rstrip(":"))
        build = next((build for build in builds if build[0] > line), None)
        known: dict[str, object] = {"gpu_info": ", ".join(devices.values())} if devices else {}
        if build is not None:
            known |= {"build_commit": build[1], "build_number": build[2]}
        done.append(TableRow(row.where, {**row.values, **known}))
    return tuple(done)
