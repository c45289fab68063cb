"""The published measurements that come with Phaseline: what the engine profiles are fitted to and predictions are shown beside.

`measured.csv` has one measurement a row, in SI units; an empty cell is a figure the source does not give. Layouts are written as
devices x tp x pp x dp x ep. The rows are facts from the sources that each row names; see NOTICE.
"""

import csv
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from app.catalog.names import CatalogFault
from app.domain.measurement import Layout, Measurement

PATH = Path(__file__).with_name("measured.csv")
_TEXTS = ("id", "kind", "source", "engine", "engine_version", "model", "hardware", "weight_dtype", "expert_dtype", "kv_dtype")
_COUNTS = ("prompt_tokens", "output_tokens", "context_tokens", "prefill_workers", "decode_workers")
_TIMES = ("ttft_s", "prefill_s", "tpot_s")
COLUMNS = (*_TEXTS, "layout", "prefill_layout", "sequences", *_COUNTS, *_TIMES, "flags")


@cache
def measurements() -> tuple[Measurement, ...]:
    """All built-in measurements, read once."""
    return tuple(read(PATH))


def read(path: Path) -> list[Measurement]:
    """The measurements of a file in this layout. Raises CatalogFault with the line for a row that is none."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        if tuple(rows.fieldnames or ()) != COLUMNS:
            raise CatalogFault(f"{path.name}: the first line must name the columns {', '.join(COLUMNS)}")
        return [_measurement(row, f"{path.name}, line {rows.line_num}") for row in rows]


def write(path: Path, rows: Iterable[Measurement]) -> None:
    """Write measurements in this layout, times to six digits."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(_row(one) for one in rows)


def _measurement(row: Mapping[str, str], where: str) -> Measurement:
    try:
        layout = _layout(row["layout"])
        if layout is None:
            raise ValueError("no layout")
        values: dict[str, Any] = {name: row[name] for name in _TEXTS}
        values |= {name: int(row[name]) if row[name] else None for name in _COUNTS}
        values |= {name: float(row[name]) if row[name] else None for name in _TIMES}
        return Measurement(
            **values,
            layout=layout,
            prefill_layout=_layout(row["prefill_layout"]),
            sequences=float(row["sequences"]),
            flags=tuple(row["flags"].split()),
        )
    except (TypeError, ValueError) as fault:
        raise CatalogFault(f"{where}: {fault}; a row has {len(COLUMNS)} cells, counts are whole, times in seconds") from fault


def _layout(words: str) -> Layout | None:
    return Layout(*(int(part) for part in words.split("x"))) if words else None


def _row(one: Measurement) -> dict[str, str]:
    layouts = {
        name: "x".join(str(part) for part in (at.devices, at.tp, at.pp, at.dp, at.ep)) if at is not None else ""
        for name, at in (("layout", one.layout), ("prefill_layout", one.prefill_layout))
    }
    numbers = {name: "" if (value := getattr(one, name)) is None else f"{value:.6g}" for name in ("sequences", *_TIMES)}
    counts = {name: "" if (value := getattr(one, name)) is None else str(value) for name in _COUNTS}
    return {**{name: getattr(one, name) for name in _TEXTS}, **layouts, **numbers, **counts, "flags": " ".join(one.flags)}
