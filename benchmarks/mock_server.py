"""An OpenAI-compatible server with known times: `python -m benchmarks.mock_server [--port P] [--ttft S] [--itl S] …`.

It says in its own log when each request was there and when each event was written, so that a client's figures can be held against the
truth. asyncio's own loop writes to the socket at once (uvloop would hold writes until the end of the round, and the log would be early);
one timer serves all streams. Requests that come at once are each stamped before any of them is worked on, and a round of the loop does
little work, so that the log has the moment of arrival and not that of the server's leisure. Whatever a client can meet is an option:
several tokens an event, several events a write, thoughts, a chunk that names only the role, refused parameters, errors, cut streams, a
limit of streams at once.
"""

import argparse
import asyncio
import json
import os
import ssl
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from heapq import heappop, heappush
from itertools import count
from time import perf_counter_ns
from typing import Any, cast

import httptools

from benchmarks.mock_metrics import exposition

_NS = 1_000_000_000
# Writes of one round of the loop: what arrives meanwhile is stamped some 0.2 ms late at most.
_WRITES_A_ROUND = 8
_JSON = b"Content-Type: application/json\r\n"
_NOTHING = b'{"error": "nothing here"}'
# What tools ask before they start.
_ALWAYS = {
    "/health": b"{}",
    "/v1/models": b'{"object": "list", "data": [{"id": "mock", "object": "model", "created": 1, "owned_by": "mock"}]}',
}
_EVENTS = b"Content-Type: text/event-stream\r\n"


@dataclass(frozen=True)
class Behaviour:
    """What the server does. Times in seconds.

    A request's first token comes after `ttft_s + per_token_s·n + per_square_s·n²` for a prompt of n tokens, each further one after
    `itl_s + itl_per_token_s·context`. `slots` are streams at once, others wait; `fail_every` and `cut_every` count requests.
    """

    ttft_s: float = 0.05
    itl_s: float = 0.01
    per_token_s: float = 0.0
    per_square_s: float = 0.0
    itl_per_token_s: float = 0.0
    tokens_per_event: int = 1
    events_per_write: int = 1
    role_first: bool = True
    reasoning_tokens: int = 0
    tool_tokens: int = 0
    refuse: tuple[str, ...] = ()
    usage: bool = True
    slots: int = 0
    fail_every: int = 0
    fail_status: int = 500
    cut_every: int = 0
    redirect: str = ""
    redirect_status: int = 307
    content_length: bool = False
    close_after: bool = False
    line_end: str = "\n"
    metrics: bool = True
    cached_share: float = 0.0


