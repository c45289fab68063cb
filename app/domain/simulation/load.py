"""What is sent to a served model: how many requests, when, how long each is; drawn from a seed where it is random."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.domain.errors import InvalidRequest

MOST_REQUESTS = 100_000
MOST_TOKENS = 20_000_000
Floats = npt.NDArray[np.float64]
Wholes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ServedLoad:
    """Requests of `prompt_tokens` and `output_tokens`, sent in one of three ways.

    A closed loop: `clients` that each send their next request when the last is answered, `requests_per_client` in all. An open loop:
    `request_rate_per_s` with exponential gaps, `requests` of them. A trace: the moments `sent_s`, seconds from the start, in order.
    Lengths are drawn evenly between `shortest_length` and 1 of the given ones (1: all equal). A share `cached_share` of the requests,
    drawn too, finds `cached_prefix_tokens` of its prompt in the cache.
    """

    prompt_tokens: int
    output_tokens: int
    clients: int | None = None
    requests_per_client: int = 10
    request_rate_per_s: float | None = None
    requests: int = 300
    sent_s: tuple[float, ...] | None = None
    shortest_length: float = 1.0
    cached_prefix_tokens: int = 0
    cached_share: float = 1.0
    seed: int = 0

    @property
    def total(self) -> int:
        """Requests sent in all."""
        if self.clients is not None:
            return self.clients * self.requests_per_client
        return self.requests if self.sent_s is None else len(self.sent_s)


@dataclass(frozen=True, eq=False)
class Sending:
    """Every request in the order of sending. `sent_s` is all 0 for a closed loop, whose moments follow from the answers."""

    sent_s: Floats
    prompt: Wholes
    output: Wholes
    cached: Wholes


def sending(load: ServedLoad) -> Sending:
    """The requests of a load, the same for the same seed. Raises InvalidRequest, with the field, for what cannot be sent."""
    _check(load)
    random = np.random.default_rng(load.seed)
    total = load.total
    sent = np.zeros(total)
    if load.sent_s is not None:
        sent = np.asarray(load.sent_s, dtype=np.float64)
    elif load.request_rate_per_s is not None:
        sent = np.cumsum(random.exponential(1.0 / load.request_rate_per_s, total))
        sent -= sent[0]
    prompt = _lengths(load.prompt_tokens, load.shortest_length, total, random)
    output = _lengths(load.output_tokens, load.shortest_length, total, random)
    cached = np.zeros(total, dtype=np.int64)
    if load.cached_prefix_tokens:
        # At least one token of a prompt is computed.
        hit = random.random(total) < load.cached_share
        cached[hit] = np.minimum(load.cached_prefix_tokens, prompt - 1)[hit]
    return Sending(sent, prompt, output, cached)


def _lengths(longest: int, shortest_length: float, total: int, random: np.random.Generator) -> Wholes:
    if shortest_length >= 1.0:
        return np.full(total, longest, dtype=np.int64)
    return random.integers(max(1, math.ceil(shortest_length * longest)), longest, total, endpoint=True)


def _check(load: ServedLoad) -> None:
    ways = [load.clients is not None, load.request_rate_per_s is not None, load.sent_s is not None]
    if sum(ways) != 1:
        raise InvalidRequest("arrivals", "Say how requests arrive in one way: clients, a rate, or the moments of a trace.")
    for field, low in (("prompt_tokens", 1), ("output_tokens", 1), ("clients", 1), ("requests_per_client", 1), ("requests", 1)):
        value = getattr(load, field)
        if value is not None and value < low:
            raise InvalidRequest(field, f"{field} is {value}; give {low} or more.")
    if load.request_rate_per_s is not None and not 1e-6 <= load.request_rate_per_s <= 1e6:
        raise InvalidRequest("request_rate_per_s", f"request_rate_per_s is {load.request_rate_per_s:g}; give 0.000001 to 1,000,000.")
    for field in ("shortest_length", "cached_share"):
        value = getattr(load, field)
        if not 0.0 <= value <= 1.0 or (field == "shortest_length" and value == 0.0):
            raise InvalidRequest(field, f"{field} is {value:g}; give a fraction up to 1.")
    _check_trace(load.sent_s)
    if not 1 <= load.total <= MOST_REQUESTS:
        raise InvalidRequest("requests", f"This load has {load.total:,} requests; a simulation takes 1 to {MOST_REQUESTS:,}.")
    if load.total * load.output_tokens > MOST_TOKENS:
        made = load.total * load.output_tokens
        raise InvalidRequest("requests", f"This load has {made:,} output tokens; a simulation takes {MOST_TOKENS:,}. Send fewer requests.")


def _check_trace(sent_s: tuple[float, ...] | None) -> None:
    before = 0.0
    for place, moment in enumerate(sent_s or ()):
        if not math.isfinite(moment) or moment < before:
            raise InvalidRequest("sent_s", f"sent_s[{place}] is {moment:g}; give seconds from the start, none before the one ahead of it.")
        before = moment
