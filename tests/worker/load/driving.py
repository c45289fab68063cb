"""A mock server and a load against it, both in one loop of this process."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import uvloop

from app.domain.addresses import parse_destination
from app.worker.load.events import Reply
from app.worker.load.exchange import Exchange
from app.worker.load.link import Link, checked_address
from app.worker.load.loops import ClosedLoop, OpenLoop
from app.worker.load.prompts import Prompts
from app.worker.load.request import Api, Asking
from app.worker.load.supply import Supply
from benchmarks.mock_server import Behaviour, MockServer

LOOPBACK = ("127.0.0.0/8", "::1/128")
QUICK = Behaviour(ttft_s=0.01, itl_s=0.002)
Load = Callable[[Link, Supply], ClosedLoop | OpenLoop]


@dataclass(frozen=True)
class Outcome:
    """What a load gave: the pairs in the order of their ends, the server with its log, and the loop itself."""

    pairs: list[tuple[Exchange, Reply]]
    server: MockServer
    loop: ClosedLoop | OpenLoop

    @property
    def replies(self) -> list[Reply]:
        return [reply for _, reply in self.pairs]


def run(coroutine: Awaitable[Outcome], on_uvloop: bool = True) -> Outcome:
    """Run to the end within 30 s, on uvloop as the commands do or on asyncio's own loop."""

    async def limited() -> Outcome:
        return await asyncio.wait_for(coroutine, 30)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop if on_uvloop else None) as runner:
        return runner.run(limited())


async def offered(
    behaviour: Behaviour,
    load: Load,
    api: Api = "chat",
    output_tokens: int = 5,
    secured: ssl.SSLContext | None = None,
    authority: Path | None = None,
) -> Outcome:
    """A load of requests of ten words against a mock with `behaviour`; `secured` is its TLS, `authority` whom the client trusts."""
    server = MockServer(behaviour, secured)
    port = await server.start()
    destination = parse_destination(f"{'https' if secured else 'http'}://127.0.0.1:{port}", LOOPBACK)
    link = Link(destination, await checked_address(destination), authority)
    supply = Supply(Prompts(0, 0), Asking(destination, "mock", api).template(output_tokens), 10)
    loop = load(link, supply)
    try:
        await loop.run()
    finally:
        server.close()
    return Outcome(loop.answers.finish(), server, loop)


def closed(clients: int, requests: int, timeout_s: float = 20.0, duration_s: float = 0.0) -> Load:
    """A closed loop."""
    return lambda link, supply: ClosedLoop(link, supply, clients, duration_s, requests, timeout_s)
