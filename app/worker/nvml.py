"""What NVIDIA's driver says of its GPUs, by the optional package nvidia-ml-py (extra `gpu`). It is only ever read, never set."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from app.domain.errors import PhaselineError

_PACKAGE = "pynvml"


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


def gpus() -> list[Gpu]:
    """The GPUs of this machine; none without the package or the driver. Raises DeviceLost when the driver fails."""
    if not available():
        return []
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
        pids = tuple(int(process.pid) for process in processes) if processes is not None else None
        return Use(int(memory.free) if memory is not None else None, pids)


def available() -> bool:
    """Whether the package is installed."""
    return find_spec(_PACKAGE) is not None


@contextmanager
def _library() -> Iterator[Any]:
    """The library, begun and ended; None where there is no driver. A failure of the driver becomes DeviceLost."""
    library = import_module(_PACKAGE)
    try:
        library.nvmlInit()
    except (library.NVMLError_LibraryNotFound, library.NVMLError_DriverNotLoaded):
        yield None
        return
    except library.NVMLError as error:
        raise DeviceLost(f"NVIDIA's driver does not answer: {error}. In a container, restart it.") from error
    try:
        yield library
    except library.NVMLError as error:
        raise DeviceLost(f"A GPU does not answer: {error}. In a container, restart it.") from error
    finally:
        library.nvmlShutdown()


def _ask(library: Any, name: str, *arguments: Any) -> Any:
    """What the driver answers, or None where this device or version does not know it."""
    try:
        return getattr(library, name)(*arguments)
    except (library.NVMLError_NotSupported, library.NVMLError_FunctionNotFound, library.NVMLError_NoPermission):
        return None


def _text(value: Any) -> str | None:
    """Older versions of the package answer bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
