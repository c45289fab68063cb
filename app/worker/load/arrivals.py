"""When requests of an open loop are due: Poisson arrivals, or a trace somebody recorded. Seconds from the start, in order."""

from collections.abc import Sequence

import numpy as np

from app.domain.errors import InvalidRequest

MOST_ARRIVALS = 1_000_000


def poisson(rate_per_s: float, duration_s: float, requests: int, seed: int, stream: int) -> tuple[float, ...]:
    """Arrivals with exponential gaps of mean 1 / rate: all within `duration_s`, and at least `requests` of them.

    Raises InvalidRequest (field `rates_per_s`) for more than can be kept in one point.
    """
    expected = rate_per_s * duration_s
    if max(expected, requests) > MOST_ARRIVALS:
        raise InvalidRequest("rates_per_s", f"{expected:,.0f} requests in one point are more than {MOST_ARRIVALS:,}: shorten the duration.")
    random = np.random.default_rng((seed, stream))
    most = max(requests, round(expected + 8 * expected**0.5) + 16)
    times = np.cumsum(random.exponential(1.0 / rate_per_s, most))
    count = max(int(np.searchsorted(times, duration_s)), requests)
    return tuple(times[:count].tolist())


def trace(arrivals_s: Sequence[float]) -> tuple[float, ...]:
    """A recorded schedule, moved to start at 0. Raises InvalidRequest (field `arrivals_s`) where times run backwards."""
    times = np.array(arrivals_s, dtype=np.float64)
    if times.size == 0 or not np.isfinite(times).all() or (np.diff(times) < 0).any() or times.size > MOST_ARRIVALS:
        raise InvalidRequest("arrivals_s", f"Arrivals must be seconds in ascending order, 1 to {MOST_ARRIVALS:,} of them.")
    return tuple((times - times[0]).tolist())
