"""Tables of published measurements in the layout they are handed around in, read as `Measurement`s.

Two layouts: served load (one row an operating point with TTFT and TPOT) and single figures (one row a published number). Every row is
read; what cannot be used says why in `Refused`, nothing is dropped in silence.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.domain.measurement import AGGREGATE, REJECTED, SPECULATIVE, Layout, Measurement, deployment

Row = Mapping[str, str]

# Seconds from the figure of a metric; None: the metric is no time of a phase.
METRICS = ("prefill_s", "prefill_tok_s", "ttft_ms_mean", "tpot_ms_mean", "itl_ms_mean", "decode_tok_s_per_request")
# What the sources call a weight format -> our name for it; GGUF types lose their prefix.
FORMAT_NAMES = {
    "": "bf16",
    "int4_wo": "int4_wo",
    "int4-awq-g128": "awq",
    "int4-gptq-g128": "gptq",
    "int4-g128": "awq",
    "int4-g32": "q4_0",
    "int4-q4f16": "int4",
    "int4-mixed": "int4",
    "uint4": "int4",
    "fp4": "nvfp4",
    "f16": "fp16",
    "q8_k_xl": "q8_0",
    "q5_k_xl": "q5_k_m",
    "q4_k_xl": "q4_k_m",
}
_DEPTH = re.compile(r"context_depth=(\d+)")
_SAMPLED = re.compile(r"spec_decoding=(?!none|off)", re.IGNORECASE)


@dataclass(frozen=True)
class Refused:
    """A row of a table that gives no measurement, and why."""

    id: str
    reason: str


def read_served(path: Path) -> Iterator[Measurement | Refused]:
    """The rows of a served-load table."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield _served(row)


def read_single(path: Path, rejected: bool = False) -> Iterator[Measurement | Refused]:
    """The rows of a single-figure table; `rejected` marks all of them as impossible by their publisher's later word."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield _single(row, rejected)


def weight_format(name: str) -> str:
    """Our name of a weight format; names we have no other word for stay as they are, for the catalog to refuse."""
    key = name.strip().lower().removeprefix("gguf ")
    return FORMAT_NAMES.get(key, key)


def _served(row: Row) -> Measurement | Refused:
    split = row["serving"] == "disagg"
    clients = _whole(row["concurrency"])
    if not clients:
        return Refused(row["id"], "the number of clients is not stated")
    pool = "decode_" if split else ""
    layout = _layout(row, pool)
    workers = (_whole(row["decode_num_workers"]) or 1) if split else 1
    return Measurement(
        id=row["id"],
        kind="disaggregated" if split else "served",
        source="ai-dynamo/aiconfigurator end-to-end measurements",
        engine=row["engine"],
        engine_version=row["engine_version"],
        model=row["model"],
        hardware=row["hardware"],
        layout=layout,
        weight_dtype=weight_format(row["weight_dtype"]),
        expert_dtype=weight_format(row["moe_dtype"]),
        kv_dtype="",
        sequences=clients / workers,
        prompt_tokens=_whole(row["prompt_tokens"]),
        output_tokens=_whole(row["output_tokens"]),
        ttft_s=_milliseconds(row["ttft_ms"]),
        tpot_s=_milliseconds(row["tpot_ms"]),
        prefill_layout=_layout(row, "prefill_") if split else None,
        prefill_workers=(_whole(row["prefill_num_workers"]) or None) if split else None,
        decode_workers=(_whole(row["decode_num_workers"]) or None) if split else None,
    )


def _layout(row: Row, pool: str) -> Layout:
    stated = row[f"{pool}attention_dp"]
    # A 0 stands where the source had nothing to say.
    return deployment(
        _whole(row[f"{pool}tp"]) or 1,
        _whole(stated) or 1 if stated.strip() else None,
        _whole(row[f"{pool}moe_tp"]) or 1,
        _whole(row[f"{pool}moe_ep"]) or 1,
    )


def _single(row: Row, rejected: bool) -> Measurement | Refused:
    metric = row["metric"]
    if metric not in METRICS:
        return Refused(row["id"], f"{metric or 'an unnamed metric'} is no time of one phase")
    value, prompt, output = _number(row["value"]), _whole(row["prompt_tokens"]), _whole(row["output_tokens"])
    sequences = _number(row["batch_or_concurrency"])
    if value is None or value <= 0:
        return Refused(row["id"], "the figure is no positive number")
    if sequences is None:
        return Refused(row["id"], f"the batch is {row['batch_or_concurrency']!r}, which is no number")
    if metric == "prefill_tok_s" and not prompt:
        return Refused(row["id"], "a prefill rate without its prompt length")
    times: dict[str, Any] = {}
    if metric == "prefill_s":
        times["prefill_s"] = value
    elif metric == "prefill_tok_s":
        times["prefill_s"] = (prompt or 0) / value * (1.0 if row["scope"] != "aggregate" else sequences)
    elif metric == "ttft_ms_mean":
        times["ttft_s"] = value / 1e3
    elif metric == "decode_tok_s_per_request":
        times["tpot_s"] = 1.0 / value
    else:
        times["tpot_s"] = value / 1e3
    depth = _DEPTH.search(row["notes"])
    decode = "tpot_s" in times
    context = int(depth.group(1)) if depth else prompt if decode else None
    return Measurement(
        id=row["id"],
        kind="stream",
        source=row["source"],
        engine=row["engine"],
        engine_version=row["engine_version"],
        model=row["model"],
        hardware=row["hardware"],
        layout=Layout(_whole(row["num_devices"]) or 1, _whole(row["tp"]) or 1, _whole(row["pp"]) or 1, 1, _whole(row["ep"]) or 1),
        weight_dtype=weight_format(row["weight_dtype"]),
        expert_dtype="",
        kv_dtype=weight_format(row["kv_dtype"]) if row["kv_dtype"] else "",
        sequences=sequences,
        prompt_tokens=prompt,
        output_tokens=output,
        context_tokens=context,
        flags=tuple(_flags(row, rejected)),
        **times,
    )


def _flags(row: Row, rejected: bool) -> Iterator[str]:
    if rejected or "REJECTED" in row["notes"]:
        yield REJECTED
    if _SAMPLED.search(row["notes"]):
        yield SPECULATIVE
    if row["scope"] == "aggregate":
        yield AGGREGATE


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _whole(text: str) -> int | None:
    value = _number(text)
    return None if value is None else int(value)


def _milliseconds(text: str) -> float | None:
    value = _number(text)
    return None if value is None or value <= 0 else value / 1e3
