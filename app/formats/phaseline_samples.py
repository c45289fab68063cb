"""Raw samples of our own documents: passes of repeats, or columns of requests, as the columns of RequestSamples."""

from math import fsum

import numpy as np

from app.domain.errors import ImportRefused
from app.domain.run import Floats, RequestSamples
from app.domain.text import clean_text, duration
from app.formats.record import LARGEST_INTEGER, ArrayProblem, Record, floats

_MOST_STEPS = 10_000_000
_OPTIONAL = ("start_s", "queue_s", "scheduled_s", "ttft_answer_s", "cached_tokens", "chunks")


def passes_of(passes: Record, prompt_tokens: float | None) -> RequestSamples:
    """One row a repeat: its prompt pass as TTFT, its steps as the gaps after it. Raises ImportRefused for lists that do not fit."""
    prefill = _column(passes, "prefill_s")
    steps = [_list(item, f"{passes.path('steps_s')}[{index}]") for index, item in enumerate(passes.sequence("steps_s") or ())]
    if prefill is None or prefill.size == 0 or len(steps) not in (0, prefill.size):
        raise ImportRefused(f"{passes.path('prefill_s')} and steps_s must have one entry for each repeat, at least one.")
    steps = steps or [np.empty(0)] * prefill.size
    counts = np.array([each.size for each in steps], dtype=np.int64)
    if counts.sum() > _MOST_STEPS:
        raise ImportRefused(f"{passes.path('steps_s')} holds {int(counts.sum()):,} steps, more than {_MOST_STEPS:,}.")
    tokens = (counts + 1).astype(np.float64)
    ok = np.isfinite(prefill) & (prefill > 0) & np.array([bool(np.isfinite(each).all()) for each in steps])
    return RequestSamples(
        ok=ok,
        prompt_tokens=np.full(prefill.size, np.nan if prompt_tokens is None else prompt_tokens),
        output_tokens=tokens,
        ttft_s=prefill,
        e2e_s=prefill + np.array([fsum(each) for each in steps]),
        chunk_gaps_s=np.concatenate(steps),
        chunk_gap_counts=counts,
        chunks=tokens,
    )


def first_of(passes: Record) -> str | None:
    """The repeat that is kept apart, in words; None when there is none."""
    first = passes.child("first")
    try:
        prefill, steps = _column(first, "prefill_s"), first.sequence("steps_s") or []
        step = _list(steps[0], first.path("steps_s")) if steps else np.empty(0)
    except ImportRefused:
        return None
    if prefill is None or not prefill.size or not np.isfinite(prefill[0]):
        return None
    words = f"its prompt pass took {duration(float(prefill[0]))}"
    known = step[np.isfinite(step)]
    return f"{words}, its median decode step {duration(float(np.median(known)))}" if known.size else words


def requests_of(record: Record) -> RequestSamples:
    """The columns of requests. Raises ImportRefused when they are not of one length or a needed one is missing."""
    ok = record.sequence("ok")
    if not ok or not all(isinstance(item, bool) for item in ok):
        raise ImportRefused(f"{record.path('ok')} must be a list of true and false, one for each request, at least one.")
    needed = {key: _column(record, key) for key in ("prompt_tokens", "output_tokens", "ttft_s", "e2e_s")}
    optional = {key: column for key in _OPTIONAL if (column := _column(record, key)) is not None}
    for key, column in {**needed, **optional}.items():
        if column is None or column.size != len(ok):
            raise ImportRefused(f"{record.path(key)} must have one entry for each of the {len(ok)} requests.")
    gaps, counts = _gaps(record, len(ok))
    errors = record.sequence("errors") or []
    return RequestSamples(
        ok=np.array(ok, dtype=np.bool_),
        **needed,  # type: ignore[arg-type]
        **optional,
        chunk_gaps_s=gaps,
        chunk_gap_counts=counts,
        errors=tuple(clean_text(item, 400) if isinstance(item, str) else "" for item in errors[: len(ok)]),
    )


def _gaps(record: Record, size: int) -> tuple[Floats, "np.typing.NDArray[np.int64]"]:
    gaps = _column(record, "chunk_gaps_s")
    counts = record.sequence("chunk_gap_counts")
    if gaps is None and counts is None:
        return np.empty(0), np.zeros(size, dtype=np.int64)
    whole = counts is not None and all(
        isinstance(item, int) and not isinstance(item, bool) and 0 <= item <= LARGEST_INTEGER for item in counts
    )
    if gaps is None or counts is None or not whole or len(counts) != size or sum(int(str(item)) for item in counts) != gaps.size:
        raise ImportRefused(f"{record.path('chunk_gap_counts')} must say for each request how many of chunk_gaps_s are its own.")
    return gaps, np.array(counts, dtype=np.int64)


def _column(record: Record, key: str) -> Floats | None:
    values = record.sequence(key)
    return None if values is None else _list(values, record.path(key))


def _list(values: object, where: str) -> Floats:
    if not isinstance(values, list):
        raise ImportRefused(f"{where} must be a list of seconds or counts.")
    try:
        return floats(values, where)
    except ArrayProblem as problem:
        raise ImportRefused(f"{problem}.") from problem
