"""Per-request arrays of a serving client (`ttfts`, `itls`, `output_lens` …, in seconds) as columns of one length.

A request that failed has no latency: it is told by its error text or by having produced no token, never by a TTFT of 0. Arrays
that do not fit together, or that time itself contradicts, are left aside with the reason; the file's own aggregates stay.
"""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from app.domain.run import Floats, RequestSamples
from app.domain.text import clean_text
from app.formats.record import ArrayProblem, Record, floats

Flags = npt.NDArray[np.bool_]
# A request cannot take longer than the run; the client's clock readings are not taken at one instant.
_LONGER_THAN_RUN, _CLOCK_SLACK_S = 1.01, 0.1
_SAME_AS_TTFT_S = 2e-4


@dataclass(frozen=True)
class ArrayReading:
    """What the arrays gave. `token_gaps_s` are gaps between tokens (not chunks), in files that store those.

    `empty_outputs` counts requests without an error and without a token, `first_gap_is_ttft` says that those entries were dropped.
    `client_queue_s` and `server_ttft_s` are columns like those of the samples.
    """

    samples: RequestSamples | None = None
    token_gaps_s: Floats | None = None
    empty_outputs: int = 0
    first_gap_is_ttft: bool = False
    client_queue_mean_s: float | None = None
    client_queue_s: Floats | None = None
    server_ttft_s: Floats | None = None
    warnings: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()


@dataclass
class _Columns:
    """Columns as read; those that the file does not have are None."""

    size: int
    ttft: Floats | None = None
    output: Floats | None = None
    prompt: Floats | None = None
    e2e: Floats | None = None
    start: Floats | None = None
    server_queue: Floats | None = None
    server_ttft: Floats | None = None
    client_queue: Floats | None = None
    errors: tuple[str, ...] = ()
    gaps: list[Floats] = field(default_factory=list)


_NAMES = {
    "ttft": "ttfts",
    "output": "output_lens",
    "prompt": "input_lens",
    "e2e": "latencies",
    "start": "start_times",
    "server_queue": "server_queue_times",
    "server_ttft": "server_ttfts",
    "client_queue": "queue_times",
}


def read_requests(
    record: Record, duration_s: float | None, completed: int | None, failed: int | None, gaps_are_tokens: bool = False
) -> ArrayReading:
    """The arrays of `record`, or the reason why they are left aside. Never raises."""
    try:
        columns = _columns(record)
        if columns is None:
            return ArrayReading()
        return _reading(columns, duration_s, completed, failed or 0, gaps_are_tokens)
    except ArrayProblem as problem:
        reason = str(problem)
        negative = (reason,) if "negative" in reason else ()
        return ArrayReading(warnings=(f"Per-request arrays left aside, {reason}; the file's own figures are kept.",), negative=negative)


def _columns(record: Record) -> _Columns | None:
    lists = {column: values for column, key in _NAMES.items() if (values := record.sequence(key))}
    gaps = record.sequence("itls") or []
    if "ttft" not in lists and "e2e" not in lists:
        return None
    errors = record.sequence("errors") or []
    sizes = {_NAMES[column]: len(values) for column, values in lists.items()}
    sizes.update({key: len(values) for key, values in (("itls", gaps), ("errors", errors)) if values})
    if len(set(sizes.values())) > 1:
        raise ArrayProblem("their lengths differ (" + ", ".join(f"{key} {size}" for key, size in sizes.items()) + ")")
    columns = _Columns(size=next(iter(sizes.values())))
    for column, values in lists.items():
        setattr(columns, column, floats(values, _NAMES[column]))
    columns.gaps = _gap_lists(gaps)
    columns.errors = tuple(clean_text(error) if isinstance(error, str) and error else "" for error in errors)
    return columns


def _gap_lists(lists: list[object]) -> list[Floats]:
    """The gaps of each request, converted all at once: a million short lists take a second and not twenty."""
    pooled: list[object] = []
    ends = [0]
    for each in lists:
        if not isinstance(each, list):
            raise ArrayProblem("itls holds something that is no list of gaps")
        pooled += each
        ends.append(len(pooled))
    values = floats(pooled, "itls")
    return [values[start:end] for start, end in pairwise(ends)]


