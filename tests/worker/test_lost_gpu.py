"""A GPU whose driver falls silent: from the child's exit, or the probe, to the state of the queue. No attempt is burned by it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.worker.measure import __main__ as measuring
from app.worker.measure.job import DeviceLost
from app.worker.scratch import processes_of
from tests.worker.drivers import DRIVER
from tests.worker.processes import Site, eventually


@pytest.fixture
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server, and for agents the stand-in driver, which answers until the file `lost` is there."""
    made = Site(tmp_path_factory.mktemp("gpu"), LEASE_S="10")
    path = os.pathsep.join((made.environment["PYTHONPATH"], str(DRIVER)))
    made.environment |= {"PYTHONPATH": path, "STAND_IN_GPU_LOST": str(made.folder / "lost")}
    try:
        made.start_server()
        yield made
    finally:
        made.close()


def test_a_child_that_ends_with_75_gives_the_job_back_and_the_agent_goes_on(site: Site) -> None:
    agent = site.start_agent("gpu-a")
    number = site.ask_for(3)
    job = eventually(lambda: found if (found := site.job(number))["attempt"] == 1 and found["state"] == "queued" else None)
    assert job["lost_workers"] == 0
    assert job["reason"] == "the GPU fell off the bus"
    assert "state: queued, reason the GPU fell off the bus" in site.log(number)
    # The driver answers, so that the agent stays and takes the next job.
    assert site.until(site.ask_for(0), "succeeded")["device"] == f"gpu-a-{site.port}"
    assert agent.poll() is None
    site.post(f"/jobs/{number}/cancel", {})


def test_a_driver_that_falls_silent_ends_the_job_without_a_mark_and_the_agent_with_75(site: Site) -> None:
    agent = site.start_agent("gpu-a")
    number = site.ask_for(6, 30.0)
    site.until(number, "running")
    (site.folder / "lost").touch()
    assert agent.wait(30) == 75
    job = site.job(number)
    assert (job["state"], job["attempt"], job["lost_workers"]) == ("queued", 1, 0)
    assert job["reason"].endswith("does not answer: GPU is lost. In a container, restart it.")
    assert processes_of(site.folder.resolve() / "gpu-a" / "jobs") == []
    assert [worker["state"] for worker in site.get("/api/v1/workers")["items"]] == ["left"]
    # Started again while the driver is still silent, it takes nothing and ends the same way; nothing is marked against the job.
    assert site.start_agent("gpu-a").wait(30) == 75
    job = site.job(number)
    assert (job["state"], job["attempt"], job["lost_workers"]) == ("queued", 1, 0)
    site.post(f"/jobs/{number}/cancel", {})


def test_a_driver_that_falls_silent_before_the_job_has_a_process_is_the_reason_too(site: Site) -> None:
    number = site.ask_for(6, 30.0)
    assert site.start_agent("gpu-b", "--loses-at-claim").wait(30) == 75
    job = site.job(number)
    assert (job["state"], job["attempt"], job["lost_workers"]) == ("queued", 1, 0)
    assert job["reason"].endswith("does not answer: GPU is lost. In a container, restart it.")
    site.post(f"/jobs/{number}/cancel", {})


def test_the_measuring_process_says_75_for_a_lost_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(*_: object) -> None:
        raise DeviceLost("The device no longer answers (CUDA error: unspecified launch failure).")

    monkeypatch.setattr(measuring, "RUNNERS", {"device_microbench": lost})
    (tmp_path / "job.json").write_text('{"parameters": {}, "device": {"kind": "cuda", "name": "A1"}}')
    assert measuring.main(["device_microbench", str(tmp_path)]) == 75
    assert "unspecified launch failure" in capsys.readouterr().out
