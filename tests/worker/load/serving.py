"""A mock server in a thread of its own, for what runs the client as its users do."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.mock_server import Behaviour, MockServer


@contextmanager
def served(behaviour: Behaviour) -> Iterator[MockServer]:
    """A server that answers until the block ends."""
    loop = asyncio.new_event_loop()
    server = MockServer(behaviour)
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(closed(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


async def closed(server: MockServer) -> None:
    """Close, and let the transports end in the rounds after."""
    server.close()
    for _ in range(3):
        await asyncio.sleep(0)