def _reading(columns: _Columns, duration_s: float | None, completed: int | None, failed: int, gaps_are_tokens: bool) -> ArrayReading:
    if columns.ttft is None:
        return _latencies_alone(columns, completed)
    ok = _succeeded(columns)
    ttft = _only(columns.ttft, ok)
    ttft[ttft == 0] = np.nan
    dropped = _drop_first_gaps(columns.gaps, ttft, ok)
    gaps = [each if good else np.empty(0) for each, good in zip(columns.gaps, ok, strict=True)] if columns.gaps else []
    e2e = _only(columns.e2e, ok) if columns.e2e is not None else _summed(ttft, gaps)
    _check_against_duration(e2e, ttft, duration_s)
    pooled = np.concatenate(gaps) if gaps else np.empty(0)
    samples = RequestSamples(
        ok=ok,
        prompt_tokens=_or_unknown(columns.prompt, columns.size),
        output_tokens=_or_unknown(columns.output, columns.size),
        ttft_s=ttft,
        e2e_s=e2e,
        start_s=_from_first(columns.start),
        queue_s=None if columns.server_queue is None else _only(columns.server_queue, ok),
        chunk_gaps_s=np.empty(0) if gaps_are_tokens else pooled,
        chunk_gap_counts=np.empty(0, np.int64) if gaps_are_tokens or not gaps else np.array([each.size for each in gaps], dtype=np.int64),
        errors=columns.errors if any(columns.errors) else (),
    )
    return ArrayReading(
        samples,
        token_gaps_s=pooled if gaps_are_tokens and pooled.size else None,
        empty_outputs=_empty(columns, ok, failed),
        first_gap_is_ttft=dropped,
        client_queue_mean_s=_mean(columns.client_queue, ok),
        client_queue_s=None if columns.client_queue is None else _only(columns.client_queue, ok),
        server_ttft_s=None if columns.server_ttft is None else _only(columns.server_ttft, ok),
    )


def _latencies_alone(columns: _Columns, completed: int | None) -> ArrayReading:
    """Files that keep `latencies` without details: a failed request has latency 0, and nothing else is known of each."""
    unknown = np.full(columns.size, np.nan)
    e2e = unknown if columns.e2e is None else columns.e2e
    ok = e2e > 0
    if completed is not None and int(ok.sum()) != completed:
        return ArrayReading(warnings=(f"latencies left aside: {int(ok.sum())} are above 0 where {completed} requests completed.",))
    samples = RequestSamples(ok, unknown, unknown.copy(), unknown.copy(), np.where(ok, e2e, np.nan))
    waited = None if columns.client_queue is None else _only(columns.client_queue, ok)
    return ArrayReading(samples, client_queue_mean_s=_mean(columns.client_queue, ok), client_queue_s=waited)


def _succeeded(columns: _Columns) -> Flags:
    ok = np.ones(columns.size, dtype=np.bool_)
    if columns.errors:
        ok &= np.array([not error for error in columns.errors], dtype=np.bool_)
    if columns.output is not None:
        ok &= columns.output > 0
    elif not columns.errors and columns.ttft is not None:
        ok &= columns.ttft > 0
    return ok


def _empty(columns: _Columns, ok: Flags, failed: int) -> int:
    if columns.output is None:
        return 0
    silent = columns.output == 0
    if columns.errors:
        return int((silent & np.array([not error for error in columns.errors])).sum())
    # Without error texts the file's own count of failures says how many of them are explained.
    return max(0, int((silent & ~ok).sum()) - failed)


def _only(values: Floats, ok: Flags) -> Floats:
    return np.where(ok, values, np.nan)


def _or_unknown(values: Floats | None, size: int) -> Floats:
    return np.full(size, np.nan) if values is None else values


def _from_first(start: Floats | None) -> Floats | None:
    """Start times counted from the earliest: the client's clock has an origin of its own."""
    if start is None or not np.isfinite(start).any():
        return None
    first: Floats = start - np.nanmin(start)
    return first


def _mean(values: Floats | None, ok: Flags) -> float | None:
    if values is None or not bool((ok & np.isfinite(values)).any()):
        return None
    return float(np.nanmean(values[ok]))


def _summed(ttft: Floats, gaps: list[Floats]) -> Floats:
    """End to end as TTFT plus the gaps, which is how the client counts it; not known without gaps."""
    if not gaps:
        return np.full(ttft.size, np.nan)
    request = np.repeat(np.arange(len(gaps)), [each.size for each in gaps])
    between = np.bincount(request, weights=np.concatenate(gaps), minlength=len(gaps)).astype(np.float64, copy=False)
    return ttft + between


def _drop_first_gaps(gaps: list[Floats], ttft: Floats, ok: Flags) -> bool:
    """Clients of 2024-03 to 2024-08 put TTFT first in the list of gaps: take it out where every request shows it."""
    shown = [(index, each) for index, each in enumerate(gaps) if ok[index] and each.size]
    if len(shown) < 3 or not all(abs(float(each[0]) - float(ttft[index])) <= _SAME_AS_TTFT_S for index, each in shown):
        return False
    for index, each in shown:
        gaps[index] = each[1:]
    return True


def _check_against_duration(e2e: Floats, ttft: Floats, duration_s: float | None) -> None:
    if not duration_s:
        return
    for values, what in ((e2e, "a whole request"), (ttft, "a TTFT")):
        finite = values[np.isfinite(values)]
        if finite.size and float(finite.max()) > duration_s * _LONGER_THAN_RUN + _CLOCK_SLACK_S:
            raise ArrayProblem(f"{what} of {float(finite.max()):.4g} s does not fit into a run of {duration_s:.4g} s")
