"""What was around a measurement: the environment before it and the device's telemetry during it, put into its document."""

import json
from pathlib import Path
from typing import Any

from app.formats.phaseline_document import FORMAT
from app.jobs import DeviceFacts
from app.worker.devices import Device
from app.worker.environment import capture
from app.worker.telemetry import Sampler


class Surroundings:
    """Watches a device while a measuring process works. What the process itself noted of its environment counts more than what we saw."""

    def __init__(self, device: Device, group: int) -> None:
        facts = DeviceFacts(device.name, device.kind, device.backends, device.memory_bytes)
        self._environment = capture(facts, device.index)
        self._sampler = Sampler(facts, device.index, job_group=group).start()
        self._series: dict[str, Any] | None = None

    def stop(self) -> None:
        """The process has ended."""
        self._series = self._sampler.stop()

    def put_into(self, path: Path) -> None:
        """Add both to a document of ours; another tool's file stays as it is, byte for byte."""
        try:
            document = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            return
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            return
        noted = document.get("environment")
        environment = {**self._environment, **(noted if isinstance(noted, dict) else {})}
        whole = {**document, "environment": environment, "telemetry": self._series}
        path.write_text(json.dumps(whole, ensure_ascii=False, allow_nan=False), encoding="utf-8")
