"""The devices of this machine: the processor always, GPUs where NVML is there. What is not known is None, never 0."""

import hashlib
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.worker import nvml, processor

_MACHINE_ID = Path("/etc/machine-id")


@dataclass(frozen=True)
class Device:
    """One device. `key` names it among all devices of all machines; `index` counts the GPUs, in NVML's order."""

    key: str
    name: str
    kind: str
    index: int = 0
    backends: tuple[str, ...] = ()
    memory_bytes: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As the server takes it."""
        return {
            "key": self.key,
            "name": self.name,
            "kind": self.kind,
            "backends": list(self.backends),
            "memory_bytes": self.memory_bytes,
            "facts": dict(self.facts),
        }


def devices() -> list[Device]:
    """The processor, then the GPUs. Raises nvml.DeviceLost when the driver is there and does not answer."""
    torch = ("torch",) if find_spec("torch") is not None else ()
    found = [this_processor(("numpy", *torch))]
    # A GPU measures with torch; without it there is nothing here that could.
    return found + [gpu(facts, torch) for facts in nvml.gpus()]


def this_processor(backends: tuple[str, ...]) -> Device:
    """This machine's processor."""
    model = processor.identity()["cpu_model"] or "this processor"
    facts = {"cores": os.cpu_count(), "architecture": platform.machine() or None}
    return Device(f"cpu-{_machine()}", f"CPU: {model}"[:200], "cpu", 0, backends, processor.memory_bytes(), facts)


def gpu(facts: nvml.Gpu, backends: tuple[str, ...]) -> Device:
    """One GPU."""
    told = {"uuid": facts.uuid, "driver": facts.driver, "pci_bus": facts.pci_bus}
    return Device(f"gpu-{_short(facts.uuid)}", facts.name, "gpu", facts.index, backends, facts.memory_bytes, told)


def _machine() -> str:
    """A short name of this machine that tells nobody what its own is."""
    try:
        own = _MACHINE_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        own = ""
    return _short(f"{own}/{platform.node()}")


def _short(words: str) -> str:
    return hashlib.sha256(words.encode("utf-8", "replace")).hexdigest()[:12]
