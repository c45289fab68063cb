"""What NVIDIA's driver says of its GPUs, by the optional package nvidia-ml-py (extra `gpu`). Nobody else reads it, and nothing is ever set.

What a device or a version does not know is None. A driver or a device that no longer answers raises DeviceLost where that decides about a
job; a reading that only accompanies one (`reading_of`, `environment_of`) is then empty.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from app.domain.errors import PhaselineError

_PACKAGE = "pynvml"
_MHZ, _MILLI = 1e6, 1e-3


class DeviceLost(PhaselineError):
    """The driver or a device no longer answers; in a container only a restart helps."""


@dataclass(frozen=True)
class Gpu:
    """One GPU; what the driver does not say is None."""

    index: int
    uuid: str
    name: str
    memory_bytes: int | None
    driver: str | None
    pci_bus: str | None


@dataclass(frozen=True)
class Use:
    """What a GPU is used for at this moment: free bytes, and the processes that compute on it, where the driver says so."""

    free_bytes: int | None
    processes: tuple[int, ...] | None


@dataclass(frozen=True)
class Reading:
    """One look at a GPU: figures in SI units by the names of telemetry's channels, and the processes that compute on it."""

    figures: Mapping[str, float | None] = field(default_factory=dict)
    processes: tuple[int, ...] | None = None


def gpus() -> list[Gpu]:
    """The GPUs of this machine; none without the package or the driver. Raises DeviceLost when the driver fails."""
    with _library() as library:
        if library is None:
            return []
        driver = _text(_ask(library, "nvmlSystemGetDriverVersion"))
        found = []
        for index in range(library.nvmlDeviceGetCount()):
            device = library.nvmlDeviceGetHandleByIndex(index)
            memory = _ask(library, "nvmlDeviceGetMemoryInfo", device)
            bus = _ask(library, "nvmlDeviceGetPciInfo", device)
            found.append(
                Gpu(
                    index=index,
                    uuid=_text(library.nvmlDeviceGetUUID(device)) or str(index),
                    name=_text(library.nvmlDeviceGetName(device)) or "GPU",
                    memory_bytes=int(memory.total) if memory is not None else None,
                    driver=driver,
                    pci_bus=_text(bus.busId) if bus is not None else None,
                )
            )
        return found


def use_of(index: int) -> Use:
    """What the GPU of this index is used for now. Raises DeviceLost when it does not answer."""
    with _library() as library:
        if library is None:
            raise DeviceLost("NVIDIA's driver is gone.")
        device = library.nvmlDeviceGetHandleByIndex(index)
        memory = _ask(library, "nvmlDeviceGetMemoryInfo", device)
        processes = _ask(library, "nvmlDeviceGetComputeRunningProcesses", device)
        return Use(int(memory.free) if memory is not None else None, _pids(processes))


def environment_of(index: int) -> dict[str, Any]:
    """Name, UUID, driver, CUDA version, power limit, ECC, MIG, compute mode and memory of a GPU; empty where it does not answer."""
    with kept_ready() as library:
        device = None if library is None else _figure(library, "nvmlDeviceGetHandleByIndex", index)
        if device is None:
            return {}
        cuda = _figure(library, "nvmlSystemGetCudaDriverVersion_v2")
        memory = _figure(library, "nvmlDeviceGetMemoryInfo", device)
        ecc, mig = _figure(library, "nvmlDeviceGetEccMode", device), _figure(library, "nvmlDeviceGetMigMode", device)
        return {
            "device": _text(_figure(library, "nvmlDeviceGetName", device)),
            "uuid": _text(_figure(library, "nvmlDeviceGetUUID", device)),
            "driver": _text(_figure(library, "nvmlSystemGetDriverVersion")),
            "cuda": None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            "memory_bytes": None if memory is None else int(memory.total),
            "power_limit_w": _scaled(_figure(library, "nvmlDeviceGetEnforcedPowerLimit", device), _MILLI),
            "ecc": None if ecc is None else bool(ecc[0]),
            "mig": None if mig is None else bool(mig[0]),
            "compute_mode": _figure(library, "nvmlDeviceGetComputeMode", device),
        }


