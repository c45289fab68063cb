"""What a deployment answers at rising rates of requests, and up to which rate the means keep a target: for API, command line and page."""

from dataclasses import dataclass, replace
from typing import Any

from app.domain.open_loop import Capacity, capacity
from app.domain.prediction import Request
from app.services.predicting import Question
from app.services.profiles import ProfileBook

SHARES = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True)
class RateRow:
    """One rate: requests a second, its share of the most, requests in flight, mean seconds, and output tokens a second of all requests."""

    per_s: float
    share: float
    in_flight: float
    ttft_s: float
    itl_s: float
    output_tokens_per_s: float


@dataclass(frozen=True)
class Rates:
    """A deployment's capacity with the rows that are shown; `within_per_s` is the most that keeps the target, None where nothing does."""

    capacity: Capacity
    rows: tuple[RateRow, ...]
    devices: int
    ttft_s: float | None
    itl_s: float | None
    within_per_s: float | None


def rates_of(book: ProfileBook, question: Question, ttft_s: float | None = None, itl_s: float | None = None) -> Rates:
    """The rates of a question's deployment; its own clients, batch or rate play no part. Raises what pricing raises."""
    hardware = book.hardware(question.hardware)
    asked = replace(question.request, concurrency=None, batch=1, open_loop=False)
    engine = book.engine_of(asked, hardware)
    found = capacity(book.model(question.model).architecture, hardware, asked, engine)
    rows = tuple(_row(found, share) for share in SHARES)
    return Rates(found, rows, _devices(asked), ttft_s, itl_s, found.within(ttft_s, itl_s))


def _devices(request: Request) -> int:
    return request.tp * request.pp * request.dp


def _row(found: Capacity, share: float) -> RateRow:
    per_s = share * found.at_most_per_s
    flight, ttft, itl = found.at(per_s)
    return RateRow(per_s, share, flight, ttft, itl, per_s * found.request.mean_lengths[1])


def rates_json(found: Rates) -> dict[str, Any]:
    """As JSON-ready data, SI units; `within_target` is null without a bound, its rate null where not even one request keeps it."""
    bounded = found.ttft_s is not None or found.itl_s is not None
    return {
        "at_most_requests_per_s": found.capacity.at_most_per_s,
        "devices": found.devices,
        "rows": [
            {
                "requests_per_s": row.per_s,
                "share": row.share,
                "in_flight": row.in_flight,
                "ttft_s": {"mean": row.ttft_s},
                "itl_s": {"mean": row.itl_s},
                "output_tokens_per_s": row.output_tokens_per_s,
            }
            for row in found.rows
        ],
        "within_target": {"ttft_s": found.ttft_s, "tpot_s": found.itl_s, "requests_per_s": found.within_per_s} if bounded else None,
    }
