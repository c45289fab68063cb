"""What a deployment answers at rising rates of requests, and up to which rate a target is kept: for API and page."""

from dataclasses import dataclass, replace
from typing import Any

from app.domain.errors import InvalidRequest
from app.domain.open_loop import Capacity, capacity
from app.domain.prediction import Request
from app.domain.simulation import MOST_TOKENS, ServedLoad, Simulator, Target
from app.services.predicting import Question
from app.services.profiles import ProfileBook

SHARES = (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95)
REQUESTS = 500  # simulated at each rate that is tried: five of them are one per cent
_HALVINGS = 7  # the rate found lies within a hundredth of the most below the true one
TRIES = _HALVINGS + 3  # rates that are simulated to find one
_LITTLE = 0.01  # of the most: what does not keep the target here keeps it nowhere


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
    """A deployment's capacity with the rows that are shown.

    `within_per_s` is the most that keeps the target on average, `share_per_s` the most at which the share `share` of simulated requests
    does, each for itself; None where nothing does, or where nobody asked.
    """

    capacity: Capacity
    rows: tuple[RateRow, ...]
    devices: int
    target: Target
    within_per_s: float | None
    share: float | None = None
    share_per_s: float | None = None


def rates_of(book: ProfileBook, question: Question, target: Target | None = None, share: float | None = None) -> Rates:
    """The rates of a question's deployment; its own clients, batch or rate play no part. Raises what pricing and simulating raise."""
    hardware, model = book.hardware(question.hardware), book.model(question.model)
    asked = replace(question.request, concurrency=None, batch=1, open_loop=False)
    engine, bound = book.engine_of(asked, hardware), target or Target()
    found = capacity(model.architecture, hardware, asked, engine)
    rows = tuple(_row(found, part) for part in SHARES)
    within = found.within(bound.ttft_s, bound.tpot_s)
    answer = Rates(found, rows, asked.tp * asked.pp * asked.dp, bound, within, share)
    if share is None or bound == Target():
        return answer
    if REQUESTS * asked.output_tokens > MOST_TOKENS:
        raise InvalidRequest(
            "share",
            f"{REQUESTS} answers of {asked.output_tokens:,} tokens are more than a simulation takes: leave share out for the means.",
        )
    simulator = Simulator.of(model.architecture, hardware, asked, engine=engine)
    return replace(answer, share_per_s=_most(simulator, asked, bound, share, (within, found.at_most_per_s)))


def _row(found: Capacity, share: float) -> RateRow:
    per_s = share * found.at_most_per_s
    flight, ttft, itl = found.at(per_s)
    return RateRow(per_s, share, flight, ttft, itl, per_s * found.request.mean_lengths[1])


def _most(simulator: Simulator, asked: Request, target: Target, share: float, tops: tuple[float | None, float]) -> float | None:
    """The most requests a second at which so many of the simulated ones keep every bound, by halving what lies between.

    `tops`: where the means still keep it, which is mostly above the answer and quicker to simulate, and the most that is answered.
    """

    def kept(per_s: float) -> bool:
        load = ServedLoad(
            asked.prompt_tokens,
            asked.output_tokens,
            request_rate_per_s=per_s,
            requests=REQUESTS,
            shortest_length=asked.shortest_length,
            cached_prefix_tokens=asked.cached_prefix_tokens,
        )
        return simulator.run(load).goodput(target).share >= share

    low = high = _LITTLE * tops[1]
    if not kept(low):
        return None
    for top in tops:
        if top is not None and low < top:
            high = top
            if not kept(top):
                break
            low = top
    if low == high:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low


def rates_json(found: Rates) -> dict[str, Any]:
    """As JSON-ready data, SI units; `within_target` is null without a bound, a rate in it null where not even one request keeps it."""
    target = found.target
    within = {
        "ttft_s": target.ttft_s,
        "tpot_s": target.tpot_s,
        "requests_per_s": found.within_per_s,
        "share": found.share,
        "share_requests_per_s": found.share_per_s,
    }
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
        "within_target": None if target == Target() else within,
    }
