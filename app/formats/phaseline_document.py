"""The document of our own measurements: one point measured is one run, with raw samples, environment and telemetry.

    {"format": "phaseline", "version": 1, "kind", "method", "started_at", "parameters", "environment", "telemetry", "runs": [point, …]}

A point is one of three. `passes` are timed inside the process: seconds of the prompt pass and of every decode step, repeat by repeat,
the first repeat kept apart. `requests` are timed at a client: the columns of RequestSamples by their names. `device` are rates of a
device. NaN and what is not known are null. `window_s` is when the point was measured, on the monotonic clock of the telemetry.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import numpy as np

from app.domain.run import STATS, Distribution, Flag, LoadMode, MeasuredAt, MetricValue, Rate, RequestSamples

FORMAT = "phaseline"
VERSION = 1
Status = Literal["ok", "oom", "timeout", "error"]
STATUSES: tuple[Status, ...] = ("ok", "oom", "timeout", "error")


@dataclass(frozen=True)
class Passes:
    """Seconds of each repeat's prompt pass, and of its decode steps in order; `first` is the repeat before them, kept apart."""

    prefill_s: Sequence[float]
    steps_s: Sequence[Sequence[float]]
    first: "Passes | None" = None


@dataclass(frozen=True)
class Point:
    """One operating point as it goes into the document; None is "not known".

    `concurrency` counts the clients, or for `passes` the sequences of the batch.
    `threads` are those of a processor that measured; None on any other device.

    `reason` says why a point that is not `ok` has no figures. `metrics` hold what is not in the samples (the server's own figures).
    `details` is anything more that a reader of the document may want (memory, floors), kept as it is.
    """

    status: Status = "ok"
    reason: str | None = None
    label: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    model: str | None = None
    hardware: str | None = None
    devices: int | None = None
    threads: int | None = None
    tp: int | None = None
    weight_dtype: str | None = None
    kv_dtype: str | None = None
    load_mode: LoadMode | None = None
    measured_at: MeasuredAt | None = None
    token_count_source: str | None = None
    started_at: str | None = None
    duration_s: float | None = None
    window_s: tuple[float, float] | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None
    concurrency: int | None = None
    request_rate_per_s: float | None = None
    sent: int | None = None
    passes: Passes | None = None
    requests: RequestSamples | None = None
    device: Mapping[str, Any] | None = None
    metrics: Mapping[str, MetricValue] = field(default_factory=dict)
    flags: Sequence[Flag] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


def document(
    kind: str,
    method: str,
    parameters: Mapping[str, Any],
    points: Sequence[Point],
    started_at: str | None = None,
    environment: Mapping[str, Any] | None = None,
    telemetry: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The document as plain data. `method` names how it was measured and its version; what the agent adds later may be None."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "method": method,
        "started_at": started_at,
        "parameters": plain(parameters),
        "environment": plain(environment),
        "telemetry": plain(telemetry),
        "runs": [_point(point) for point in points],
    }


def write_document(path: Path, content: Mapping[str, Any]) -> None:
    """Put the document in place of the file whole: a reader, or a process that is killed, never leaves half of one behind."""
    beside = path.with_name(f".{path.name}.part")
    with beside.open("w", encoding="utf-8") as file:
        json.dump(plain(content), file, allow_nan=False)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def plain(value: Any) -> Any:
    """Any value as strict JSON holds it: arrays as lists, NaN and infinities as null."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value


def _point(point: Point) -> dict[str, Any]:
    """A point without what it does not have."""
    data = {item.name: getattr(point, item.name) for item in fields(Point)}
    data["passes"] = None if point.passes is None else _passes(point.passes)
    data["requests"] = None if point.requests is None else columns(point.requests)
    data["metrics"] = {key: _metric(value) for key, value in point.metrics.items()}
    data["flags"] = [{"flag": flag.flag, "evidence": flag.evidence, "figures": dict(flag.figures)} for flag in point.flags]
    return {key: plain(value) for key, value in data.items() if value is not None and value != () and value != [] and value != {}}


def _passes(passes: Passes) -> dict[str, Any]:
    data: dict[str, Any] = {"prefill_s": list(passes.prefill_s), "steps_s": [list(steps) for steps in passes.steps_s]}
    return data if passes.first is None else {**data, "first": _passes(passes.first)}


def columns(samples: RequestSamples) -> dict[str, Any]:
    """The columns of samples by their names; those that are None are left out."""
    return {
        item.name: list(value) if isinstance(value, tuple) else value
        for item in fields(RequestSamples)
        if (value := getattr(samples, item.name)) is not None
    }


def _metric(value: MetricValue) -> dict[str, Any]:
    if isinstance(value, Rate):
        return {"value": value.value, "scope": value.scope, "definition": value.definition}
    return {**_statistics(value), "n": value.n, "definition": value.definition}


def _statistics(value: Distribution) -> dict[str, float]:
    return {name: figure for name in STATS if (figure := value.stat(name)) is not None}
