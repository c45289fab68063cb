"""Posting to a registered place: the name is looked up once, every answer is asked about, and the connection goes to an answer that passed.

No redirect is followed, no proxy of the environment is used, and of the answer the status alone is read: its body never reaches anybody.
"""

import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ssl import SSLContext
from time import monotonic
from typing import Any

import httpcore2
import httpx2
from httpcore2 import NetworkBackend, NetworkStream, SyncBackend

from app.domain.addresses import Destination, all_allowed

_WHOLE_S = 20.0
_STEP_S = 10.0

Resolve = Callable[[str, int], Sequence[str]]


@dataclass(frozen=True)
class Answer:
    """The status of an answer, or None and why there was none: words of ours, never those of the other side."""

    status: int | None
    problem: str | None = None


class _Refused(Exception):
    """The place may not be connected to; the message says why."""


def resolved(host: str, port: int) -> list[str]:
    """Every address of a name, in the order of the resolver."""
    return list(dict.fromkeys(str(answer[4][0]) for answer in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))


def post(to: Destination, headers: dict[str, str], body: bytes, resolve: Resolve = resolved) -> Answer:
    """Send `body` by POST and give the status. Takes at most 20 s, whatever the other side does."""
    backend = _Guarded(to, resolve, monotonic() + _WHOLE_S)
    timeouts = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), _STEP_S)}
    url = f"{to.scheme}://{to.authority}{to.path or '/'}"
    sent = [(name.encode(), value.encode()) for name, value in {"Host": to.authority, "Content-Length": str(len(body)), **headers}.items()]
    try:
        with (
            httpcore2.ConnectionPool(ssl_context=_tls(to), max_connections=1, retries=0, network_backend=backend) as pool,
            pool.stream("POST", url, headers=sent, content=body, extensions=timeouts) as response,
        ):
            return Answer(response.status)
    except _Refused as error:
        return Answer(None, f"not connected: {error}")
    except httpcore2.TimeoutException:
        return Answer(None, "no answer in time")
    except (httpcore2.NetworkError, OSError):
        return Answer(None, "the connection failed or was closed")
    except httpcore2.ProtocolError:
        return Answer(None, "the answer is no HTTP")


def _tls(to: Destination) -> SSLContext | None:
    return httpx2.create_ssl_context(trust_env=False) if to.scheme == "https" else None


class _Guarded(NetworkBackend):
    """Connects to addresses that were asked about, and to nothing else."""

    def __init__(self, to: Destination, resolve: Resolve, deadline: float) -> None:
        self._to, self._resolve, self._deadline, self._direct = to, resolve, deadline, SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> NetworkStream:
        """One look-up, one decision, one connection. Raises _Refused or httpcore2's errors."""
        if (host.strip("[]"), port) != (self._to.host, self._to.port):
            raise _Refused("another place than the registered one was asked for")
        try:
            answers = self._resolve(self._to.host, port)
        except (OSError, UnicodeError) as error:
            raise _Refused("the name cannot be looked up") from error
        reason = all_allowed(answers, self._to.networks)
        if reason is not None:
            raise _Refused(reason)
        return _Timed(self._direct.connect_tcp(answers[0], port, timeout, local_address, socket_options), self._deadline)

    def connect_unix_socket(self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None) -> NetworkStream:
        """Never: a target is a host and a port."""
        raise _Refused("a socket of this machine was asked for")


class _Timed(NetworkStream):
    """A stream with an end: a side that sends a byte now and then is cut off there."""

    def __init__(self, stream: NetworkStream, deadline: float) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """As the stream's, within what is left of the whole."""
        return self._stream.read(max_bytes, self._left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """As the stream's, within what is left of the whole."""
        self._stream.write(buffer, self._left(timeout))

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(self, ssl_context: SSLContext, server_hostname: str | None = None, timeout: float | None = None) -> NetworkStream:
        """The certificate is checked against the registered name, not the address."""
        return _Timed(self._stream.start_tls(ssl_context, server_hostname, self._left(timeout)), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """As the stream's."""
        return self._stream.get_extra_info(info)

    def _left(self, timeout: float | None) -> float:
        left = self._deadline - monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the whole took too long")
        return left if timeout is None else min(timeout, left)
