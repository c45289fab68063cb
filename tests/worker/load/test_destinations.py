"""Where the load client connects: to the checked address of a registered destination and nowhere else, whatever is tried."""

import asyncio
import socket
from collections.abc import Sequence

import pytest

from app.domain.addresses import ANY_NETWORK, parse_destination
from app.domain.errors import PhaselineError
from app.worker.load.connection import Connection
from app.worker.load.exchange import Exchange
from app.worker.load.link import DestinationRefused, Link, Unreachable, checked_address, connect, look_up
from app.worker.load.loops import ClosedLoop
from app.worker.load.prompts import Prompts
from app.worker.load.request import Asking
from app.worker.load.supply import Supply
from benchmarks.mock_server import Behaviour, MockServer
from tests.worker.load.driving import LOOPBACK, closed, offered, run

# The metadata service, this host and other link-local places, in the spellings by which they were reached elsewhere.
SPELLINGS = [
    "169.254.169.254", "2852039166", "0xA9FEA9FE", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376", "0251.254.0xa9.254", "169.254.43518",
    "169.16689662", "025177524776", "0xa9fea9fe.", "169.254.169.254.", "①⑥⑨.②⑤④.①⑥⑨.②⑤④", "169。254。169。254", "%31%36%39.254.169.254",
    "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[0:0:0:0:0:ffff:a9fe:a9fe]", "[::169.254.169.254]", "[::ffff:0:169.254.169.254]",
    "[64:ff9b::169.254.169.254]", "[64:ff9b:1::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[fe80::1]", "[fe80::1%25lo]", "[fd00:ec2::254]", "[::]",
    "0", "0.0.0.0", "[::ffff:0.0.0.0]", "100.100.100.200", "168.63.129.16", "224.0.0.1", "user@169.254.169.254",
    "allowed.example@169.254.169.254", "169.254.169.254\\@allowed.example", "metadata.example",
]  # fmt: skip


class Spy:
    """Opens nothing, and remembers what it was asked to open."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, address: str, port: int) -> socket.socket:
        self.asked.append((address, port))
        raise ConnectionRefusedError


async def resolver(host: str, port: int) -> Sequence[str]:
    """The system's own reading of a number in any spelling; every name is the metadata service's."""
    try:
        return await asyncio.to_thread(
            lambda: [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)]
        )
    except OSError:
        return ["169.254.169.254"]


def ignore(connection: Connection, exchange: Exchange) -> None:
    """What ends here is of no interest."""


async def attempt(url: str, networks: Sequence[str], spy: Spy) -> None:
    destination = parse_destination(url, networks)
    await Link(destination, await checked_address(destination, resolver), connector=spy).open(ignore)


@pytest.mark.parametrize("networks", [ANY_NETWORK, ("10.0.0.0/8", "169.254.0.0/16", "fe80::/10"), ()])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_a_forbidden_address_opens_a_connection(spelling: str, networks: Sequence[str]) -> None:
    spy = Spy()
    for url in (f"http://{spelling}/", f"https://{spelling}:8443/latest/meta-data"):
        with pytest.raises(PhaselineError) as refused:
            asyncio.run(attempt(url, networks, spy))
        assert not isinstance(refused.value, Unreachable)
    assert spy.asked == []


def test_an_allowed_destination_is_connected_to() -> None:
    """The counterpart: the spy does see connections."""
    spy = Spy()
    with pytest.raises(PhaselineError, match="No connection"):
        asyncio.run(attempt("http://10.1.2.3:8000/", ("10.0.0.0/8",), spy))
    assert spy.asked == [("10.1.2.3", 8000)]


def test_one_forbidden_answer_among_several_refuses_the_name() -> None:
    async def answers(host: str, port: int) -> Sequence[str]:
        return ["10.1.2.3", "169.254.169.254"]

    with pytest.raises(DestinationRefused, match=r"169\.254\.169\.254"):
        asyncio.run(checked_address(parse_destination("http://gpu.example", ("10.0.0.0/8",)), answers))


def test_an_address_that_was_never_checked_is_refused_at_the_connection() -> None:
    spy = Spy()
    link = Link(parse_destination("http://gpu.example", ("10.0.0.0/8",)), "169.254.169.254", connector=spy)
    with pytest.raises(DestinationRefused):
        asyncio.run(link.open(ignore))
    assert spy.asked == []


def test_a_name_that_changes_its_answer_is_measured_at_the_first_one() -> None:
    """The server closes after each answer, so that every request needs a connection: all go to the address that was checked."""
    opened: list[str] = []
    asked: list[str] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    async def noting(address: str, port: int) -> socket.socket:
        opened.append(address)
        return await connect(address, port)

    async def measure() -> int:
        server = MockServer(Behaviour(ttft_s=0.001, itl_s=0.001, close_after=True))
        destination = parse_destination(f"http://gpu.example:{await server.start()}", LOOPBACK)
        link = Link(destination, await checked_address(destination, rebinding), connector=noting)
        loop = ClosedLoop(link, Supply(Prompts(0, 0), Asking(destination, "mock").template(2), 5), 1, 0.0, 4, 5)
        await loop.run()
        server.close()
        return sum(reply.error is None for _, reply in loop.answers.finish())

    assert asyncio.run(measure()) == 4
    assert (asked, set(opened), len(opened)) == (["gpu.example"], {"127.0.0.1"}, 4)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    async def both() -> tuple[list[str | None], int]:
        other = MockServer(Behaviour())
        port = await other.start()
        behaviour = Behaviour(redirect=f"http://127.0.0.1:{port}/v1/chat/completions", redirect_status=status)
        found = await offered(behaviour, closed(1, 3))
        other.close()
        return [reply.error for reply in found.replies], other.connections

    errors, connections = asyncio.run(both())
    assert errors == [f"the server redirects ({status}), which is not followed"] * 3
    assert connections == 0


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.getsockname()[1]}")
        found = run(offered(Behaviour(ttft_s=0.001, itl_s=0.001), closed(1, 2)))
        proxy.setblocking(False)
        with pytest.raises(BlockingIOError):
            proxy.accept()
    assert [reply.error for reply in found.replies] == [None, None]


def test_the_resolver_of_the_system_is_asked_for_addresses() -> None:
    assert set(asyncio.run(look_up("localhost", 80))) <= {"127.0.0.1", "::1"}
