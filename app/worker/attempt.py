"""One attempt at a job: its folder, its process, its limit, and how it ended. Telling the server is `reports`' matter."""

import json
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.logs import redactor
from app.worker.child import Child
from app.worker.devices import Device
from app.worker.keys import KeyMissing, resolved
from app.worker.reports import Reports
from app.worker.scratch import make_folder, remove
from app.worker.surroundings import Surroundings

GRACE_S = 10.0
_LOOK_EVERY_S = 0.1
_REFUSED, _DEVICE_LOST, _KILLED = 2, 75, 128 + 9
_RESULT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}", re.ASCII)
_MEMORY_EVENTS = Path("/sys/fs/cgroup/memory.events")
_MOST_RESULT_BYTES = 256 * 2**20

# How to call the measuring process of a kind, with the folder it works in.
Command = Callable[[str, Path], Sequence[str]]


@dataclass(frozen=True)
class End:
    """How an attempt ended: what the server is told, and the result file where there is one."""

    outcome: str
    reason: str | None = None
    result: Path | None = None


def measuring(kind: str, folder: Path) -> list[str]:
    """The command of this version's measuring process."""
    return [sys.executable, "-m", "app.worker.measure", kind, str(folder)]


class Attempt:
    """Runs a job that the server handed over on `device`. `run` returns its end; the folder is there until `close`."""

    def __init__(
        self, job: Mapping[str, Any], device: Device, folder: Path, keys: Path, reports: Reports, command: Command = measuring
    ) -> None:
        self._job, self._device, self._keys, self._reports, self._command = job, device, keys, reports, command
        self.folder = make_folder(folder, int(job["id"]), int(job["attempt"]))
        self._result: str | None = None
        self._said: str | None = None
        self._progress: Mapping[str, Any] | None = None

    def run(self, stopping: threading.Event, tick: Callable[[], None], lost: Callable[[], str | None]) -> End:
        """Measure until the end, the limit, a cancel, or until `stopping`. `tick` is called all the while.

        `lost` says why the device is gone, or None. The processes of the job are gone when this returns.
        """
        try:
            (self.folder / "job.json").write_text(json.dumps(self._told(), allow_nan=False), encoding="utf-8")
        except KeyMissing as error:
            return End("refused", str(error))
        oom_before = _oom_kills()
        child = Child(self._command(str(self._job["kind"]), self.folder), self.folder)
        around = Surroundings(self._device, child.pid)
        forced: End | None = None
        until = time.monotonic() + float(self._job["limit_s"])
        try:
            while forced is None and child.code is None:
                self._hear(child)
                tick()
                forced = self._forced(stopping, until, lost)
                time.sleep(_LOOK_EVERY_S)
            child.stop(GRACE_S)
        finally:
            child.close()
            around.stop()
        self._hear(child)
        end = forced if forced is not None else self._ended(child, oom_before)
        if end.outcome == "succeeded" and self._progress is not None:
            # The process says what it begins; that the last step is done is told here.
            self._reports.add({**self._progress, "done": self._progress.get("total"), "current": None, "eta_s": 0.0})
        if (result := self._result_file()) is not None:
            around.put_into(result)
        return End(end.outcome, end.reason, result)

    def close(self) -> None:
        """Remove the folder."""
        remove(self.folder)

    def _told(self) -> dict[str, Any]:
        """What the measuring process is told; a target with its address and, where it has one, its key."""
        model, target = self._job.get("model"), self._job.get("target")
        return {
            "id": self._job["id"],
            "kind": self._job["kind"],
            "parameters": self._job["parameters"],
            "device": {**self._device.as_json(), "index": self._device.index, "hardware": (self._job.get("hardware") or {}).get("slug")},
            "model": model["architecture"] if model else None,
            "hardware": self._job.get("hardware"),
            "target": resolved(target, self._keys) if target else None,
        }

    def _hear(self, child: Child) -> None:
        for event in child.heard():
            if event.get("event") == "result":
                name = str(event.get("file", ""))
                self._result = name if _RESULT.fullmatch(name) else self._result
                continue
            if event.get("event") == "progress":
                self._progress = event
            if event.get("event") == "log":
                self._said = str(event.get("text", "")) or self._said
            self._reports.add(event)

    def _forced(self, stopping: threading.Event, until: float, lost: Callable[[], str | None]) -> End | None:
        """Why it is ended from here, or None: it goes on."""
        if self._reports.over:
            return End("gone")
        if self._reports.cancel.is_set():
            return End("cancelled", "cancelled")
        if time.monotonic() > until:
            return End(
                "timeout", f"It took longer than its limit of {float(self._job['limit_s']):g} s and was ended; what it finished is kept."
            )
        if stopping.is_set():
            return End("released", "its worker stops")
        if (reason := lost()) is not None:
            return End("interrupted", reason)
        return None

    def _ended(self, child: Child, oom_before: int | None) -> End:
        """What the exit code of a process that ended by itself says."""
        code = child.code
        said = redactor.text(self._said or "")[:2000] or None
        if code == 0:
            return End("succeeded") if self._result_file() is not None else End("failed", "It ended without a result.")
        if code == _REFUSED:
            return End("refused", said or "The worker declined the job.")
        if code == _DEVICE_LOST:
            return End("interrupted", said or "The device was lost.")
        if code == _KILLED:
            after = _oom_kills()
            certain = oom_before is not None and after is not None and after > oom_before
            return End("failed", "out of memory" if certain else "out of memory, or killed by somebody: the system ended it with KILL")
        errors = child.last_errors()
        for line in errors.splitlines()[-20:]:
            self._reports.log(line, "error")
        last = errors.splitlines()[-1] if errors else said
        return End("failed", redactor.text(f"It ended with status {code}{f': {last}' if last else '.'}")[:2000])

    def _result_file(self) -> Path | None:
        """The result, where the process named one that is a plain file of its folder."""
        path = self.folder / self._result if self._result is not None else None
        if path is None or path.is_symlink() or not path.is_file() or not 0 < path.stat().st_size <= _MOST_RESULT_BYTES:
            return None
        return path


def _oom_kills() -> int | None:
    """How many processes of this container the kernel ended for want of memory; None where it does not say."""
    try:
        text = _MEMORY_EVENTS.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith("oom_kill ")), None)
