"""Posting to a registered place: what is connected to, and what is not, whatever the name or the other side says."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from app.domain.addresses import Destination, parse_destination
from app.security import outbound
from app.security.outbound import post

LOOPBACK = ("127.0.0.0/8",)


class Receiver(BaseHTTPRequestHandler):
    """Notes every request and answers with the status, headers and body that its server was given."""

    def do_POST(self) -> None:
        server: Any = self.server
        body = self.rfile.read(int(self.headers["content-length"]))
        server.seen.append((self.path, dict(self.headers.items()), body))
        self.send_response(server.status)
        for name, value in server.headers_to_send.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"secret answer")

    do_GET = do_POST

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def receiver(status: int = 200, **headers: str) -> Iterator[Any]:
    server: Any = HTTPServer(("127.0.0.1", 0), Receiver)
    server.seen, server.status, server.headers_to_send = [], status, headers
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def to(server: Any, host: str = "127.0.0.1", networks: tuple[str, ...] = LOOPBACK) -> Destination:
    return parse_destination(f"http://{host}:{server.server_address[1]}/hook", networks)


def test_a_body_is_posted_and_the_status_alone_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    with receiver() as server:
        answer = post(to(server), {"X-Phaseline-Event": "ping"}, b'{"a": 1}')
    assert (answer.status, answer.problem) == (200, None)
    ((path, headers, body),) = server.seen
    assert (path, json.loads(body), headers["X-Phaseline-Event"]) == ("/hook", {"a": 1}, "ping")
    assert headers["Host"] == f"127.0.0.1:{server.server_address[1]}"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with receiver() as elsewhere, receiver(status, Location=f"http://127.0.0.1:{elsewhere.server_address[1]}/") as server:
        assert post(to(server), {}, b"{}").status == status
    assert (len(server.seen), elsewhere.seen) == (1, [])


@pytest.mark.parametrize(
    ("answers", "networks", "words"),
    [
        (["169.254.169.254"], ("0.0.0.0/0",), "metadata"),
        (["::ffff:169.254.169.254"], ("0.0.0.0/0", "::/0"), "metadata"),
        (["0.0.0.0"], ("0.0.0.0/0",), "this host"),
        (["127.0.0.1"], (), "no network is allowed"),
        (["10.0.0.7"], (), "no network is allowed"),
        (["::1"], (), "no network is allowed"),
        (["10.0.0.7"], ("192.168.0.0/16",), "in none of the allowed networks"),
        # one good answer does not carry a bad one along
        (["127.0.0.1", "169.254.169.254"], LOOPBACK, "metadata"),
        ([], LOOPBACK, "no address"),
    ],
)
def test_an_address_that_does_not_pass_is_never_connected_to(
    monkeypatch: pytest.MonkeyPatch, answers: list[str], networks: tuple[str, ...], words: str
) -> None:
    def connect(*_: Any, **__: Any) -> None:
        raise AssertionError("connected")

    monkeypatch.setattr(outbound.SyncBackend, "connect_tcp", connect)
    answer = post(parse_destination("http://hook.example/", networks), {}, b"{}", resolve=lambda _host, _port: answers)
    assert answer.status is None
    assert answer.problem is not None
    assert answer.problem.startswith("not connected: ")
    assert words in answer.problem


def test_the_checked_answer_is_connected_to_and_the_name_is_looked_up_once() -> None:
    """A name that answers something else the second time (rebinding) is not asked a second time."""
    asked: list[str] = []

    def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    with receiver() as server:
        assert post(to(server, "rebind.example"), {}, b"{}", resolve=resolve).status == 200
    assert asked == ["rebind.example"]
    assert server.seen[0][1]["Host"] == f"rebind.example:{server.server_address[1]}"


def test_a_name_that_is_not_found_and_a_port_that_is_closed_are_told_in_our_words() -> None:
    def nobody(_host: str, _port: int) -> list[str]:
        raise OSError("no such host")

    assert (
        post(parse_destination("http://nobody.example/"), {}, b"{}", resolve=nobody).problem
        == "not connected: the name cannot be looked up"
    )
    with receiver() as server:
        closed = to(server)
    assert post(closed, {}, b"{}").problem == "the connection failed or was closed"


def test_a_side_that_only_drips_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbound, "_WHOLE_S", 0.3)
    stop = threading.Event()

    class Slow(Receiver):
        def do_POST(self) -> None:
            while not stop.wait(0.05):
                self.wfile.write(b"H")
                self.wfile.flush()

    server: Any = HTTPServer(("127.0.0.1", 0), Slow)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    try:
        assert post(to(server), {}, b"{}").status is None
    finally:
        stop.set()
        thread.join()
        server.server_close()
