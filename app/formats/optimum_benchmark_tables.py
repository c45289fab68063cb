"""Tables of optimum-benchmark: inference_results.csv of 2023 with units in its headers, and reports flattened into columns.

Both are brought into the shape of the JSON report. Figures of 2023 have three digits: `forward` is the pass over the prompt there, and
`decode` is `generate` without it.
"""

import re

from app.domain.errors import ImportRefused
from app.formats.csv_rows import Header, Row, figure, first_header, read_rows
from app.formats.document import Entry

_WITH_UNIT = re.compile(r"(forward|generate|decode)\.(latency|throughput)\((s|samples/s|tokens/s)\)\Z")
_MEMORY = re.compile(r"(forward|generate)\.max_memory_(allocated|reserved)\(MB\)\Z")
_FLAT = re.compile(r"(report|config)\.[\w.]{1,120}\Z")
_DEEPEST = 8
_WHOLE = frozenset({"count", "batch_size", "sequence_length", "max_new_tokens", "min_new_tokens", "num_beams"})


def table_decline(text: str) -> str | None:
    """Why a text is no table of this tool, None when it is."""
    header = first_header(text)
    names = () if header is None else header.names
    if any(_WITH_UNIT.match(name) for name in names) or any(
        name.startswith("report.") and name.endswith(".latency.mean") for name in names
    ):
        return None
    return "no column like generate.latency(s) or report.prefill.latency.mean in the first line"


def table_entries(text: str) -> list[Entry]:
    """The rows as reports. Raises ImportRefused for a row that does not fit its header, or a table with none."""
    header, rows = read_rows(text)
    flat = any(name.startswith("report.") for name in header.names)
    return [Entry(row.where, _nested(header, row) if flat else _with_units(header, row)) for row in rows]


def _with_units(header: Header, row: Row) -> dict[str, object]:
    targets: dict[str, dict[str, dict[str, object]]] = {}
    for name, cell in zip(header.names, row.cells, strict=True):
        value = figure(cell, header.delimiter)
        if (match := _WITH_UNIT.match(name)) is not None:
            target, kind, unit = match.groups()
            key = "mean" if kind == "latency" else "value"
            targets.setdefault(target, {})[kind] = {"unit": unit, key: value}
        elif (match := _MEMORY.match(name)) is not None:
            memory = targets.setdefault(match.group(1), {}).setdefault("memory", {"unit": "MB"})
            memory[f"max_{match.group(2)}"] = value
    return dict(targets)


def _nested(header: Header, row: Row) -> dict[str, object]:
    """Columns with points in their names as objects inside each other."""
    root: dict[str, object] = {}
    for name, cell in zip(header.names, row.cells, strict=True):
        path = name.split(".")
        if not _FLAT.match(name) or len(path) > _DEEPEST or not cell.strip():
            continue
        place = root
        for step in path[:-1]:
            inside = place.setdefault(step, {})
            if not isinstance(inside, dict):
                raise ImportRefused(f"{row.where}the column {name} lies inside another that has a value: the table is no flattened report.")
            place = inside
        value = figure(cell, header.delimiter)
        whole = path[-1] in _WHOLE and isinstance(value, float) and value.is_integer()
        place.setdefault(path[-1], int(value) if whole and isinstance(value, float) else value)
    return root
