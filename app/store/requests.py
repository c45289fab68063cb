"""Per-request samples of a run: encoded for storing, read back whole, by page, or as histograms."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import zstandard
from sqlalchemy import select
from sqlmodel import Session, col

from app.domain.run import RequestSamples
from app.store import samples as codec
from app.store.histogram import Histogram
from app.store.records import RequestPage, RequestRecord
from app.store.tables import RequestSamplesRow, SampleChunkRow, SampleHistogramRow
from app.store.types import is_id, storable_text

Floats = npt.NDArray[np.float64]

MAX_PAGE = 500
GAPS = "chunk_gaps_s"
# Each column of samples and what its unit is divided into; all but the gaps hold one value a request.
_SCALES: Mapping[str, float] = {
    "ok": codec.WHOLE,
    "prompt_tokens": codec.WHOLE,
    "output_tokens": codec.WHOLE,
    "ttft_s": codec.MICROSECONDS,
    "e2e_s": codec.MICROSECONDS,
    "start_s": codec.MICROSECONDS,
    "queue_s": codec.MICROSECONDS,
    "scheduled_s": codec.MICROSECONDS,
    "ttft_answer_s": codec.MICROSECONDS,
    "cached_tokens": codec.WHOLE,
    "chunks": codec.WHOLE,
    "chunk_gap_counts": codec.WHOLE,
    GAPS: codec.MICROSECONDS,
}


@dataclass(frozen=True)
class SampleRows:
    """The encoded samples of one run, ready to insert."""

    head: Mapping[str, Any]
    chunks: tuple[Mapping[str, Any], ...]
    histograms: tuple[Mapping[str, Any], ...]


def to_sample_rows(samples: RequestSamples | None) -> SampleRows | None:
    """Encode samples; None when there are none."""
    if samples is None:
        return None
    errors = json.dumps([storable_text(error) for error in samples.errors]).encode()
    return SampleRows(
        head={"size": samples.size, "gap_count": int(samples.chunk_gaps_s.size), "errors": zstandard.ZstdCompressor().compress(errors)},
        chunks=tuple(row for name, scale in _SCALES.items() for row in _chunk_rows(name, getattr(samples, name), scale)),
        histograms=tuple(
            {"key": key, "data": histogram.to_bytes()}
            for key, values in metric_values(samples).items()
            if (histogram := Histogram.of(values)) is not None
        ),
    )


def metric_values(samples: RequestSamples) -> dict[str, Floats]:
    """The values of each metric over the requests that succeeded, in seconds.

    TPOT is (end to end - TTFT) / (output tokens - 1) of one request, undefined below two tokens. Gaps count for successful requests
    alone where it is known which request they belong to.
    """
    ok = samples.ok
    later_tokens = samples.output_tokens[ok] - 1
    spread = later_tokens >= 1
    values = {
        "ttft_s": samples.ttft_s[ok],
        "e2e_s": samples.e2e_s[ok],
        "tpot_s": (samples.e2e_s[ok] - samples.ttft_s[ok])[spread] / later_tokens[spread],
        "chunk_gap_s": _successful_gaps(samples),
    }
    if samples.queue_s is not None:
        values["queue_s"] = samples.queue_s[ok]
    return values


def load(session: Session, run_id: int) -> RequestSamples | None:
    """All samples of a run, times to the microsecond; None when it has none."""
    head = _head(session, run_id)
    if head is None:
        return None
    columns = _columns(session, run_id, tuple(_SCALES), None)
    empty = np.empty(0)
    return RequestSamples(
        ok=columns.get("ok", empty) == 1,
        prompt_tokens=columns.get("prompt_tokens", empty),
        output_tokens=columns.get("output_tokens", empty),
        ttft_s=columns.get("ttft_s", empty),
        e2e_s=columns.get("e2e_s", empty),
        start_s=columns.get("start_s"),
        queue_s=columns.get("queue_s"),
        scheduled_s=columns.get("scheduled_s"),
        ttft_answer_s=columns.get("ttft_answer_s"),
        cached_tokens=columns.get("cached_tokens"),
        chunks=columns.get("chunks"),
        chunk_gaps_s=columns.get(GAPS, empty),
        chunk_gap_counts=columns.get("chunk_gap_counts", empty).astype(np.int64),
        errors=_errors(head),
    )


def page(session: Session, run_id: int, start: int = 0, limit: int = 100) -> RequestPage | None:
    """Up to `limit` (at most MAX_PAGE) requests from index `start` on; None when the run has no samples.

    Decodes only the stretch or two of each column that the page lies in.
    """
    head = _head(session, run_id)
    if head is None:
        return None
    start = max(start, 0)
    stop = min(start + min(max(limit, 1), MAX_PAGE), head.size)
    if start >= head.size:
        return RequestPage((), head.size, None)
    first = start // codec.STRETCH
    names = tuple(name for name in _SCALES if name != GAPS)
    columns = _columns(session, run_id, names, range(first, (stop - 1) // codec.STRETCH + 1))
    offset = first * codec.STRETCH
    errors = _errors(head)
    records = [_record(columns, index, index - offset, errors if len(errors) == head.size else ()) for index in range(start, stop)]
    return RequestPage(tuple(records), head.size, stop if stop < head.size else None)


def histograms(session: Session, run_id: int) -> dict[str, Histogram]:
    """The stored histograms of a run by metric key; empty when it has no samples."""
    if not is_id(run_id):
        return {}
    statement = select(col(SampleHistogramRow.key), col(SampleHistogramRow.data)).where(col(SampleHistogramRow.run_id) == run_id)
    return {key: Histogram.from_bytes(data) for key, data in session.execute(statement)}


def _chunk_rows(name: str, values: npt.NDArray[Any] | None, scale: float) -> list[dict[str, Any]]:
    if values is None:
        return []
    stretches = codec.stretches(values.astype(np.float64))
    return [{"name": name, "position": position, "data": codec.encode(part, scale)} for position, part in enumerate(stretches)]


def _successful_gaps(samples: RequestSamples) -> Floats:
    counts = samples.chunk_gap_counts
    if counts.size != samples.size or int(counts.sum()) != samples.chunk_gaps_s.size:
        return samples.chunk_gaps_s
    return samples.chunk_gaps_s[np.repeat(samples.ok, counts)]


def _head(session: Session, run_id: int) -> RequestSamplesRow | None:
    return session.get(RequestSamplesRow, run_id) if is_id(run_id) else None


def _errors(head: RequestSamplesRow) -> tuple[str, ...]:
    return tuple(json.loads(zstandard.ZstdDecompressor().decompress(head.errors)))


def _columns(session: Session, run_id: int, names: tuple[str, ...], positions: range | None) -> dict[str, Floats]:
    """The named columns, whole or the stretches at `positions`; a column that was not stored is left out."""
    statement = (
        select(col(SampleChunkRow.name), col(SampleChunkRow.data))
        .where(col(SampleChunkRow.run_id) == run_id, col(SampleChunkRow.name).in_(names))
        .order_by(col(SampleChunkRow.name), col(SampleChunkRow.position))
    )
    if positions is not None:
        statement = statement.where(col(SampleChunkRow.position).between(positions.start, positions.stop - 1))
    parts: dict[str, list[Floats]] = {}
    for name, data in session.execute(statement):
        parts.setdefault(name, []).append(codec.decode(data, _SCALES[name]))
    return {name: np.concatenate(found) for name, found in parts.items()}


def _record(columns: Mapping[str, Floats], index: int, position: int, errors: tuple[str, ...]) -> RequestRecord:
    def value(name: str) -> float | None:
        column = columns.get(name)
        if column is None or position >= column.size or np.isnan(column[position]):
            return None
        return float(column[position])

    gaps = value("chunk_gap_counts")
    return RequestRecord(
        index=index,
        ok=value("ok") == 1,
        prompt_tokens=value("prompt_tokens"),
        output_tokens=value("output_tokens"),
        ttft_s=value("ttft_s"),
        e2e_s=value("e2e_s"),
        start_s=value("start_s"),
        queue_s=value("queue_s"),
        chunk_gaps=None if gaps is None else int(gaps),
        error=errors[index] or None if errors else None,
    )
