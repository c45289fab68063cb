"""How the load of a serving benchmark was offered: the many spellings of "as fast as possible", and the mode that follows."""

from dataclasses import dataclass
from math import isfinite, isnan

from app.domain.run import LoadMode

# Some scripts write a huge rate where the tool would take "inf".
UNLIMITED_RATE = 1e6


@dataclass(frozen=True)
class Load:
    """The offered load. `request_rate_per_s` is None when the rate is unlimited or not known; `mode` is None when it does not follow."""

    request_rate_per_s: float | None
    rate_unlimited: bool
    concurrency: int | None
    mode: LoadMode | None


def offered_load(rate: object, concurrency: int | None) -> Load:
    """Read a request rate ("inf", Infinity, 1e9, 0 and -1 are unlimited, null and "trace" not known) beside a limit of clients.

    closed: a limit is set; single: the limit is 1; open: a rate and no limit; offline: neither.
    """
    value = _rate(rate)
    unlimited = value is not None and (value <= 0 or value >= UNLIMITED_RATE)
    finite = value if value is not None and not unlimited else None
    clients = concurrency or None
    return Load(finite, unlimited, clients, _mode(finite, unlimited, clients))


def _mode(rate: float | None, unlimited: bool, clients: int | None) -> LoadMode | None:
    if clients is not None:
        return "single" if clients == 1 else "closed"
    if rate is not None:
        return "open"
    return "offline" if unlimited else None


def _rate(rate: object) -> float | None:
    if isinstance(rate, str):
        try:
            rate = float(rate.strip())
        except ValueError:
            return None
    if isinstance(rate, bool) or not isinstance(rate, (int, float)):
        return None
    if isinstance(rate, int):
        return float(rate) if abs(rate) < 2**63 else None
    return None if isnan(rate) else rate if isfinite(rate) else (float("inf") if rate > 0 else None)
