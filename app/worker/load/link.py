"""The way to a destination: its name resolved once, every answer checked, connections opened to a checked address only.

No redirect is followed, no proxy of the environment is asked, and the name is never looked up again: a second answer of its DNS server
reaches nothing.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.domain.addresses import Destination, all_allowed, refusal
from app.domain.errors import PhaselineError
from app.worker.load.connection import Connection
from app.worker.load.exchange import Exchange

LookUp = Callable[[str, int], Awaitable[Sequence[str]]]
Connect = Callable[[str, int], Awaitable[socket.socket]]
_CONNECT_S = 10.0


class DestinationRefused(PhaselineError):
    """No connection is opened there: the message says why, and what to register instead."""


class Unreachable(PhaselineError):
    """Nothing answers at a destination that is allowed."""


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, in the resolver's order."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def connect(address: str, port: int) -> socket.socket:
    """A connected TCP socket without delay of small writes. `address` is an address, never a name."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.wait_for(asyncio.get_running_loop().sock_connect(opened, (address, port)), _CONNECT_S)
    except BaseException:
        opened.close()
        raise
    return opened


async def checked_address(destination: Destination, resolve: LookUp = look_up) -> str:
    """The address that a destination is measured at. Raises DestinationRefused where any answer is not allowed, Unreachable without one."""
    try:
        answers = await resolve(destination.host, destination.port)
    except OSError as error:
        raise Unreachable(f"The name {destination.host} cannot be resolved on this machine: {error.strerror or error}.") from error
    if (reason := all_allowed(answers, destination.networks)) is not None:
        raise DestinationRefused(
            f"{destination.host} is not measured: {reason}. If this server is meant, let an administrator register it with its network."
        )
    return answers[0]


@dataclass(frozen=True)
class Way:
    """What another process needs for a link of its own: destination, checked address, and a file of certificates that vouch for it."""

    destination: Destination
    address: str
    authority: Path | None = None


class Link:
    """Connections to one checked address. Every one of them calls `finished(connection, exchange)` for each request sent."""

    def __init__(self, destination: Destination, address: str, authority: Path | None = None, connector: Connect = connect) -> None:
        self.way = Way(destination, address, authority)
        self._destination = destination
        self._address = address
        self._certificates = ssl.create_default_context(cafile=authority) if destination.scheme == "https" else None
        self._connector = connector

    @classmethod
    def along(cls, way: Way) -> "Link":
        """A link as another process had it."""
        return cls(way.destination, way.address, way.authority)

    async def open(self, finished: Callable[[Connection, Exchange], None]) -> Connection:
        """A connection that is ready to send. Raises Unreachable, and DestinationRefused where the address is not allowed."""
        # Asked again here, so that no caller can hand in an address that was never checked.
        if (reason := refusal(self._address, self._destination.networks)) is not None:
            raise DestinationRefused(f"{self._destination.host} is not measured: {reason}.")
        where = f"{self._destination.host} port {self._destination.port}"
        try:
            opened = await self._connector(self._address, self._destination.port)
            loop = asyncio.get_running_loop()
            secure = self._certificates is not None
            _, connection = await loop.create_connection(
                lambda: Connection(finished, None if secure else opened),
                sock=opened,
                ssl=self._certificates,
                server_hostname=self._destination.host if secure else None,
            )
        except TimeoutError as error:
            raise Unreachable(f"Nothing answers at {where} within {_CONNECT_S:g} s.") from error
        except ssl.SSLCertVerificationError as error:
            raise Unreachable(
                f"The certificate of {where} is not trusted ({error.verify_message}): name its authority with --ca, or on the target."
            ) from error
        except (OSError, ssl.SSLError) as error:
            raise Unreachable(f"No connection to {where}: {error.strerror or type(error).__name__}.") from error
        return connection
