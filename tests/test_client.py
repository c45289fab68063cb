"""The client of /api/v1: what it sends, and every way in which a server can answer."""

from collections.abc import Callable

import httpx2
import pytest

from app.client import Client, ServerError
from app.domain.errors import ImportRefused

Answer = Callable[[httpx2.Request], httpx2.Response]


def client(answer: Answer, token: str | None = None) -> Client:
    return Client("http://phaseline.example/", token, transport=httpx2.MockTransport(answer))


def test_an_upload_is_one_raw_body_with_its_words_in_the_query() -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(201, json={"runs": [{"id": 1}], "refused": [], "warnings": ["w"]})

    stored = client(answer, "phw_secret").upload("r&x.json", b"{}", {"tags": "a,b"})
    assert (stored.runs, stored.warnings) == (({"id": 1},), ("w",))
    (request,) = seen
    assert (request.method, request.url.path) == ("POST", "/api/v1/runs")
    assert dict(request.url.params) == {"name": "r&x.json", "tags": "a,b"}
    assert request.content == b"{}"
    assert request.headers["authorization"] == "Bearer phw_secret"
    assert "origin" not in request.headers


def test_a_refused_file_is_told_apart_from_a_server_that_fails() -> None:
    refusal = {"detail": "r.json: no.", "refused": [{"file": "r.json", "reason": "no.", "tried": []}]}
    with pytest.raises(ImportRefused, match=r"^r\.json: no\.$"):
        client(lambda _: httpx2.Response(422, json=refusal)).upload("r.json", b"{}", {})
    with pytest.raises(ServerError, match=r"^No room\.$"):
        client(lambda _: httpx2.Response(507, json={"detail": "No room."})).upload("r.json", b"{}", {})


@pytest.mark.parametrize(
    "answer", [httpx2.Response(200, text="<html>Sign in"), httpx2.Response(502, text="Bad gateway"), httpx2.Response(200, content=b"\xff")]
)
def test_an_answer_that_is_no_json_is_a_sentence(answer: httpx2.Response) -> None:
    with pytest.raises(ServerError, match="is it Phaseline"):
        client(lambda _: answer).upload("r.json", b"{}", {})


@pytest.mark.parametrize("answer", [httpx2.Response(200, json={}), httpx2.Response(200, json=[]), httpx2.Response(201, json={"runs": 1})])
def test_json_of_another_service_is_a_sentence(answer: httpx2.Response) -> None:
    with pytest.raises(ServerError, match="is it Phaseline"):
        client(lambda _: answer).upload("r.json", b"{}", {})


def test_a_server_that_cannot_be_reached_is_a_sentence() -> None:
    def fail(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    with pytest.raises(ServerError, match="cannot be reached: refused"):
        client(fail).upload("r.json", b"{}", {})


@pytest.mark.parametrize("server", ["", "phaseline.example", "ftp://phaseline.example", "http://", "http://[", "http://a:b"])
def test_an_address_that_is_none_is_a_sentence(server: str) -> None:
    with pytest.raises(ServerError):
        Client(server).upload("r.json", b"{}", {})
