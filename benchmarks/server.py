"""A real `phaseline serve` on a free loopback port, and a browser's view of how long its pages take. Linux alone: it reads /proc."""

import ctypes
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from app.settings import Settings

ROOT = Path(__file__).resolve().parents[1]
_PATIENCE_S = 60.0
_POLL_S = 0.005
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


class ServerFailed(Exception):
    """The server did not start, or answered a page with something else than 200."""


@dataclass(frozen=True)
class Timings:
    """How long each request of one address took, sent to last byte, and the server's own processor time for all of them, in seconds."""

    seconds: tuple[float, ...]
    cpu_s: float
    body_bytes: int


@dataclass
class Server:
    """A running server. `ready_s` is from the start of the process to its first 200 on /readyz, `ready_cpu_s` its processor time then."""

    process: subprocess.Popen[bytes]
    port: int
    ready_s: float
    ready_cpu_s: float = field(init=False)
    connection: http.client.HTTPConnection = field(init=False)

    def __post_init__(self) -> None:
        self.ready_cpu_s = self.cpu_s()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S)

    def get(self, address: str, headers: Mapping[str, str] | None = None) -> bytes:
        """The page at `address`, over one connection that is kept. Raises ServerFailed unless it is a 200."""
        return self._answer("GET", address, None, {"Accept": "text/html", **(headers or {})})

    def _answer(self, method: str, address: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        self.connection.request(method, address, body, dict(headers))
        answer = self.connection.getresponse()
        found = answer.read()
        if answer.status != 200:
            raise ServerFailed(f"{method} {address} answered {answer.status}: {found[:300].decode(errors='replace')}")
        return found

    def time(self, addresses: Sequence[str]) -> Timings:
        """Get each address once, one after another."""
        return self._timed([partial(self.get, address) for address in addresses])

    def time_posts(self, address: str, body: object, times: int) -> Timings:
        """Post the same JSON a number of times, one after another."""
        ask = partial(self._answer, "POST", address, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return self._timed([ask] * times)

    def _timed(self, requests: Sequence[Callable[[], bytes]]) -> Timings:
        taken: list[float] = []
        size = 0
        before = self.cpu_s()
        for request in requests:
            start = time.perf_counter()
            size += len(request())
            taken.append(time.perf_counter() - start)
        return Timings(tuple(taken), self.cpu_s() - before, size)

    def cpu_s(self) -> float:
        """Processor time that the process has used so far, in user and system mode."""
        # The name in parentheses may hold spaces, so fields are counted from behind it: utime and stime are the 14th and 15th.
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def memory_bytes(self, name: str = "VmRSS") -> int:
        """Memory of the process by its line in /proc: VmRSS now, VmHWM the most so far."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def settings_in(folder: Path) -> Settings:
    """Settings of an installation on SQLite in `folder`, whatever the user's own are."""
    return Settings(_env_file=None, data_dir=folder, database_url=None, database_url_file=None, root_path="")


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """`phaseline serve` on the data in `folder` until the block ends. Raises ServerFailed when it does not get ready."""
    port = _free_port()
    log = folder / "server.log"
    start = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "app", "serve"],
            cwd=folder,
            env=_environment(folder, port),
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=_end_with_parent,
        )
    try:
        _wait_until_ready(process, port, log)
        server = Server(process, port, time.perf_counter() - start)
        with closing(server.connection):
            yield server
    finally:
        _stop(process)


def _environment(folder: Path, port: int) -> dict[str, str]:
    """The user's environment without Phaseline's settings; the folder is also the working one, so that no .env file is found.

    The first start may write bytecode, as an installation does and the image has it: the median is of starts that find it.
    """
    dropped = ("PHASELINE_", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    ours = {"PHASELINE_DATA_DIR": str(folder), "PHASELINE_HOST": "127.0.0.1", "PHASELINE_PORT": str(port), "PHASELINE_LOCAL_WORKER": "0"}
    return {**kept, **ours, "PYTHONPATH": str(ROOT)}


def _end_with_parent() -> None:
    """In the new process: ask the system to end it when the benchmark is killed and cannot do so itself."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not _ready(port):
        if process.poll() is not None:
            raise ServerFailed(f"the server ended with {process.returncode}: {log.read_text(errors='replace')[-2000:]}")
        if time.monotonic() > deadline:
            raise ServerFailed(f"the server was not ready after {_PATIENCE_S:.0f} s: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(_POLL_S)


def _ready(port: int) -> bool:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)) as connection:
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except OSError:
            return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End this process and no other, kindly first."""
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
