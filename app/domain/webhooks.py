"""What a webhook promises: how a delivery is signed, when it is tried again, and when it is given up."""

import hashlib
import hmac

EVENTS = ("regression", "ping")
"""What a target may be told: that a new run is worse than its baseline, and that it is reached at all."""
MOST_ATTEMPTS = 10
FIRST_RETRY_S = 30.0
LONGEST_RETRY_S = 6 * 3600.0
TOLERANCE_S = 300
"""A receiver should refuse a signature older than this: somebody may have recorded it."""


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """The value of the signature header: `t=…,v1=…` with the HMAC-SHA256, in hex, of the timestamp, a full stop and the body."""
    signed = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256)
    return f"t={timestamp},v1={signed.hexdigest()}"


def signed_by(secret: str, header: str, body: bytes, now: int) -> bool:
    """What a receiver does: whether a header was made with this secret for this body, within TOLERANCE_S of `now` (Unix seconds)."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    if not parts.get("t", "").isdigit() or abs(now - int(parts["t"])) > TOLERANCE_S:
        return False
    return hmac.compare_digest(signature(secret, int(parts["t"]), body), header)


def retry_after_s(attempts: int) -> float | None:
    """Seconds to the next attempt after this many; None when it is given up. Doubles from half a minute, never beyond six hours."""
    if attempts >= MOST_ATTEMPTS:
        return None
    return float(min(FIRST_RETRY_S * 2.0 ** (attempts - 1), LONGEST_RETRY_S))
