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
from app.worker import nvml, processor, telemetry
from app.worker.environment import capture
from app.worker.telemetry import Sampler
from tests.worker.drivers import Library, failing

CPU = DeviceFacts("this processor", "cpu", ("numpy",))
GPU = DeviceFacts("Acme A1", "cuda", ("torch",))


def test_a_gpu_says_what_its_driver_says_in_si_units_and_null_for_the_rest(library: Library) -> None:
    library()
    seen = nvml.reading_of(0).figures
    assert (seen["sm_clock_hz"], seen["memory_clock_hz"]) == (1.98e9, 2.619e9)
    assert (seen["power_w"], seen["temperature_c"], seen["busy"]) == (350.5, 61.0, 0.95)
    assert seen["energy_j"] is None
    found = capture(GPU)
    assert (found["device"], found["driver"], found["cuda"]) == ("NVIDIA H200", "580.1", "13.1")
    assert (found["power_limit_w"], found["ecc"]) == (700.0, None)


@pytest.mark.parametrize("error", ["NVMLError_DriverNotLoaded", "NVMLError_LibraryNotFound", "NVMLError"])
def test_without_a_driver_that_answers_there_is_no_figure_and_nothing_ends(library: Library, error: str) -> None:
    library(nvmlInit=failing(error))
    assert (nvml.reading_of(0), nvml.environment_of(0)) == (nvml.Reading(), {})
    assert capture(GPU)["device"] == "Acme A1"
    assert "power_w" not in _one_look(Sampler(GPU))["channels"]


def test_a_gpu_that_is_lost_in_the_middle_ends_no_telemetry(library: Library) -> None:
    library(nvmlDeviceGetHandleByIndex=failing("NVMLError"))
    assert nvml.reading_of(0) == nvml.Reading()
    library(nvmlDeviceGetPowerUsage=failing("NVMLError"))
    seen = nvml.reading_of(0).figures
    assert (seen["power_w"], seen["temperature_c"]) == (None, 61.0)


def test_the_library_is_ended_as_often_as_it_was_begun(library: Library) -> None:
    calls: list[str] = []
    library(nvmlInit=lambda: calls.append("begun"), nvmlShutdown=lambda: calls.append("ended"))
    with nvml.kept_ready():
        nvml.reading_of(0)
        nvml.environment_of(0)
        nvml.gpus()
        nvml.use_of(0)
    assert (calls.count("begun"), calls.count("ended"), calls[0], calls[-1]) == (5, 5, "begun", "ended")
    Sampler(GPU).start().stop()
    assert calls.count("begun") == calls.count("ended") > 5


def test_processes_of_the_job_are_nobody_elses(library: Library) -> None:
    library(nvmlDeviceGetComputeRunningProcesses=lambda _: [SimpleNamespace(pid=os.getpid()), SimpleNamespace(pid=2**30)])
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
