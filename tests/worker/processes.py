"""A server and agents as processes of their own, for tests that kill them."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
AGENT = Path(__file__).with_name("agent_process.py")


def eventually(what: Callable[[], Any], within_s: float = 30.0, every_s: float = 0.05) -> Any:
    """The first true answer of `what`; fails when none comes in time."""
    until = time.monotonic() + within_s
    while not (found := what()):
        assert time.monotonic() < until, f"not within {within_s} s"
        time.sleep(every_s)
    return found


class Site:
    """One server, always at the same port with the same data, and agents by device."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder, self.port = folder, free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PHASELINE_")}
        ours = {"DATA_DIR": str(folder / "data"), "LOCAL_WORKER": "0", "PORT": str(self.port), **settings}
        self.environment = {**kept, "PYTHONPATH": str(ROOT), **{f"PHASELINE_{key}": value for key, value in ours.items()}}
        self.server: subprocess.Popen[bytes] | None = None
        self.agents: dict[str, subprocess.Popen[bytes]] = {}

    def start_server(self) -> None:
        with (self.folder / "server.log").open("ab") as log:
            argv = [sys.executable, "-m", "app", "serve"]
            self.server = subprocess.Popen(argv, cwd=self.folder, env=self.environment, stdout=log, stderr=log)
        eventually(lambda: self.get("/readyz", ok=(200,)), 60)

    def start_agent(self, key: str = "cpu-a", *rest: str) -> subprocess.Popen[bytes]:
        # The device's name holds the port: agents of one machine lock devices by name, and tests run side by side.
        with (self.folder / f"{key}.log").open("ab") as log:
            argv = [sys.executable, str(AGENT), self.address, str(self.folder / key), f"{key}-{self.port}", *rest]
            self.agents[key] = subprocess.Popen(argv, cwd=self.folder, env=self.environment, stdout=log, stderr=log)
        return self.agents[key]

    def start_worker(self, server: str, **settings: str) -> subprocess.Popen[bytes]:
        """The agent as it is shipped, with the measuring process that it is shipped with; it works in `worker` and logs to `worker.log`."""
        told = {"WORKER_DIR": str(self.folder / "worker"), **settings}
        # Its own temporary folder: agents of one machine lock devices there, and tests run side by side.
        ours = {**{f"PHASELINE_{key}": value for key, value in told.items()}, "TMPDIR": str(self.folder)}
        with (self.folder / "worker.log").open("ab") as log:
            argv = [sys.executable, "-m", "app", "worker", "--server", server]
            process = subprocess.Popen(argv, cwd=self.folder, env={**self.environment, **ours}, stdout=log, stderr=log)
        self.agents["worker"] = process
        return process

    def stop(self, key: str) -> None:
        """End an agent as a person would, and wait until it is gone."""
        self.agents[key].send_signal(signal.SIGTERM)
        self.agents[key].wait(15)

    def kill(self, process: subprocess.Popen[bytes] | None) -> None:
        assert process is not None
        process.send_signal(signal.SIGKILL)
        process.wait(10)

    def close(self) -> None:
        for process in (*self.agents.values(), self.server):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait(10)

    def get(self, path: str, ok: tuple[int, ...] = (200,)) -> Any:
        """The JSON at a path; None while the server does not answer so."""
        return self._ask(urllib.request.Request(self.address + path), ok)

    def post(self, path: str, body: dict[str, Any], ok: tuple[int, ...] = (200, 201)) -> Any:
        data, headers = json.dumps(body).encode(), {"content-type": "application/json"}
        return self._ask(urllib.request.Request(f"{self.address}/api/v1{path}", data, headers, method="POST"), ok)

    def _ask(self, request: urllib.request.Request, ok: tuple[int, ...]) -> Any:
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.loads(answer.read()) if answer.status in ok else None
        except (OSError, urllib.error.URLError, ValueError):
            return None

    def ask_for(self, seed: int, seconds: float = 0.1, **changes: Any) -> int:
        """A job of the stand-in; its number."""
        parameters = {"seed": seed, "seconds_per_shape": seconds}
        made = eventually(lambda: self.post("/jobs", {"kind": "device_microbench", "parameters": parameters, **changes}))
        return int(made["id"])

    def job(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = eventually(lambda: self.get(f"/api/v1/jobs/{number}"))
        return found

    def until(self, number: int, *states: str, within_s: float = 30.0) -> dict[str, Any]:
        """The job, once it is in one of these states."""
        found: dict[str, Any] = eventually(lambda: job if (job := self.job(number))["state"] in states else None, within_s)
        return found

    def log(self, number: int) -> str:
        with urllib.request.urlopen(f"{self.address}/api/v1/jobs/{number}/log", timeout=10) as answer:
            return str(answer.read().decode())
