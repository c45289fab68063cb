"""NVML through nvidia-ml-py where both are installed: what the driver says of one GPU, nothing where it says nothing.

Only read here: clocks, power limits and MIG are never set.
"""

import importlib
import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any

_MILLI = 1e-3


@cache
def nvml() -> Any | None:
    """The module, started; None where it or the driver is missing."""
    if importlib.util.find_spec("pynvml") is None:
        return None
    module = importlib.import_module("pynvml")
    try:
        module.nvmlInit()
    except module.NVMLError:
        return None
    return module


def device_count() -> int:
    """GPUs that the driver lists; 0 without a driver."""
    module = nvml()
    return 0 if module is None else int(module.nvmlDeviceGetCount())


class Gpu:
    """One GPU by its index. Every figure is None where the driver does not support it or no longer answers."""

    def __init__(self, index: int) -> None:
        self._nvml = nvml()
        found = self._nvml
        self._handle = None if found is None else self._ask(lambda: found.nvmlDeviceGetHandleByIndex(index))

    @property
    def is_there(self) -> bool:
        """Whether the driver knows it."""
        return self._handle is not None

    def identity(self) -> dict[str, Any]:
        """Name, UUID, driver, CUDA version, power limit, ECC, MIG, compute mode and memory."""
        found = self._nvml
        if found is None or self._handle is None:
            return {}
        cuda = self._ask(found.nvmlSystemGetCudaDriverVersion_v2)
        memory = self._ask(lambda: found.nvmlDeviceGetMemoryInfo(self._handle))
        ecc = self._ask(lambda: found.nvmlDeviceGetEccMode(self._handle))
        mig = self._ask(lambda: found.nvmlDeviceGetMigMode(self._handle))
        limit = self._ask(lambda: found.nvmlDeviceGetEnforcedPowerLimit(self._handle))
        return {
            "device": _text(self._ask(lambda: found.nvmlDeviceGetName(self._handle))),
            "uuid": _text(self._ask(lambda: found.nvmlDeviceGetUUID(self._handle))),
            "driver": _text(self._ask(found.nvmlSystemGetDriverVersion)),
            "cuda": None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            "memory_bytes": None if memory is None else int(memory.total),
            "power_limit_w": None if limit is None else limit * _MILLI,
            "ecc": None if ecc is None else bool(ecc[0]),
            "mig": None if mig is None else bool(mig[0]),
            "compute_mode": self._ask(lambda: found.nvmlDeviceGetComputeMode(self._handle)),
        }

    def sample(self) -> dict[str, float | None]:
        """Clocks, power, temperature, utilisation, throttle reasons, energy and other processes now, in SI units."""
        found = self._nvml
        if found is None or self._handle is None:
            return {}
        busy = self._ask(lambda: found.nvmlDeviceGetUtilizationRates(self._handle))
        memory = self._ask(lambda: found.nvmlDeviceGetMemoryInfo(self._handle))
        return {
            "sm_clock_hz": self._scaled(lambda: found.nvmlDeviceGetClockInfo(self._handle, found.NVML_CLOCK_SM), 1e6),
            "memory_clock_hz": self._scaled(lambda: found.nvmlDeviceGetClockInfo(self._handle, found.NVML_CLOCK_MEM), 1e6),
            "power_w": self._scaled(lambda: found.nvmlDeviceGetPowerUsage(self._handle), 1e-3),
            "power_limit_w": self._scaled(lambda: found.nvmlDeviceGetEnforcedPowerLimit(self._handle), 1e-3),
            "temperature_c": self._scaled(lambda: found.nvmlDeviceGetTemperature(self._handle, found.NVML_TEMPERATURE_GPU), 1.0),
            "energy_j": self._scaled(lambda: found.nvmlDeviceGetTotalEnergyConsumption(self._handle), 1e-3),
            "throttle_reasons": self._scaled(lambda: found.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle), 1.0),
            "busy": None if busy is None else busy.gpu / 100,
            "memory_busy": None if busy is None else busy.memory / 100,
            "memory_used_bytes": None if memory is None else float(memory.used),
        }

    def processes(self) -> list[int] | None:
        """Process ids that compute on it, None where the driver does not say."""
        found = self._nvml
        if found is None or self._handle is None:
            return None
        running = self._ask(lambda: found.nvmlDeviceGetComputeRunningProcesses(self._handle))
        return None if running is None else [int(each.pid) for each in running]

    def _scaled(self, ask: Callable[[], Any], unit: float) -> float | None:
        value = self._ask(ask)
        return None if value is None else float(value) * unit

    def _ask(self, ask: Callable[[], Any]) -> Any:
        """An answer of the driver; None for what it does not support."""
        if self._nvml is None:
            return None
        try:
            return ask()
        except self._nvml.NVMLError:
            return None


def _text(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else None if value is None else str(value)
