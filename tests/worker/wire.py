"""A wire between two programs that keeps a copy of what both say: bytes in, the same bytes out."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Wire:
    """Listens on a port of its own and passes everything on to `port` of this machine.

    `said` is what came from those who connected, `heard` what they were answered.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._said: list[bytes] = []
        self._heard: list[bytes] = []
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def said(self) -> bytes:
        return b"".join(self._said)

    @property
    def heard(self) -> bytes:
        return b"".join(self._heard)

    def close(self) -> None:
        # Only a shutdown wakes a thread that waits in accept.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                near.close()
                continue
            for source, sink, kept in ((near, far, self._said), (far, near, self._heard)):
                threading.Thread(target=self._pass_on, args=(source, sink, kept), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, kept: list[bytes]) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                kept.append(data)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()


@contextmanager
def wire_to(port: int) -> Iterator[Wire]:
    """A wire until the block ends."""
    made = Wire(port)
    try:
        yield made
    finally:
        made.close()
