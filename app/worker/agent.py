"""The agent: registers this machine's devices, waits for jobs, runs one at a time, tells how it ended.

It goes on measuring while the server is away. On a signal it takes no more jobs, ends the one it has and gives it back. When a device is
lost it ends with 75, so that whoever started it starts it anew: in a container only that brings a GPU back.
"""

import platform
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import structlog

from app import __version__
from app.jobs import KINDS
from app.logs import redactor
from app.worker import nvml
from app.worker.attempt import Attempt, Command, End, measuring
from app.worker.devices import Device, devices
from app.worker.reports import Reports
from app.worker.scratch import sweep
from app.worker.server import WAIT_S, Denied, Gone, Misunderstood, Server, Unreachable
from app.worker.state import State, device_lock

DEVICE_LOST = 75
_PAUSE_S = (0.5, 10.0)
_LAST_WORDS_S = 5.0
_PROBE_EVERY_S = 1.0
_USABLE = 0.9

log = structlog.get_logger()

T = TypeVar("T")


class Stopped(BaseException):
    """A signal came while the agent waited for the server."""


@dataclass(frozen=True)
class Options:
    """How an agent runs. `once`: one job and no more. `measure` calls the measuring process, `find` lists the devices."""

    name: str | None = None
    once: bool = False
    wait_s: float = WAIT_S
    measure: Command = measuring
    find: Callable[[], list[Device]] = devices
    kinds: Sequence[str] = tuple(KINDS)


