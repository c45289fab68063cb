"""Environment and telemetry: what the machine says, null where it says nothing, nothing invented."""

import itertools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.formats.phaseline_telemetry import telemetry_of
from app.formats.record import Record
from app.jobs import DeviceFacts
from app.worker import gpu_readings, processor, telemetry
from app.worker.environment import capture
from app.worker.gpu_readings import Gpu
from app.worker.telemetry import Sampler

CPU = DeviceFacts("this processor", "cpu", ("numpy",))
GPU = DeviceFacts("Acme A1", "cuda", ("torch",))


class Refused(Exception):
    """What a driver raises for a figure it does not have."""


class Driver:
    """NVML of a machine with one GPU that knows neither its energy nor its ECC."""

    NVMLError = Refused
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    def __getattr__(self, name: str) -> Any:
        answers: dict[str, Any] = {
            "nvmlDeviceGetHandleByIndex": "handle",
            "nvmlSystemGetCudaDriverVersion_v2": 13010,
            "nvmlDeviceGetName": b"Acme A1",
            "nvmlDeviceGetUUID": "GPU-1",
            "nvmlSystemGetDriverVersion": "600.10",
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetPowerUsage": 350_500,
            "nvmlDeviceGetTemperature": 61,
            "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=95, memory=40),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=80 * 10**9, used=10**9),
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=os.getpid()), SimpleNamespace(pid=2**30)],
            "nvmlDeviceGetCount": 1,
        }

        def answer(*arguments: Any) -> Any:
            if name == "nvmlDeviceGetClockInfo":
                return {1: 1980, 2: 2619}[arguments[1]]
            if name not in answers:
                raise Refused(name)
            return answers[name]

        return answer


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    made = Driver()
    monkeypatch.setattr(gpu_readings, "nvml", lambda: made)
    return made


@pytest.mark.usefixtures("driver")
def test_a_gpu_says_what_its_driver_says_in_si_units_and_null_for_the_rest() -> None:
    sample = Gpu(0).sample()
    assert (sample["sm_clock_hz"], sample["memory_clock_hz"]) == (1.98e9, 2.619e9)
    assert (sample["power_w"], sample["temperature_c"], sample["busy"]) == (350.5, 61.0, 0.95)
    assert sample["energy_j"] is None
    found = capture(GPU)
    assert (found["device"], found["driver"], found["cuda"]) == ("Acme A1", "600.10", "13.1")
    assert (found["power_limit_w"], found["ecc"]) == (700.0, None)
    assert gpu_readings.device_count() == 1


def test_without_a_driver_there_is_no_gpu_and_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_readings, "nvml", lambda: None)
    assert (Gpu(0).is_there, Gpu(0).sample(), Gpu(0).identity(), Gpu(0).processes(), gpu_readings.device_count()) == (
        False,
        {},
        {},
        None,
        0,
    )
    assert capture(GPU)["device"] == "Acme A1"


@pytest.mark.usefixtures("driver")
def test_processes_of_the_job_are_nobody_elses() -> None:
    series = _one_look(Sampler(GPU))
    # this process is its own group's; the other number is nobody that can be seen here
    assert series["channels"]["other_processes"] == [1.0]
    assert "energy_j" not in series["channels"]


def _one_look(sampler: Sampler) -> dict[str, Any]:
    sampler.look()
    series = sampler.stop()
    assert series is not None
    return series


def test_a_sampler_reads_until_it_is_stopped_and_what_it_gives_can_be_read() -> None:
    counted = itertools.count(1.0)
    sampler = Sampler(CPU, read=lambda: {"cpu_clock_hz": next(counted), "cpu_steal_cores": None}).start()
    series = sampler.stop()
    assert series is not None
    found = telemetry_of(Record(series))
    assert found is not None
    assert found.channels["cpu_clock_hz"][0] == 1.0
    assert list(found.channels) == ["cpu_clock_hz"]
    assert Sampler(CPU).stop() is None


def test_a_long_job_is_sampled_more_coarsely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "MOST_SAMPLES", 4)
    counted = itertools.count()
    sampler = Sampler(CPU, read=lambda: {"power_w": float(next(counted))})
    for _ in range(7):
        sampler.look()
    series = sampler.stop()
    assert series is not None
    # five are thinned to 0, 2, 4; two more and it is thinned again
    assert series["channels"]["power_w"] == [0.0, 4.0, 6.0]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose files are written by the test."""
    for name, folder in (("PROC", "proc"), ("CPUS", "cpu"), ("CGROUP", "cgroup")):
        (tmp_path / folder).mkdir()
        monkeypatch.setattr(processor, name, tmp_path / folder)
    return tmp_path


def test_cores_are_counted_between_two_looks(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    stat = machine / "proc" / "stat"
    stat.write_text("cpu 100 0 0 900 0 0 0 0 0 0\n")
    times = processor.CoreTimes()
    # of 400 ticks 150 were user's, 50 system's, 100 idle, 50 waiting and 50 stolen: (400 - 150 - 50) / 400 of 4 cores busy
    stat.write_text("cpu 250 0 50 1000 50 0 0 50 0 0\n")
    assert times.since_last() == (2.0, 0.5)
    assert times.since_last() == (None, None)


def test_a_processor_that_says_nothing_gives_null_and_never_zero(machine: Path) -> None:
    found = processor.identity()
    assert (found["cpu_model"], found["governor"], found["container_cpus"]) == (None, None, None)
    assert (processor.clock_hz(), processor.memory_bytes()) == (None, None)
    assert processor.CoreTimes().since_last() == (None, None)


def test_limits_of_a_container_and_clocks_are_read(machine: Path) -> None:
    (machine / "cgroup" / "cpu.max").write_text("150000 100000\n")
    (machine / "cgroup" / "memory.max").write_text("1000000\n")
    (machine / "proc" / "meminfo").write_text("MemTotal:       2000 kB\n")
    (machine / "proc" / "cpuinfo").write_text("model name\t: Acme CPU\ncpu MHz\t\t: 2445.4\n")
    assert processor.identity()["container_cpus"] == 1.5
    assert processor.memory_bytes() == 1_000_000
    assert processor.clock_hz() == pytest.approx(2.4454e9)
    (machine / "cgroup" / "cpu.max").write_text("max 100000\n")
    assert processor.identity()["container_cpus"] is None


def test_free_memory_is_the_machines_or_what_a_container_has_left(machine: Path) -> None:
    assert processor.free_bytes() is None
    (machine / "proc" / "meminfo").write_text("MemTotal:       9000 kB\nMemAvailable:   4000 kB\n")
    assert processor.free_bytes() == 4_096_000
    (machine / "cgroup" / "memory.max").write_text("2000000\n")
    (machine / "cgroup" / "memory.current").write_text("1500000\n")
    assert processor.free_bytes() == 500_000
    # A file's pages that nobody uses are given up first.
    (machine / "cgroup" / "memory.stat").write_text("anon 1\ninactive_file 300000\n")
    assert processor.free_bytes() == 800_000
    (machine / "cgroup" / "memory.max").write_text("max\n")
    assert processor.free_bytes() == 4_096_000


def test_only_variables_that_change_arithmetic_are_kept() -> None:
    found = capture(CPU, environment={"OMP_NUM_THREADS": "1", "OPENAI_API_KEY": "sk-secret"})
    assert found["variables"] == {"OMP_NUM_THREADS": "1"}
    assert found["python"]