def reading_of(index: int) -> Reading:
    """Clocks, power, temperature, utilisation, throttle reasons, energy and processes of a GPU now; empty where it does not answer."""
    with kept_ready() as library:
        device = None if library is None else _figure(library, "nvmlDeviceGetHandleByIndex", index)
        if device is None:
            return Reading()
        busy = _figure(library, "nvmlDeviceGetUtilizationRates", device)
        memory = _figure(library, "nvmlDeviceGetMemoryInfo", device)
        figures = {
            "sm_clock_hz": _scaled(_figure(library, "nvmlDeviceGetClockInfo", device, library.NVML_CLOCK_SM), _MHZ),
            "memory_clock_hz": _scaled(_figure(library, "nvmlDeviceGetClockInfo", device, library.NVML_CLOCK_MEM), _MHZ),
            "power_w": _scaled(_figure(library, "nvmlDeviceGetPowerUsage", device), _MILLI),
            "power_limit_w": _scaled(_figure(library, "nvmlDeviceGetEnforcedPowerLimit", device), _MILLI),
            "temperature_c": _scaled(_figure(library, "nvmlDeviceGetTemperature", device, library.NVML_TEMPERATURE_GPU), 1.0),
            "energy_j": _scaled(_figure(library, "nvmlDeviceGetTotalEnergyConsumption", device), _MILLI),
            "throttle_reasons": _scaled(_figure(library, "nvmlDeviceGetCurrentClocksThrottleReasons", device), 1.0),
            "busy": None if busy is None else busy.gpu / 100,
            "memory_busy": None if busy is None else busy.memory / 100,
            "memory_used_bytes": None if memory is None else float(memory.used),
        }
        return Reading(figures, _pids(_figure(library, "nvmlDeviceGetComputeRunningProcesses", device)))


def available() -> bool:
    """Whether the package is installed."""
    return find_spec(_PACKAGE) is not None


@contextmanager
def kept_ready() -> Iterator[Any]:
    """The library, begun until the block ends, so that readings inside begin nothing (it counts who began it); None where there is none."""
    try:
        library = _begun()
    except DeviceLost:
        library = None
    try:
        yield library
    finally:
        if library is not None:
            library.nvmlShutdown()


@contextmanager
def _library() -> Iterator[Any]:
    """The library, begun and ended; None without the package or the driver. A failure of the driver becomes DeviceLost."""
    library = _begun()
    if library is None:
        yield None
        return
    try:
        yield library
    except library.NVMLError as error:
        raise DeviceLost(f"A GPU does not answer: {error}. In a container, restart it.") from error
    finally:
        library.nvmlShutdown()


def _begun() -> Any | None:
    if not available():
        return None
    library = import_module(_PACKAGE)
    try:
        library.nvmlInit()
    except (library.NVMLError_LibraryNotFound, library.NVMLError_DriverNotLoaded):
        return None
    except library.NVMLError as error:
        raise DeviceLost(f"NVIDIA's driver does not answer: {error}. In a container, restart it.") from error
    return library


def _ask(library: Any, name: str, *arguments: Any) -> Any:
    """What the driver answers, or None where this device or version does not know it."""
    try:
        return getattr(library, name)(*arguments)
    except (library.NVMLError_NotSupported, library.NVMLError_FunctionNotFound, library.NVMLError_NoPermission):
        return None


def _figure(library: Any, name: str, *arguments: Any) -> Any:
    """What the driver answers, or None whatever is the matter: one figure less ends no measurement."""
    try:
        return getattr(library, name)(*arguments)
    except library.NVMLError:
        return None


def _scaled(value: Any, unit: float) -> float | None:
    return None if value is None else float(value) * unit


def _pids(processes: Any) -> tuple[int, ...] | None:
    return None if processes is None else tuple(int(process.pid) for process in processes)


def _text(value: Any) -> str | None:
    """Older versions of the package answer bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
