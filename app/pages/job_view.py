"""What the page of a job shows: how far it is, the points so far with bars that fill in, and its log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.domain.lease import QUEUED, RUNNING, SUCCEEDED
from app.domain.quantity import byte_rate, bytes_, count, duration, flops_rate, moment, number, percent, seconds, tokens_rate
from app.pages.job_form import job_query
from app.services.jobs import JobView

_WORDS: Mapping[str, str] = {
    "queued": "Waiting",
    "running": "Measuring",
    "succeeded": "Measured",
    "failed": "Failed",
    "cancelled": "Stopped",
    "timeout": "Out of time",
    "lost": "Lost with its workers",
    "refused": "Refused",
}
KIND_WORDS: Mapping[str, str] = {
    "device_microbench": "what the device achieves",
    "inprocess_sweep": "a model on the device",
    "endpoint_sweep": "a running server",
    "llama_bench": "llama-bench",
}
# Figures that get a bar, in the colour of their phase; each column's bars share one scale.
_BARS: Mapping[str, str] = {"ttft_s": "prefill", "prefill_s": "prefill", "itl_s": "decode", "decode_s": "decode", "step_s": "decode"}
# Below two minutes seconds are told, beyond them minutes.
_MINUTES_FROM_S = 120.0
_LOG_LINES = 200


@dataclass(frozen=True)
class Cell:
    """One figure of a point; `bar` is its share of the largest in its column in percent, None where it gets none."""

    text: str
    phase: str = ""
    bar: float | None = None


@dataclass(frozen=True)
class PointTable:
    """The points so far: titles of the columns, and a row of cells each."""

    titles: tuple[tuple[str, bool], ...]
    rows: tuple[tuple[Cell, ...], ...]


def job_values(view: JobView, points: Sequence[Mapping[str, Any]], log: Sequence[str], now: datetime) -> dict[str, Any]:
    """Everything the template needs for one job."""
    job, lease = view.job, view.job.lease
    progress = {"done": None, "total": None, "current": None, "eta_s": None, **(job.progress or {})}
    query = job_query(job.asked.kind, job.asked.parameters)
    return {
        "job": job,
        "view": view,
        "state": lease.state,
        "live": lease.state in (QUEUED, RUNNING),
        "headline": headline(view, len(points)),
        "kind_words": KIND_WORDS[job.asked.kind],
        "progress": progress,
        "left": time_left(progress["eta_s"]),
        "spent": _spent(view, now),
        "table": point_table(points),
        "points": len(points),
        "log": list(reversed(log[-_LOG_LINES:])),
        "log_cut": max(len(log) - _LOG_LINES, 0),
        "parameters": [(key.replace("_", " "), _told(value)) for key, value in job.asked.parameters.items()],
        "repeat": query,
        "lost_words": f"{lease.lost_workers} lost" if lease.lost_workers else "",
    }


def headline(view: JobView, points: int) -> str:
    """The job's finding in one sentence."""
    job = view.job
    subject = str(job.asked.parameters.get("model") or job.asked.parameters.get("target") or job.asked.parameters.get("gguf") or "")
    about = job.asked.label or subject or job.last_device or KIND_WORDS[job.asked.kind]
    done, total = (job.progress or {}).get("done"), (job.progress or {}).get("total")
    word = _WORDS[job.lease.state]
    if job.lease.state == RUNNING and job.lease.cancel_requested:
        word = "Stopping"
    if job.lease.state == SUCCEEDED:
        return f"{word}: {about}" + (f", {points:,} {'point' if points == 1 else 'points'}" if points else "")
    if isinstance(done, int) and isinstance(total, int) and job.lease.state != QUEUED:
        return f"{word}: {about}, {done:,} of {total:,} steps"
    return f"{word}: {about}"


def time_left(eta_s: object) -> str:
    """How long still, in words; empty where it is not known. Never in seconds beyond two minutes."""
    if not isinstance(eta_s, int | float):
        return ""
    if eta_s < _MINUTES_FROM_S:
        return f"about {max(round(eta_s), 1)} s left"
    return f"about {round(eta_s / 60)} min left" if eta_s < 2 * 3600 else f"about {eta_s / 3600:.1f} h left"


def _spent(view: JobView, now: datetime) -> str:
    job = view.job
    if job.started_at is None:
        return f"asked for {moment(job.created_at)}"
    until = job.finished_at or now
    words = "ran for" if job.finished_at else "running for"
    return f"started {moment(job.started_at)}, {words} {duration((until - job.started_at).total_seconds())}"


def point_table(points: Sequence[Mapping[str, Any]]) -> PointTable:
    """Every figure that a point has, in the order in which they first come."""
    keys = list(dict.fromkeys(key for point in points for key in point))
    tops = {key: max((value for point in points if (value := _figure(point.get(key))) is not None), default=0.0) for key in _BARS}
    rows = tuple(tuple(_cell(key, point.get(key), tops.get(key, 0.0)) for key in keys) for point in points)
    titles = tuple((_title(key), any(_figure(point.get(key)) is not None for point in points)) for key in keys)
    return PointTable(titles, rows)


def _figure(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _cell(key: str, value: object, top: float) -> Cell:
    figure = _figure(value)
    phase = _BARS.get(key, "")
    bar = round(100 * figure / top, 2) if phase and figure is not None and top > 0 else None
    return Cell(_told_figure(key, value), phase, bar)


def _title(key: str) -> str:
    bare = key.removesuffix("_per_s").removesuffix("_s").removesuffix("_bytes")
    return {"ttft": "TTFT", "itl": "ITL", "mfu": "MFU", "mbu": "MBU", "flops": "Rate"}.get(bare, bare.replace("_", " ").capitalize())


def _told_figure(key: str, value: object) -> str:
    """A figure with the unit that its name says."""
    figure = _figure(value)
    if figure is None:
        return "" if value is None else _told(value)
    if key.endswith("flops_per_s"):
        return flops_rate(figure)
    if key.endswith("bytes_per_s"):
        return byte_rate(figure)
    if key.endswith("tokens_per_s"):
        return tokens_rate(figure)
    if key.endswith("_s") and not key.endswith("_per_s"):
        return seconds(figure)
    if key.endswith("bytes"):
        return bytes_(figure)
    if key in ("mfu", "mbu") or key.endswith("share"):
        return percent(figure)
    return count(figure) if figure == int(figure) else number(figure)


def _told(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_told(each) for each in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not set" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
