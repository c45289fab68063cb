"""The worker that a server starts beside itself, so that a newcomer can measure at once; it ends with the server, however that ends."""

import os
import subprocess
import sys
import threading
from typing import IO

import structlog

_STOP_S = 15.0
_PAUSE_S = (1.0, 60.0)

log = structlog.get_logger()


class LocalWorker:
    """Starts `phaseline worker` for the server at `address`, and anew when it ends by itself."""

    def __init__(self, address: str, token: str) -> None:
        self._environment = {**os.environ, "PHASELINE_WORKER_TOKEN": token}
        self._environment.pop("PHASELINE_WORKER_TOKEN_FILE", None)
        self._argv = [sys.executable, "-m", "app", "worker", "--server", address, "--until-stdin-ends"]
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def start(self) -> None:
        """Start it and watch over it."""
        self._thread.start()

    def stop(self) -> None:
        """End it: it gives back the job it has."""
        self._stopping.set()
        with self._lock:
            process = self._process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join(timeout=_STOP_S)

    def _keep(self) -> None:
        pause_s = _PAUSE_S[0]
        while not self._stopping.is_set():
            with self._lock:
                if self._stopping.is_set():
                    return
                # Its lines go to standard error: standard output is the server's.
                self._process = subprocess.Popen(self._argv, env=self._environment, stdin=subprocess.PIPE, stdout=sys.stderr)  # noqa: S603
            code = self._process.wait()
            _close(self._process.stdin)
            if self._stopping.is_set():
                return
            log.warning("the worker beside this server ended and is started anew", status=code)
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S[1])


def _close(stream: IO[bytes] | None) -> None:
    if stream is not None:
        stream.close()
