"""The environment of a measurement, as it goes into its document: device, driver, versions, processor, limits. None is not known."""

import os
import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from app import __version__
from app.jobs import DeviceFacts
from app.worker import nvml, processor

_PACKAGES = ("torch", "transformers", "numpy")
# Variables that change how fast arithmetic is; no other variable of the machine goes anywhere.
_VARIABLES = (
    *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_CORETYPE"),
    *("CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "PYTORCH_CUDA_ALLOC_CONF"),
)


def capture(device: DeviceFacts, index: int = 0, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Everything that may explain why a figure differs from another machine's or another day's."""
    found: dict[str, Any] = {
        "device": device.name,
        "code_version": __version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "system": platform.system(),
        **{name: _version(name) for name in _PACKAGES},
        **processor.identity(),
        "variables": {name: environment[name] for name in _VARIABLES if name in environment},
    }
    if device.is_cpu:
        return {**found, "device": device.name, "memory_bytes": processor.memory_bytes()}
    told = nvml.environment_of(index)
    return {**found, **told, "device": told.get("device") or device.name}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
