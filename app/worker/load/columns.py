"""Answers of a point as columns: seconds from the point's start, one row a request in the order of sending."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.run import Floats, RequestSamples
from app.worker.load.events import Reply
from app.worker.load.exchange import Exchange

_S = 1e-9
Pairs = Sequence[tuple[Exchange, Reply]]


@dataclass(frozen=True)
class Columns:
    """The samples of a run, when its last answer ended, and what the client did to them."""

    samples: RequestSamples
    ended_s: float
    events: int
    coalesced: int
    resent: int
    dispatch_s: Floats


def columns(pairs: Pairs, started: int, from_schedule: bool) -> Columns:
    """Columns of the answers, `started` (ns) being 0. `from_schedule` keeps when each was due: in an open loop that is a figure."""
    ordered = sorted(pairs, key=lambda pair: pair[0].sent)
    sent = _column([exchange.sent for exchange, _ in ordered], started)
    due = _column([exchange.scheduled for exchange, _ in ordered], started)
    good = [reply.error is None for _, reply in ordered]
    gaps = [
        np.diff(np.array(reply.stamps, dtype=np.int64)) * _S if ok else np.empty(0) for (_, reply), ok in zip(ordered, good, strict=True)
    ]
    samples = RequestSamples(
        ok=np.array(good, dtype=np.bool_),
        prompt_tokens=_known([reply.prompt_tokens for _, reply in ordered]),
        output_tokens=_known([reply.output_tokens for _, reply in ordered]),
        ttft_s=_since([reply.stamps[0] if reply.stamps else None for _, reply in ordered], sent, started, good),
        e2e_s=_since([reply.stamps[-1] if reply.stamps else None for _, reply in ordered], sent, started, good),
        start_s=sent,
        chunk_gaps_s=np.concatenate(gaps) if gaps else np.empty(0),
        chunk_gap_counts=np.array([each.size for each in gaps], dtype=np.int64),
        errors=tuple(reply.error or "" for _, reply in ordered) if not all(good) else (),
        scheduled_s=due if from_schedule else None,
        ttft_answer_s=_answers(ordered, sent, started, good),
        cached_tokens=_or_none(_known([reply.cached_tokens for _, reply in ordered])),
        chunks=np.array([float(len(reply.stamps)) if ok else np.nan for (_, reply), ok in zip(ordered, good, strict=True)]),
    )
    return Columns(
        samples,
        max((exchange.ended - started) * _S for exchange, _ in ordered) if ordered else 0.0,
        sum(reply.events for _, reply in ordered),
        sum(reply.coalesced for _, reply in ordered),
        sum(exchange.resent for exchange, _ in ordered),
        sent - due,
    )


def joined_columns(parts: Sequence[Columns]) -> Columns:
    """Columns of loads that began at one moment, as those of one load: rows in the order of sending. At least one part."""
    samples = [part.samples for part in parts]
    order = np.argsort(np.concatenate([_known_or_nan(each, each.start_s) for each in samples]), kind="stable")
    gaps = [gap for each in samples for gap in np.split(each.chunk_gaps_s, np.cumsum(each.chunk_gap_counts)[:-1])]
    ordered = [gaps[place] for place in order]

    def column(name: str) -> Floats:
        values: Floats = np.concatenate([_known_or_nan(each, getattr(each, name)) for each in samples])[order]
        return values

    def optional(name: str) -> Floats | None:
        return None if all(getattr(each, name) is None for each in samples) else column(name)

    errors = [error for each in samples for error in (each.errors or ("",) * each.size)]
    answers = [each.ttft_s if each.ttft_answer_s is None else each.ttft_answer_s for each in samples]
    joined = RequestSamples(
        ok=np.concatenate([each.ok for each in samples])[order],
        prompt_tokens=column("prompt_tokens"),
        output_tokens=column("output_tokens"),
        ttft_s=column("ttft_s"),
        e2e_s=column("e2e_s"),
        start_s=column("start_s"),
        chunk_gaps_s=np.concatenate(ordered) if ordered else np.empty(0),
        chunk_gap_counts=np.array([each.size for each in ordered], dtype=np.int64),
        errors=tuple(errors[place] for place in order) if any(errors) else (),
        scheduled_s=optional("scheduled_s"),
        ttft_answer_s=None if all(each.ttft_answer_s is None for each in samples) else np.concatenate(answers)[order],
        cached_tokens=optional("cached_tokens"),
        chunks=optional("chunks"),
    )
    return Columns(
        joined,
        max(part.ended_s for part in parts),
        sum(part.events for part in parts),
        sum(part.coalesced for part in parts),
        sum(part.resent for part in parts),
        np.concatenate([part.dispatch_s for part in parts])[order],
    )


def _known_or_nan(samples: RequestSamples, values: Floats | None) -> Floats:
    return np.full(samples.size, np.nan) if values is None else values


def _column(moments: Sequence[int], started: int) -> Floats:
    # Whole nanoseconds are subtracted before they become doubles, which could not hold them.
    return (np.array(moments, dtype=np.int64) - started).astype(np.float64) * _S


def _since(moments: Sequence[int | None], sent: Floats, started: int, good: Sequence[bool]) -> Floats:
    ends = [np.nan if moment is None or not ok else (moment - started) * _S for moment, ok in zip(moments, good, strict=True)]
    return np.array(ends, dtype=np.float64) - sent


def _answers(ordered: Pairs, sent: Floats, started: int, good: Sequence[bool]) -> Floats | None:
    """When the answer began, where thoughts came before it; None where it is the first token everywhere."""
    if all(reply.answer is None or not reply.stamps or reply.answer == reply.stamps[0] for _, reply in ordered):
        return None
    return _since([reply.answer for _, reply in ordered], sent, started, good)


def _known(counts: Sequence[int | None]) -> Floats:
    return np.array([np.nan if count is None else float(count) for count in counts], dtype=np.float64)


def _or_none(values: Floats) -> Floats | None:
    return values if np.isfinite(values).any() else None
