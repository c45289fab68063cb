"""The mock server's log is what clients are held against: what it stamps must be the moment of arrival."""

import asyncio
import socket

from benchmarks.mock_server import Behaviour, MockServer

BODY = b'{"prompt": "a b", "max_tokens": 1}'
REQUEST = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)


class Noting(MockServer):
    """Notes how many requests were stamped when the first was worked on, and what each was promised."""

    stamped_before_work: int | None = None

    def admit(self, stream: object, now: int) -> None:
        if self.stamped_before_work is None:
            self.stamped_before_work = len(self.log)
        super().admit(stream, now)  # type: ignore[arg-type]


async def _burst(count: int) -> Noting:
    server = Noting(Behaviour(ttft_s=0.0))
    port = await server.start()
    loop = asyncio.get_running_loop()
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    while server.connections < count:
        await asyncio.sleep(0)
    # No await in between: all are there when the server looks again.
    for one in sockets:
        one.sendall(REQUEST)
    while len(server.log) < count or not all(served.sends for served in server.log):
        await asyncio.sleep(0)
    for one in sockets:
        one.setblocking(False)
        assert (await loop.sock_recv(one, 65536)).startswith(b"HTTP/1.1 200")
        one.close()
    server.close()
    return server


def test_requests_that_come_at_once_are_stamped_before_any_is_worked_on() -> None:
    server = asyncio.run(_burst(20))
    assert server.stamped_before_work == 20
    assert all(served.started == served.received for served in server.log)


async def _asked(request: bytes) -> tuple[bytes, int]:
    server = MockServer(Behaviour())
    reader, writer = await asyncio.open_connection("127.0.0.1", await server.start())
    writer.write(request)
    answer = await reader.readuntil(b"\r\n")
    writer.close()
    await writer.wait_closed()
    server.close()
    return answer, len(server.log)


def test_what_is_no_completion_is_not_found_and_not_in_the_log() -> None:
    answer, logged = asyncio.run(_asked(REQUEST.replace(b"/v1/completions", b"/v1/embeddings")))
    assert answer.startswith(b"HTTP/1.1 404")
    assert logged == 0
