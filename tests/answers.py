"""What every answer of the API must be, checked in one place."""

import json
from typing import Any

from httpx2 import Response

API = "/api/v1"


def strict(answer: Response) -> Any:
    """The answer's JSON. Fails on NaN, Infinity and text that UTF-8 cannot carry."""
    return json.loads(answer.content.decode("utf-8"), parse_constant=_refuse)


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} in an answer")


def ok(answer: Response, status: int = 200) -> Any:
    """The JSON of an answer that must have this status."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    return strict(answer)


def problem(answer: Response, status: int, *words: str, hidden: tuple[str, ...] = ()) -> dict[str, Any]:
    """The body of a problem answer (RFC 9457) of this status, whose detail is a sentence with these words and echoes none of `hidden`."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = strict(answer)
    assert body["type"] == "about:blank"
    assert body["status"] == status
    assert body["title"]
    assert "\n" not in body["detail"]
    assert body["detail"].endswith((".", "?"))
    for word in words:
        assert word in body["detail"]
    for text in hidden:
        assert text not in answer.text
    found: dict[str, Any] = body
    return found
