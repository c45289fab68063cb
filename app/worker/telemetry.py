"""Samples what a device does while a job runs, from a thread beside it: GPUs by NVML, the processor always."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from app.domain.telemetry import CHANNELS
from app.jobs import DeviceFacts
from app.worker import nvml, processor

INTERVAL_S = 0.2
# An hour at five a second; beyond, every second sample goes and the interval doubles.
MOST_SAMPLES = 18_000

Reading = Mapping[str, float | None]


class Sampler:
    """Samples from `start` to `stop`. `job_group` is the process group of the job, whose own processes are nobody else's."""

    def __init__(
        self, device: DeviceFacts, index: int = 0, job_group: int | None = None, read: Callable[[], Reading] | None = None
    ) -> None:
        self._read = read or _Reader(device, index, job_group)
        self._interval = INTERVAL_S
        self._times: list[float] = []
        self._rows: list[Reading] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self) -> "Sampler":
        """Begin in the background."""
        self._thread.start()
        return self

    def stop(self) -> dict[str, Any] | None:
        """End, and the series as plain data for a document: times on the monotonic clock and a list for each channel that was seen."""
        self._end.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=10)
        if not self._times:
            return None
        seen = [key for key in CHANNELS if any(row.get(key) is not None for row in self._rows)]
        return {"clock": "monotonic", "t_s": list(self._times), "channels": {key: [row.get(key) for row in self._rows] for key in seen}}

    def look(self) -> None:
        """Take one sample."""
        self._rows.append(self._read())
        self._times.append(time.monotonic())
        if len(self._times) > MOST_SAMPLES:
            self._times, self._rows, self._interval = self._times[::2], self._rows[::2], 2 * self._interval

    def _run(self) -> None:
        with nvml.kept_ready():
            while True:
                self.look()
                if self._end.wait(self._interval):
                    return


class _Reader:
    """One reading of everything that the machine tells about a device."""

    def __init__(self, device: DeviceFacts, index: int, job_group: int | None) -> None:
        self._gpu = None if device.is_cpu else index
        self._cores = processor.CoreTimes()
        self._job_group = job_group

    def __call__(self) -> Reading:
        busy, stolen = self._cores.since_last()
        found: dict[str, float | None] = {"cpu_clock_hz": processor.clock_hz(), "cpu_busy_cores": busy, "cpu_steal_cores": stolen}
        if self._gpu is not None:
            seen = nvml.reading_of(self._gpu)
            found |= seen.figures
            found["other_processes"] = None if seen.processes is None else float(sum(not self._is_ours(pid) for pid in seen.processes))
        return found

    def _is_ours(self, pid: int) -> bool:
        """Whether a process belongs to the job; one of another container cannot be seen and is somebody else's."""
        try:
            group = os.getpgid(pid)
        except OSError:
            return False
        return group in (self._job_group, os.getpgid(0))
