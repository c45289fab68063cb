"""The devices of this machine, with and without NVIDIA's driver; a stand-in for its library says what the real one would."""

from types import SimpleNamespace

import pytest

from app.worker import nvml
from app.worker.agent import _crowded, _probe
from app.worker.devices import Device, devices
from tests.worker.drivers import Library, failing


def test_the_processor_is_always_there() -> None:
    found = devices()[0]
    assert found.kind == "cpu"
    assert found.name.startswith("CPU: ")
    assert "numpy" in found.backends
    assert found.memory_bytes is None or found.memory_bytes > 2**28
    assert devices()[0].key == found.key, "the same at each start"


def test_a_gpu_is_known_by_its_uuid(library: Library) -> None:
    library(nvmlDeviceGetComputeRunningProcesses=lambda device: [SimpleNamespace(pid=7)])
    gpu = devices()[1]
    assert (gpu.name, gpu.kind, gpu.memory_bytes) == ("NVIDIA H200", "gpu", 140 * 2**30)
    assert gpu.facts == {"uuid": "GPU-1234", "driver": "580.1", "pci_bus": "0000:19:00.0"}
    assert nvml.use_of(0).processes == (7,)


def test_what_the_driver_does_not_say_is_none_and_never_zero(library: Library) -> None:
    names = ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetPciInfo", "nvmlDeviceGetComputeRunningProcesses", "nvmlSystemGetDriverVersion")
    library(**dict.fromkeys(names, failing("NVMLError_NotSupported")))
    gpu = devices()[1]
    assert gpu.memory_bytes is None
    assert gpu.facts == {"uuid": "GPU-1234", "driver": None, "pci_bus": None}
    assert nvml.use_of(0) == nvml.Use(None, None)


def test_without_a_driver_there_are_no_gpus(library: Library) -> None:
    library(nvmlInit=failing("NVMLError_DriverNotLoaded"))
    assert [device.kind for device in devices()] == ["cpu"]


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetName"])
def test_a_driver_that_fails_is_a_lost_device(library: Library, call: str) -> None:
    library(**{call: failing("NVMLError")})
    with pytest.raises(nvml.DeviceLost, match="said the driver"):
        devices()


def test_a_gpu_whose_memory_others_hold_has_no_room(library: Library) -> None:
    library()
    gpu = Device("gpu-1", "NVIDIA H200", "gpu")
    # Nine tenths of the 130 GiB that are free.
    assert _crowded(gpu, {"memory_bytes": 117 * 2**30}) is None
    assert "130.0 GiB free" in (_crowded(gpu, {"memory_bytes": 118 * 2**30}) or "")
    assert _crowded(gpu, {"memory_bytes": None}) is None
    assert _crowded(Device("cpu-1", "CPU", "cpu"), {"memory_bytes": 2**60}) is None
    library(nvmlDeviceGetMemoryInfo=failing("NVMLError_NotSupported"))
    assert _crowded(gpu, {"memory_bytes": 2**60}) is None


def test_a_gpu_that_falls_silent_in_the_middle_of_a_job_is_noticed(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library()
    lost = _probe(Device("gpu-1", "NVIDIA H200", "gpu"))
    monkeypatch.setattr("app.worker.agent._PROBE_EVERY_S", 0.0)
    assert lost() is None
    library(nvmlDeviceGetHandleByIndex=failing("NVMLError"))
    assert "said the driver" in (lost() or "")
    assert _probe(Device("cpu-1", "CPU", "cpu"))() is None
