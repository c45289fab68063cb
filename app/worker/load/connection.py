"""One keep-alive connection: a request out, the pieces of its answer in, each stamped at the read.

The stamp is taken before anything else is done with the bytes; what they mean is read later. (uvloop's own clock has steps of a
millisecond, so it is never asked.) On a plain connection the request goes straight to the socket: uvloop would hold it until every
other callback of the round has run, and the stamp of sending would be too early.
"""

import asyncio
import socket
from collections.abc import Callable
from time import perf_counter_ns
from typing import cast

import httptools

from app.worker.load.exchange import Exchange

_REDIRECTS = range(300, 400)
LARGEST_ANSWER = 64 * 1024 * 1024
CLOSED_EARLY = "the connection was closed before the answer was whole"


class Connection(asyncio.Protocol):
    """`finished(connection, exchange)` is called once for each request that was sent, whether it succeeded or not."""

    def __init__(self, finished: "Callable[[Connection, Exchange], None]", plain_socket: socket.socket | None) -> None:
        self._finished = finished
        self._socket = plain_socket
        self._transport: asyncio.Transport | None = None
        self._exchange: Exchange | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._now = 0
        self._size = 0
        self._delimited = False
        self._reusable = True
        self.answered = 0

    @property
    def open(self) -> bool:
        """Whether another request can be sent on it."""
        return self._transport is not None and self._reusable and not self._transport.is_closing()

    @property
    def idle(self) -> bool:
        """Whether no request is on its way."""
        return self._exchange is None

    def send(self, exchange: Exchange) -> None:
        """Write a request; `exchange.sent` is the moment just before."""
        transport = self._transport
        assert transport is not None
        self._exchange = exchange
        self._size, self._delimited = 0, False
        exchange.sent = perf_counter_ns()
        data = exchange.data
        if self._socket is not None and transport.get_write_buffer_size() == 0:
            try:
                data = data[self._socket.send(data) :]
            except (BlockingIOError, InterruptedError):
                pass
            except OSError:
                self._end(perf_counter_ns(), CLOSED_EARLY)
                return
        if data:
            transport.write(data)

    def abandon(self, exchange: Exchange, reason: str) -> None:
        """Give a request up if it is still on its way, and the connection with it."""
        if self._exchange is exchange:
            self._end(perf_counter_ns(), reason)

    def close(self) -> None:
        """Close the connection."""
        self._reusable = False
        if self._transport is not None:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The transport is there; uvloop's is none of asyncio's classes."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Stamp, then take apart."""
        now = perf_counter_ns()
        self._now = now
        if self._exchange is None:
            self.close()  # an answer that nobody asked for
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._end(now, "the answer is no HTTP/1.1")

    def connection_lost(self, exc: Exception | None) -> None:
        """An answer without a length ends with its connection; any other was cut off."""
        self._reusable = False
        if self._exchange is not None:
            whole = exc is None and self._exchange.status and not self._delimited
            self._end(perf_counter_ns(), None if whole else CLOSED_EARLY)

    # httptools

    def on_header(self, name: bytes, value: bytes) -> None:
        """What delimits the body, and whether it can be read at all."""
        lower = name.lower()
        if lower in (b"content-length", b"transfer-encoding"):
            self._delimited = True
        elif lower == b"content-encoding" and value.strip().lower() not in (b"", b"identity") and self._exchange is not None:
            self._exchange.error = "the answer is compressed although that was not asked for"

    def on_headers_complete(self) -> None:
        """The status is known."""
        if self._exchange is not None:
            self._exchange.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """A piece of the body, with the moment of its read."""
        exchange = self._exchange
        if exchange is None:
            return
        exchange.stamps.append(self._now)
        exchange.pieces.append(body)
        self._size += len(body)
        if self._size > LARGEST_ANSWER:
            self._end(self._now, f"the answer is larger than {LARGEST_ANSWER // 2**20} MiB")

    def on_message_complete(self) -> None:
        """The answer is whole."""
        exchange = self._exchange
        if exchange is None or exchange.status in range(100, 200):
            return
        if not self._parser.should_keep_alive() or not self._delimited:
            self._reusable = False
        self._end(self._now, None)

    def _end(self, now: int, error: str | None) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        exchange.ended = now
        exchange.error = exchange.error or error
        if error is not None:
            self.close()
        elif not self._reusable and self._transport is not None:
            self._transport.close()
        self.answered += 1
        self._finished(self, exchange)


def refused_status(status: int) -> str | None:
    """What an answer's status says in words, None for 200: redirects are never followed."""
    if status == 200:
        return None
    if status in _REDIRECTS:
        return f"the server redirects ({status}), which is not followed"
    return f"the server answers {status}"
