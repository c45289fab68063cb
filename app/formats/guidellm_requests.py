"""The requests of a GuideLLM benchmark as samples, where the file keeps all that its statistics are of.

Schema 1 cuts warm-up and cool-down from the statistics, not from the list: a request counts that overlaps the measured stretch. A file
may keep a random part of the requests alone; then its statistics say more than the part, and the part is left aside.
"""

from dataclasses import dataclass

import numpy as np

from app.domain.run import Floats, RequestSamples
from app.domain.text import clean_text
from app.formats.record import ArrayProblem, Record, floats

_COLUMNS = ("prompt", "output", "ttft", "e2e", "start")


@dataclass(frozen=True)
class RequestReading:
    """Samples of the measured requests, or sentences that say why there are none."""

    samples: RequestSamples | None = None
    warnings: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()


def read_requests(benchmark: Record, completed: int | None, due_at_a_rate: bool = False) -> RequestReading:
    """The successful and errored requests of the measured stretch, with when each was due where a rate said so. Never raises."""
    requests = benchmark.child("requests")
    successful = _rows(requests, "successful", benchmark)
    if not successful:
        return RequestReading()
    if completed is not None and len(successful) != completed:
        return RequestReading(
            warnings=(f"The file keeps {len(successful)} of {completed} successful requests: its own statistics, of all, are used.",)
        )
    errored = _rows(requests, "errored", benchmark)
    try:
        return RequestReading(_samples(successful, errored, due_at_a_rate))
    except ArrayProblem as problem:
        reason = str(problem)
        text = f"Requests left aside, {reason}; the file's own figures are kept."
        return RequestReading(warnings=(text,), negative=(reason,) if "negative" in reason else ())


def _rows(requests: Record, outcome: str, benchmark: Record) -> list[Record]:
    """The requests of one outcome that overlap the measured stretch."""
    begin, end = _clock(benchmark.raw("start_time")), _clock(benchmark.raw("end_time"))
    rows = [Record(row) for row in requests.sequence(outcome) or [] if isinstance(row, dict)]
    if begin is None or end is None:
        return rows
    return [row for row in rows if _overlaps(row, begin, end)]


def _overlaps(row: Record, begin: float, end: float) -> bool:
    start, stop = _start(row), _clock(row.raw("request_end_time") if "request_end_time" in row else row.raw("end_time"))
    return start is None or stop is None or (stop >= begin and start <= end)


def _clock(value: object) -> float | None:
    """A reading of a clock, None for what is none."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e12 else None


def _start(row: Record) -> float | None:
    return _clock(row.raw("request_start_time") if "request_start_time" in row else row.raw("start_time"))


def _due(row: Record) -> float | None:
    """The moment that the schedule had for a request, by the clock of its start."""
    timings = row.child("info").child("timings")
    return _clock(timings.raw("targeted_start") if "targeted_start" in timings else row.child("scheduler_info").raw("targeted_start_time"))


def _scheduled(rows: list[Record], start: Floats) -> Floats | None:
    """When each request was due, counted like its start; None where one does not say. Never after it, as clocks of processes may say."""
    due = [_due(row) for row in rows]
    if any(moment is None for moment in due):
        return None
    scheduled: Floats = np.minimum(np.array(due, dtype=np.float64), start) - np.nanmin(start)
    return scheduled


def _samples(successful: list[Record], errored: list[Record], due_at_a_rate: bool) -> RequestSamples:
    rows = sorted([*((row, True) for row in successful), *((row, False) for row in errored)], key=lambda each: _start(each[0]) or 0.0)
    ok = np.array([good for _, good in rows], dtype=np.bool_)
    columns = {name: _column([_VALUES[name](row) for row, _ in rows], name) for name in _COLUMNS}
    start = columns["start"]
    errors = tuple("" if good else _error(row) for row, good in rows)
    ttft = np.where(ok, columns["ttft"] * 1e-3, np.nan)
    ttft[ttft == 0] = np.nan
    return RequestSamples(
        ok=ok,
        prompt_tokens=columns["prompt"],
        output_tokens=np.where(ok, columns["output"], np.nan),
        ttft_s=ttft,
        e2e_s=np.where(ok, columns["e2e"], np.nan),
        start_s=start - np.nanmin(start) if bool(np.isfinite(start).all()) else None,
        errors=errors if any(errors) else (),
        scheduled_s=_scheduled([row for row, _ in rows], start) if due_at_a_rate and bool(np.isfinite(start).all()) else None,
    )


def _column(values: list[object], name: str) -> Floats:
    return floats(values, name)


def _e2e(row: Record) -> object:
    """From sending to the last token; `request_latency`, which ends with the response, where that time is not there."""
    timings = row.child("info").child("timings")
    last = _clock(row.raw("last_token_time") if "last_token_time" in row else timings.raw("last_token_iteration"))
    start = _start(row)
    return last - start if last is not None and start is not None and last >= start else row.raw("request_latency")


def _error(row: Record) -> str:
    said = row.text("error") or row.child("info").text("error")
    return clean_text(said) if said else "error"


_VALUES = {
    "prompt": lambda row: row.raw("prompt_tokens"),
    "output": lambda row: row.raw("output_tokens"),
    "ttft": lambda row: row.raw("time_to_first_token_ms"),
    "e2e": _e2e,
    "start": _start,
}
