"""A measuring process and all its descendants: started in a group of its own, heard line by line, ended for certain."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.paths import ROOT
from app.worker import guard
from app.worker.scratch import MARK, end_processes_of

# What a measuring process may see of the agent's environment; neither keys nor settings.
_PASSED = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE")
_PASSED_STARTS = ("CUDA_", "NVIDIA_", "PHASELINE_LLAMA_")
_TAIL_BYTES = 8_000
_LINE_BYTES = 1_000_000
# A process that prints without end fills no memory: beyond this it waits for its reader.
_MOST_WAITING = 10_000


class Child:
    """One measuring process. `events` gives what it says; `code` is None while it runs."""

    def __init__(self, argv: Sequence[str], folder: Path) -> None:
        self.folder = folder
        self._events: queue.Queue[Mapping[str, Any]] = queue.Queue(_MOST_WAITING)
        self._errors = folder / "stderr.txt"
        reading, self._lifeline = os.pipe()
        whole = [sys.executable, "-I", "-S", guard.__file__, str(reading), *argv]
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(  # noqa: S603  an argument list from registries, never a shell
                whole,
                cwd=folder,
                env=environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=(reading,),
                start_new_session=True,
            )
        os.close(reading)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Of the guard, which leads the group."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, 128 + the signal where one ended it; None while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def heard(self) -> list[Mapping[str, Any]]:
        """What it said since the last call, in order."""
        found = []
        while True:
            try:
                found.append(self._events.get_nowait())
            except queue.Empty:
                return found

    def last_errors(self) -> str:
        """The end of what it wrote to standard error."""
        try:
            with self._errors.open("rb") as file:
                file.seek(max(self._errors.stat().st_size - _TAIL_BYTES, 0))
                return file.read().decode("utf-8", "replace").strip()
        except OSError:
            return ""

    def stop(self, grace_s: float) -> None:
        """End it and every descendant: TERM to the group, KILL after `grace_s`, then whoever left the group. Safe to call again."""
        if self.code is None:
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
        self.close()

    def close(self) -> None:
        """After its end, or to force it: nothing of its group or its folder runs any longer, and everything it said was read."""
        self._signal(signal.SIGKILL)
        self._process.wait()
        end_processes_of(self.folder)
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        self._reader.join(timeout=2.0)
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()

    def _signal(self, number: int) -> None:
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return

    def _read(self) -> None:
        stream = self._process.stdout
        while stream is not None and (line := stream.readline(_LINE_BYTES)):
            event = _event(line)
            try:
                self._events.put(event, timeout=60.0)
            except queue.Full:
                continue


def environment(folder: Path) -> dict[str, str]:
    """What a measuring process gets: a few variables of ours, a home and a temporary folder of its own, and the mark it is found by."""
    passed = {key: value for key, value in os.environ.items() if key in _PASSED or key.startswith(_PASSED_STARTS)}
    own = {"HOME": str(folder), "TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", MARK: str(folder)}
    return passed | own


def _event(line: bytes) -> Mapping[str, Any]:
    """A line as an event; one that is none is a line of the log."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and isinstance(found.get("event"), str):
        return found
    return {"event": "log", "level": "info", "text": line.decode("utf-8", "replace").strip()[:4000]}
