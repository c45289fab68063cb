"""What was around a measurement goes into its document, and from there into the run's flags."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.domain.run import Run
from app.formats import read_runs
from app.formats.phaseline_document import Passes, Point, document, write_document
from app.worker import telemetry
from app.worker.devices import Device
from app.worker.surroundings import Surroundings
from tests.worker.drivers import Library

SOMEBODY = 2**30
GPU = Device("gpu-1", "NVIDIA H200", "gpu", backends=("torch",))


class Looks:
    """What the driver lists, which a test changes while the sampler looks, and how often it was asked."""

    def __init__(self) -> None:
        self.listed = [os.getpid()]
        self.taken = 0

    def __call__(self, device: object) -> list[SimpleNamespace]:
        self.taken += 1
        return [SimpleNamespace(pid=pid) for pid in self.listed]

    def some_more(self) -> None:
        until, wanted = time.monotonic() + 10, self.taken + 3
        while self.taken < wanted and time.monotonic() < until:
            time.sleep(0.005)
        assert self.taken >= wanted


@pytest.fixture
def looks(library: Library, monkeypatch: pytest.MonkeyPatch) -> Looks:
    monkeypatch.setattr(telemetry, "INTERVAL_S", 0.01)
    made = Looks()
    library(nvmlDeviceGetComputeRunningProcesses=made)
    return made


def measured(folder: Path, looks: Looks, comes: int) -> Run:
    """A run during which a process comes to the device after a few looks."""
    around, began = Surroundings(GPU, os.getpgid(0)), time.monotonic()
    looks.some_more()
    looks.listed.append(comes)
    looks.some_more()
    point = Point(window_s=(began, time.monotonic()), model="m", prompt_tokens=8, output_tokens=2, passes=Passes([0.1] * 3, [[0.01]] * 3))
    around.stop()
    write_document(folder / "result.json", document("inprocess_sweep", "inprocess 1", {}, [point]))
    around.put_into(folder / "result.json")
    assert json.loads((folder / "result.json").read_bytes())["environment"]["driver"] == "580.1"
    (run,) = read_runs("result.json", (folder / "result.json").read_bytes()).runs
    return run


def test_a_process_that_comes_to_the_gpu_in_the_middle_of_a_run_makes_it_contended(tmp_path: Path, looks: Looks) -> None:
    run = measured(tmp_path, looks, SOMEBODY)
    (flag,) = [flag for flag in run.flags if flag.flag == "contended"]
    assert flag.figures == {"other_processes": 1.0}
    assert flag.evidence.startswith("Up to 1 other processes used the device during the run")


def test_the_jobs_own_processes_do_not(tmp_path: Path, looks: Looks) -> None:
    run = measured(tmp_path, looks, os.getpid())
    assert run.telemetry is not None
    assert run.telemetry.known("other_processes").max() == 0
    assert [flag for flag in run.flags if "other_processes" in flag.figures] == []
