"""The one place where torch is found: loaded when a job needs it, absent on a machine without it.

torch's own annotations do not pass strict checking, so that its module is an `Any` here and types begin again in the code that uses it.
"""

import importlib
import importlib.util
from functools import cache
from typing import Any

from app.worker.measure.job import DeviceLost, Refused

# What CUDA says when the device itself is gone, as against a fault of the program.
_LOST = (
    "device-side assert",
    "unspecified launch failure",
    "no cuda-capable device",
    "cuda driver",
    "device lost",
    "ecc error",
    "unknown error",
)


def has_torch() -> bool:
    """Whether torch is installed here, without loading it."""
    return importlib.util.find_spec("torch") is not None


@cache
def torch_module() -> Any:
    """The module. Raises Refused where it is not installed."""
    if not has_torch():
        raise Refused("torch is not installed on this machine: choose the backend numpy, or install torch.")
    return importlib.import_module("torch")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory ran out, of this process or of its device."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "out of memory" in str(error).lower()


def as_lost(error: RuntimeError) -> DeviceLost | None:
    """The error as that of a lost device, None when it is another."""
    text = str(error).lower()
    return DeviceLost(f"The device no longer answers ({error}).") if any(word in text for word in _LOST) else None


def torch_device(index: int, is_cpu: bool) -> Any:
    """The device of a job. Raises Refused for a GPU that torch does not see."""
    torch = torch_module()
    if is_cpu:
        return torch.device("cpu")
    if not torch.cuda.is_available() or index >= torch.cuda.device_count():
        raise Refused(f"torch sees no CUDA device {index} on this machine: its build or the driver does not fit.")
    return torch.device("cuda", index)