class Agent:
    """One worker of one server."""

    def __init__(self, server: Server, state: State, options: Options | None = None) -> None:
        self._server, self._state, self._options = server, state, options or Options()
        self._stopping = threading.Event()
        self._interruptible = False
        self._heartbeat_s = 10.0
        self._devices: list[Device] = []

    def run(self) -> int:
        """Work until a signal, or for one job; the exit code. Raises Denied when a person must act, StateTaken."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        with self._state.held():
            swept = sweep(self._state.jobs)
            if swept:
                log.warning("ended what a worker before left running", processes=swept)
            try:
                self._work()
            except Stopped:
                pass
            except nvml.DeviceLost as error:
                log.error("a device is lost", reason=str(error))
                return DEVICE_LOST
            finally:
                self._leave()
        return 0

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stopping.set()
        if self._interruptible:
            self._interruptible = False
            raise Stopped

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._register()
            try:
                while not self._stopping.is_set():
                    job = self._claim()
                    if job is None:
                        continue
                    self._run(job)
                    if self._options.once:
                        return
            except Gone:
                continue  # another process of this worker registered, or the server's database is another: register anew

    def _register(self) -> None:
        self._devices = self._options.find()
        told = {
            "identity": self._state.identity(),
            "name": (self._options.name or platform.node() or "worker")[:200],
            "version": __version__,
            "kinds": list(self._options.kinds),
            "devices": [device.as_json() for device in self._devices],
        }
        answer = self._until_answered(lambda: self._server.register(told))
        self._heartbeat_s = float(answer["heartbeat_s"])
        log.info("registered", server=self._server.address, devices=[device.name for device in self._devices])

    def _claim(self) -> Mapping[str, Any] | None:
        free = [device.key for device in self._devices if self._is_free(device)]
        return self._until_answered(lambda: self._server.claim(free, [], self._options.wait_s))

    def _is_free(self, device: Device) -> bool:
        """Whether nobody else computes on it. Raises DeviceLost."""
        return device.kind != "gpu" or not nvml.use_of(device.index).processes

    def _until_answered(self, call: Callable[[], T]) -> T:
        """What the call gives, as soon as the server answers. A signal ends the waiting with Stopped."""
        pause_s, told = _PAUSE_S[0], False
        while not self._stopping.is_set():
            self._state.touch()
            try:
                self._interruptible = True
                return call()
            except Unreachable as error:
                if not told:
                    log.warning("the server is away and is tried again", reason=str(error))
                told = True
                self._stopping.wait(pause_s * random.uniform(0.5, 1.0))  # noqa: S311  spreads workers, hides nothing
                pause_s = min(2 * pause_s, _PAUSE_S[1])
            finally:
                self._interruptible = False
        raise Stopped

    def _run(self, job: Mapping[str, Any]) -> None:
        device = next(device for device in self._devices if device.key == job["device"])
        number, attempt = int(job["id"]), int(job["attempt"])
        log.info("job", job=number, attempt=attempt, kind=job["kind"], device=device.name)
        reports = Reports(self._server, number, attempt, self._heartbeat_s)
        reports.start()
        with device_lock(device.key) as ours:
            if ours:
                end = self._measured(job, device, reports)
            else:
                end = End("interrupted", f"Another worker of this machine measures on {device.name}.")
                self._conclude(number, attempt, end, reports)
        log.info("job ended", job=number, attempt=attempt, outcome=end.outcome, reason=end.reason)
        if end.outcome == "interrupted" and device.kind == "gpu":
            nvml.use_of(device.index)

    def _measured(self, job: Mapping[str, Any], device: Device, reports: Reports) -> End:
        """Run the job and tell how it ended; its folder is gone afterwards."""
        if (crowded := _crowded(device, job)) is not None:
            end = End("interrupted", crowded)
            self._conclude(int(job["id"]), int(job["attempt"]), end, reports)
            return end
        attempt = Attempt(job, device, self._state.jobs, self._state.keys, reports, self._options.measure)
        try:
            end = attempt.run(self._stopping, self._state.touch, _probe(device))
            self._conclude(int(job["id"]), int(job["attempt"]), end, reports)
            return end
        finally:
            attempt.close()

    def _conclude(self, job: int, attempt: int, end: End, reports: Reports) -> None:
        """Bring the result, then the last reports, then the end, each as soon as the server is there. A given-up attempt ends silently."""
        outcome, reason = end.outcome, end.reason
        try:
            if outcome != "gone" and end.result is not None:
                trouble = self._bring(job, attempt, end.result)
                if trouble is not None and outcome == "succeeded":
                    outcome, reason = "failed", trouble
            reports.close(_LAST_WORDS_S)
            if outcome != "gone":
                told = redactor.text(reason) if reason is not None else None
                self._insist(lambda: self._server.finish(job, attempt, outcome, told))
        except (Gone, Unreachable, Denied) as error:
            log.warning("the end of a job was not taken", job=job, attempt=attempt, reason=str(error))
        finally:
            reports.close(0)

    def _bring(self, job: int, attempt: int, path: Path) -> str | None:
        """Upload the result; why it gave no run, or None."""
        data = path.read_bytes()
        try:
            answer = self._insist(lambda: self._server.result(job, attempt, f"job-{job}.json", data))
        except Misunderstood as error:
            return f"The result was refused: {error}"
        refused = list(answer["refused"])
        return f"The result could not be read: {refused[0]}" if refused and not answer["run_ids"] else None

    def _insist(self, call: Callable[[], T]) -> T:
        """As `_until_answered`, for what ends a job: a signal leaves it a few seconds. Raises Unreachable after those."""
        pause_s, until = _PAUSE_S[0], None
        while True:
            self._state.touch()
            try:
                return call()
            except Unreachable:
                if self._stopping.is_set():
                    until = until or time.monotonic() + _LAST_WORDS_S
                    if time.monotonic() > until:
                        raise
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, _LAST_WORDS_S / 2)

    def _leave(self) -> None:
        try:
            self._server.leave()
        except (Unreachable, Gone, Denied):
            return
        finally:
            self._server.close()


def _crowded(device: Device, job: Mapping[str, Any]) -> str | None:
    """Why a GPU has no room for the job now: other processes hold its memory, or it is gone. None where it has, or nobody knows."""
    needed = job.get("memory_bytes")
    if device.kind != "gpu" or needed is None:
        return None
    try:
        free = nvml.use_of(device.index).free_bytes
    except nvml.DeviceLost as error:
        return str(error)
    if free is None or needed <= _USABLE * free:
        return None
    return f"{device.name} has {free / 2**30:.1f} GiB free and the job needs about {needed / 2**30:.1f}: other processes hold the rest."


def _probe(device: Device) -> Callable[[], str | None]:
    """A function that says why the device is gone, or None: a GPU is asked once a second."""
    asked = time.monotonic()

    def lost() -> str | None:
        nonlocal asked
        if device.kind != "gpu" or time.monotonic() - asked < _PROBE_EVERY_S:
            return None
        asked = time.monotonic()
        try:
            nvml.use_of(device.index)
        except nvml.DeviceLost as error:
            return str(error)
        return None

    return lost