@dataclass
class Served:
    """One request as the server saw it: when it was whole, when its first pass began, and when each event was written, in ns."""

    received: int
    started: int = 0
    sends: list[int] = field(default_factory=list)
    prompt_tokens: int = 0
    output_tokens: int = 0
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class MockServer:
    """The server: `start` binds it, `log` is what it served, `bodies` what it was asked, `close` ends it."""

    def __init__(self, behaviour: Behaviour, certificates: ssl.SSLContext | None = None) -> None:
        self.behaviour = behaviour
        self.log: list[Served] = []
        self.bodies: list[dict[str, Any]] = []
        self.connections = 0
        self.port = 0
        self.waiting: deque[_Stream] = deque()
        self.running = 0
        self.clients: set[_Client] = set()
        self._certificates = certificates
        self._server: asyncio.Server | None = None
        self._due: list[tuple[int, int, _Stream]] = []
        self._order = count()
        self._received: deque[Callable[[], None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Bind; the port is returned."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Client(self), host, port, ssl=self._certificates, backlog=4096)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self.port

    def close(self) -> None:
        """Stop listening and end every connection."""
        for client in tuple(self.clients):
            client.cut()
        if self._timer is not None:
            self._timer.cancel()
        if self._server is not None:
            self._server.close()

    def later(self, work: Callable[[], None]) -> None:
        """Work on what was received, one request a round."""
        self._received.append(work)
        if len(self._received) == 1:
            asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        try:
            self._received[0]()
        finally:
            self._received.popleft()
            if self._received:
                asyncio.get_running_loop().call_soon(self._work)

    def admit(self, stream: "_Stream", now: int) -> None:
        """Begin with a stream at a moment, or let it wait for a slot."""
        if self.behaviour.slots and self.running >= self.behaviour.slots:
            self.waiting.append(stream)
            return
        self.running += 1
        stream.begin(now)
        self.at(stream.due, stream)

    def release(self) -> None:
        """A stream has ended: the next one may begin."""
        self.running -= 1
        if self.waiting:
            self.admit(self.waiting.popleft(), perf_counter_ns())

    def at(self, due: int, stream: "_Stream") -> None:
        """Let a stream go on at a moment."""
        heappush(self._due, (due, next(self._order), stream))
        if self._due[0][2] is stream:
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        wait = max(self._due[0][0] - perf_counter_ns(), 0) / _NS
        self._timer = asyncio.get_running_loop().call_later(wait, self._tick)

    def _tick(self) -> None:
        self._timer = None
        for _ in range(_WRITES_A_ROUND):
            if not self._due or self._due[0][0] > perf_counter_ns():
                break
            _, _, stream = heappop(self._due)
            stream.go_on()
        if self._due and self._timer is None:
            self._arm()


class _Stream:
    """One answer on its way."""

    def __init__(self, client: "_Client", served: Served, asked: Mapping[str, Any], chat: bool) -> None:
        self.client, self.served, self.chat = client, served, chat
        self.due = 0
        self._server, self._asked = client.server, asked
        options = asked.get("stream_options") or {}
        self._continuous = bool(options.get("continuous_usage_stats"))
        self._usage = bool(options.get("include_usage")) and self._server.behaviour.usage
        self._total = int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 16)
        self._made = 0
        self._held: list[bytes] = []
        served.output_tokens = self._total

    def begin(self, now: int) -> None:
        """The first pass begins: head out, first token due."""
        how, prompt = self._server.behaviour, self.served.prompt_tokens
        self.served.started = now
        computed = prompt * (1 - how.cached_share)
        self.due = now + round((how.ttft_s + how.per_token_s * computed + how.per_square_s * computed * computed) * _NS)
        self.client.head(how.content_length)
        if self.chat and how.role_first:
            self.client.piece(self._event({"role": "assistant", "content": ""}, 0, None))

    def go_on(self) -> None:
        """Write the tokens that are due, or end."""
        how, client = self._server.behaviour, self.client
        if client.gone:
            self._server.release()
            return
        per_write = max(how.events_per_write, 1)
        self.served.sends.append(perf_counter_ns())
        events: list[bytes] = []
        while len(events) < per_write and self._made < self._total:
            tokens = min(how.tokens_per_event, self._total - self._made)
            self._made += tokens
            events.append(self._event(self._delta(tokens), self._made, "length" if self._made == self._total else None))
        client.piece(b"".join(events))
        if how.cut_every and len(self._server.log) % how.cut_every == 0 and self._made * 2 >= self._total:
            client.cut()
            self._server.release()
        elif self._made < self._total:
            step = how.itl_s + how.itl_per_token_s * (self.served.prompt_tokens + self._made)
            self.due += round(step * per_write * how.tokens_per_event * _NS)
            self._server.at(self.due, self)
        else:
            self._end()

    def _end(self) -> None:
        if self._usage:
            self.client.piece(self._frame({"choices": [], "usage": self._counts(self._made)}))
        end = self._server.behaviour.line_end
        self.client.piece(f"data: [DONE]{end}{end}".encode())
        self.client.end()
        self._server.release()

    def _delta(self, tokens: int) -> dict[str, Any]:
        how = self._server.behaviour
        words = " word" * tokens
        if not self.chat:
            return {"text": words}
        if self._made <= how.reasoning_tokens:
            return {"reasoning_content": words}
        if self._made <= how.reasoning_tokens + how.tool_tokens:
            return {"tool_calls": [{"index": 0, "function": {"arguments": words}}]}
        return {"content": words}

    def _event(self, delta: dict[str, Any], made: int, finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta} if self.chat else {"index": 0, **delta}
        event: dict[str, Any] = {"choices": [{**choice, "logprobs": None, "finish_reason": finish}]}
        if self._usage and self._continuous:
            event["usage"] = self._counts(made)
        return self._frame(event)

    def _frame(self, event: dict[str, Any]) -> bytes:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        whole = {"id": "mock-1", "object": kind, "created": 1, "model": "mock", **event}
        end = self._server.behaviour.line_end
        return f"data: {json.dumps(whole)}{end}{end}".encode()

    def _counts(self, made: int) -> dict[str, Any]:
        prompt = self.served.prompt_tokens
        cached = round(prompt * self._server.behaviour.cached_share)
        details = {"prompt_tokens_details": {"cached_tokens": cached}} if cached else {}
        return {"prompt_tokens": prompt, "completion_tokens": made, "total_tokens": prompt + made, **details}


class _Client(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, server: MockServer) -> None:
        self.server = server
        self.gone = False
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._path, self._body = b"", bytearray()
        self._headers: dict[str, str] = {}
        self._whole: list[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.server.connections += 1
        self.server.clients.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True
        self.server.clients.discard(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.cut()

    def on_message_begin(self) -> None:
        self._path, self._body, self._headers = b"", bytearray(), {}

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode().lower()] = value.decode()

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        path = self._path.decode()
        if self._parser.get_method() == b"GET":
            self._read(path)
            return
        if not path.endswith("/completions"):
            self._answer(404, _NOTHING)
            return
        served = Served(perf_counter_ns(), headers=self._headers)
        self.server.log.append(served)
        self.server.later(partial(self._serve, served, len(self.server.log), path, bytes(self._body)))

    def _serve(self, served: Served, number: int, path: str, body: bytes) -> None:
        server = self.server
        how = server.behaviour
        asked = json.loads(body or b"{}")
        server.bodies.append(asked)
        if how.redirect:
            served.status = how.redirect_status
            self._answer(how.redirect_status, b"", f"Location: {how.redirect}\r\n".encode())
        elif refused := next((name for name in how.refuse if name in asked or name in (asked.get("stream_options") or {})), None):
            served.status = 422
            self._answer(422, json.dumps({"detail": f"unknown field: {refused}", "seen": self._headers}).encode())
        elif how.fail_every and number % how.fail_every == 0:
            served.status = how.fail_status
            self._answer(how.fail_status, json.dumps({"error": "made to fail", "seen": self._headers}).encode())
        else:
            chat = path.endswith("/chat/completions")
            text = _said(asked["messages"][0]["content"]) if chat else asked["prompt"]
            served.prompt_tokens = len(text.split()) + (4 if chat else 0)
            server.admit(_Stream(self, served, asked, chat), served.received)

    def _read(self, path: str) -> None:
        if path == "/log":
            self._answer(200, json.dumps([asdict(served) for served in self.server.log]).encode())
        elif path == "/forget":
            self.server.log.clear()
            self.server.bodies.clear()
            self._answer(200, b"{}")
        elif path == "/metrics" and self.server.behaviour.metrics:
            self._answer(
                200, exposition(self.server.log, self.server.behaviour.cached_share).encode(), kind=b"Content-Type: text/plain\r\n"
            )
        elif path in _ALWAYS:
            self._answer(200, _ALWAYS[path])
        else:
            self._answer(404, _NOTHING)

    def _answer(self, status: int, body: bytes, more: bytes = b"", kind: bytes = _JSON) -> None:
        self._write(b"HTTP/1.1 %d Said\r\n%s%sContent-Length: %d\r\n\r\n%s" % (status, kind, more, len(body), body))

    def head(self, in_one_piece: bool) -> None:
        """The head of a stream, or nothing yet where its length must be known first."""
        closing = b"Connection: close\r\n" if self.server.behaviour.close_after else b""
        self._whole = [] if in_one_piece else None
        if not in_one_piece:
            self._write(b"HTTP/1.1 200 OK\r\n%s%sTransfer-Encoding: chunked\r\n\r\n" % (_EVENTS, closing))

    def piece(self, data: bytes) -> None:
        """A part of the body."""
        if self._whole is not None:
            self._whole.append(data)
        else:
            self._write(b"%x\r\n%s\r\n" % (len(data), data))

    def end(self) -> None:
        """The end of the body."""
        if self._whole is not None:
            body, self._whole = b"".join(self._whole), None
            self._write(b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n%s" % (_EVENTS, len(body), body))
        else:
            self._write(b"0\r\n\r\n")
        if self.server.behaviour.close_after and self._transport is not None:
            self._transport.close()

    def cut(self) -> None:
        """End the connection in the middle."""
        if self._transport is not None:
            self._transport.abort()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self.gone:
            self._transport.write(data)


def _said(content: str | list[dict[str, str]]) -> str:
    """The text of a message, which may come in parts."""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


def main(arguments: Sequence[str]) -> int:
    """Serve until standard input closes or the process is ended; the first line printed is the port."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mock_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--core", type=int, help="run on this core alone")
    for option in fields(Behaviour):
        name = f"--{option.name.replace('_', '-').removesuffix('-s')}"
        if isinstance(option.default, bool):
            parser.add_argument(name, dest=option.name, action=argparse.BooleanOptionalAction, default=option.default)
        elif isinstance(option.default, tuple):
            parser.add_argument(name, dest=option.name, nargs="*", default=option.default)
        else:
            parser.add_argument(name, dest=option.name, type=type(option.default), default=option.default)
    options = vars(parser.parse_args(arguments))
    port, core = options.pop("port"), options.pop("core")
    if core is not None:
        os.sched_setaffinity(0, {core})
    options["refuse"] = tuple(options["refuse"])
    asyncio.run(_serve(Behaviour(**options), port))
    return 0


async def _serve(behaviour: Behaviour, port: int) -> None:
    server = MockServer(behaviour)
    print(await server.start(port=port), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
