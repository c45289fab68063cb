"""The devices of this machine: the processor always, GPUs where NVML is there. What is not known is None, never 0."""

import hashlib
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from app.worker import nvml

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
    found = [processor(("numpy", *torch))]
    # A GPU measures with torch; without it there is nothing here that could.
    return found + [gpu(facts, torch) for facts in nvml.gpus()]


def processor(backends: tuple[str, ...]) -> Device:
    """This machine's processor."""
    name = _processor_name()
    facts = {"cores": os.cpu_count(), "architecture": platform.machine() or None}
    return Device(f"cpu-{_machine()}", name, "cpu", 0, backends, _memory_bytes(), facts)


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


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.split(":", 1)[1].strip()[:200] or "CPU"
    except OSError:
        pass
    return (platform.processor() or platform.machine() or "CPU")[:200]


def _memory_bytes() -> int | None:
    """What this process may use: the container's limit where there is one, else the machine's memory."""
    limits = []
    with suppress(ValueError, OSError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    with suppress(ValueError, OSError):
        limits.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    return min((limit for limit in limits if limit > 0), default=None)
