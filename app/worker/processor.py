"""What Linux says of its processor: model, governor, clocks, how busy it is and what other machines took of it."""

import os
from pathlib import Path
from typing import Any

PROC, CPUS = Path("/proc"), Path("/sys/devices/system/cpu")
CGROUP = Path("/sys/fs/cgroup")


def identity() -> dict[str, Any]:
    """Model, cores, governor and the share that a container may use; None for what the system does not say."""
    return {
        "cpu_model": _field(PROC / "cpuinfo", "model name"),
        "cpu_cores": os.cpu_count(),
        "governor": _first_line(CPUS / "cpu0/cpufreq/scaling_governor"),
        "container_cpus": _cpu_limit(),
        "container_memory_bytes": _number(_first_line(CGROUP / "memory.max")),
        "load": list(os.getloadavg()),
    }


def clock_hz() -> float | None:
    """The highest clock among the cores now, None where the system does not say."""
    scaled = [_number(_first_line(path)) for path in CPUS.glob("cpu[0-9]*/cpufreq/scaling_cur_freq")]
    known = [value * 1e3 for value in scaled if value]
    if known:
        return max(known)
    found = [line.split(":")[1] for line in _lines(PROC / "cpuinfo") if line.startswith("cpu MHz")]
    clocks = [value * 1e6 for text in found if (value := _number(text.strip()))]
    return max(clocks, default=None)


def memory_bytes() -> int | None:
    """All memory of the machine, or of the container where that is less."""
    text = _field(PROC / "meminfo", "MemTotal")
    total = None if text is None else int(text.split()[0]) * 1024
    limit = _number(_first_line(CGROUP / "memory.max"))
    return total if limit is None or total is None else min(total, int(limit))


def free_bytes() -> int | None:
    """Memory that can be had now, of the machine or of the container where that leaves less; pages that only cache files count as free."""
    text = _field(PROC / "meminfo", "MemAvailable")
    free = None if text is None else int(text.split()[0]) * 1024
    limit, used = _number(_first_line(CGROUP / "memory.max")), _number(_first_line(CGROUP / "memory.current"))
    if limit is None or used is None:
        return free
    cached = next((float(line.split()[1]) for line in _lines(CGROUP / "memory.stat") if line.startswith("inactive_file ")), 0.0)
    left = max(int(limit - used + cached), 0)
    return left if free is None else min(free, left)


class CoreTimes:
    """Busy and stolen cores between two looks at /proc/stat."""

    def __init__(self) -> None:
        self._before = _times()

    def since_last(self) -> tuple[float | None, float | None]:
        """Mean cores busy and mean cores taken by other machines since the last call; None before there is anything to tell."""
        before, self._before = self._before, _times()
        if before is None or self._before is None:
            return None, None
        passed = [after - earlier for after, earlier in zip(self._before, before, strict=False)]
        total = sum(passed[:8])
        if total <= 0:
            return None, None
        cores = os.cpu_count() or 1
        idle, stolen = passed[3] + passed[4], passed[7]
        return (total - idle - stolen) / total * cores, stolen / total * cores


def _times() -> list[int] | None:
    """user, nice, system, idle, iowait, irq, softirq, steal … of all cores, in ticks."""
    first = _first_line(PROC / "stat")
    parts = [] if first is None else first.split()
    return [int(part) for part in parts[1:]] if len(parts) >= 9 and parts[0] == "cpu" else None


def _cpu_limit() -> float | None:
    """Cores that a control group allows, None without a limit."""
    parts = (_first_line(CGROUP / "cpu.max") or "max").split()
    quota, period = _number(parts[0]), _number(parts[1]) if len(parts) == 2 else None
    return quota / period if quota and period else None


def _field(path: Path, name: str) -> str | None:
    for line in _lines(path):
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip() or None
    return None


def _first_line(path: Path) -> str | None:
    lines = _lines(path)
    return lines[0].strip() or None if lines else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None
