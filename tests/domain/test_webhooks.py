"""How a delivery is signed and when it is tried again, by hand."""

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.webhooks import LONGEST_RETRY_S, MOST_ATTEMPTS, retry_after_s, signature, signed_by

SECRET, BODY, AT = "phs_secret", b'{"event": "ping"}', 1_790_000_000


def test_a_signature_is_what_any_receiver_can_make() -> None:
    by_hand = hmac.new(b"phs_secret", b'1790000000.{"event": "ping"}', hashlib.sha256).hexdigest()
    assert signature(SECRET, AT, BODY) == f"t=1790000000,v1={by_hand}"


@pytest.mark.parametrize(
    ("secret", "header", "body", "now", "right"),
    [
        (SECRET, signature(SECRET, AT, BODY), BODY, AT, True),
        (SECRET, signature(SECRET, AT, BODY), BODY, AT + 300, True),
        (SECRET, signature(SECRET, AT, BODY), BODY, AT + 301, False),
        (SECRET, signature(SECRET, AT, BODY), BODY, AT - 301, False),
        (SECRET, signature(SECRET, AT, BODY), BODY + b" ", AT, False),
        ("phs_other", signature(SECRET, AT, BODY), BODY, AT, False),
        (SECRET, signature(SECRET, AT, BODY).replace(f"t={AT}", f"t={AT + 1}"), BODY, AT, False),
        (SECRET, "", BODY, AT, False),
        (SECRET, "t=x,v1=y", BODY, AT, False),
    ],
)
def test_a_receiver_tells_right_from_wrong_and_old(secret: str, header: str, body: bytes, now: int, right: bool) -> None:
    assert signed_by(secret, header, body, now) is right


@given(st.text(min_size=1), st.integers(0, 2**40), st.binary(max_size=200))
def test_what_is_signed_is_recognised(secret: str, at: int, body: bytes) -> None:
    secret = secret.encode("utf-8", "ignore").decode()
    assert signed_by(secret, signature(secret, at, body), body, at)


def test_attempts_come_further_apart_and_end() -> None:
    waits = [retry_after_s(attempts) for attempts in range(1, MOST_ATTEMPTS + 1)]
    assert waits == [30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3840.0, 7680.0, None]
    assert all(wait is None or wait <= LONGEST_RETRY_S for wait in waits)
