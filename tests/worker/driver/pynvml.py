"""A stand-in for NVIDIA's library of one GPU, for a process that has this folder on its path. What it does not name it does not support.

While the file that STAND_IN_GPU_LOST names is there, nothing answers, as after a GPU has fallen off the bus.
"""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):
    pass


class NVMLError_FunctionNotFound(NVMLError):
    pass


class NVMLError_NoPermission(NVMLError):
    pass


class NVMLError_LibraryNotFound(NVMLError):
    pass


class NVMLError_DriverNotLoaded(NVMLError):
    pass


_ANSWERS: dict[str, Any] = {
    "nvmlInit": None,
    "nvmlShutdown": None,
    "nvmlSystemGetDriverVersion": b"580.1",
    "nvmlSystemGetCudaDriverVersion_v2": 13010,
    "nvmlDeviceGetCount": 1,
    "nvmlDeviceGetHandleByIndex": "handle",
    "nvmlDeviceGetUUID": "GPU-1234",
    "nvmlDeviceGetName": b"NVIDIA H200",
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=140 * 2**30, free=130 * 2**30, used=10 * 2**30),
    "nvmlDeviceGetPciInfo": SimpleNamespace(busId=b"0000:19:00.0"),
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetEnforcedPowerLimit": 700_000,
    "nvmlDeviceGetPowerUsage": 350_500,
    "nvmlDeviceGetTemperature": 61,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=95, memory=40),
}


def nvmlDeviceGetClockInfo(device: Any, clock: int) -> int:
    return {NVML_CLOCK_SM: 1980, NVML_CLOCK_MEM: 2619}[clock]


def __getattr__(name: str) -> Callable[..., Any]:
    if not name.startswith("nvml"):
        raise AttributeError(name)

    def call(*_: Any) -> Any:
        lost = os.environ.get("STAND_IN_GPU_LOST")
        if lost and Path(lost).exists():
            raise NVMLError("GPU is lost")
        if name not in _ANSWERS:
            raise NVMLError_NotSupported("Not Supported")
        return _ANSWERS[name]

    return call
