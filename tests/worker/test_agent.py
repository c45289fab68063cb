"""The agent against a real server, with a stand-in for the measuring process: every way in which a job can end."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.worker.scratch import processes_of
from tests.worker.processes import Site, eventually


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with a short lease and one agent, for all tests of the file."""
    made = Site(tmp_path_factory.mktemp("site"), LEASE_S="10")
    try:
        made.start_server()
        made.start_agent()
        yield made
    finally:
        made.close()


def jobs_of(site: Site) -> Path:
    return site.folder.resolve() / "cpu-a" / "jobs"


def test_a_job_becomes_runs_and_leaves_nothing_behind(site: Site) -> None:
    job = site.until(site.ask_for(0, label="stand-in"), "succeeded")
    assert len(job["run_ids"]) == 1
    assert job["points"] == [{"phase": "decode", "itl_s": 0.01}]
    assert job["progress"]["done"] == 2
    assert site.get(f"/api/v1/runs/{job['run_ids'][0]}")["label"] == "stand-in"
    eventually(lambda: list(jobs_of(site).iterdir()) == [])


@pytest.mark.parametrize(
    ("seed", "state", "reason"),
    [(1, "failed", "status 1: ValueError: no such thing"), (4, "failed", "out of memory"), (5, "refused", "too large for this device"),
     (7, "failed", "without a result")],
)  # fmt: skip
def test_how_it_ends_is_said(site: Site, seed: int, state: str, reason: str) -> None:
    job = site.until(site.ask_for(seed), "failed", "refused", "succeeded")
    assert job["state"] == state
    assert reason in job["reason"]
    assert job["lost_workers"] == 0


def test_a_lost_device_burns_no_attempt(site: Site) -> None:
    number = site.ask_for(3)
    job = eventually(lambda: found if (found := site.job(number))["attempt"] == 1 and found["state"] == "queued" else None)
    assert job["lost_workers"] == 0
    assert "fell off the bus" in job["reason"]
    site.post(f"/jobs/{number}/cancel", {})


def test_a_hung_job_is_ended_at_its_limit_with_no_process_left_and_keeps_what_it_had(site: Site) -> None:
    began = time.monotonic()
    number = site.ask_for(2, limit_s=1.0)
    site.until(number, "running")
    eventually(lambda: len(processes_of(jobs_of(site))) >= 3)  # guard, process, and one in a session of its own
    job = site.until(number, "timeout", within_s=25)
    # Limit and grace, and the time of start and report.
    assert time.monotonic() - began < 1.0 + 10.0 + 6.0
    assert "limit of 1 s" in job["reason"]
    assert len(job["run_ids"]) == 1
    assert processes_of(jobs_of(site)) == []


def test_a_cancelled_job_ends_within_seconds(site: Site) -> None:
    number = site.ask_for(6, 30)
    site.until(number, "running")
    site.post(f"/jobs/{number}/cancel", {})
    assert site.until(number, "cancelled", within_s=10)["cancel_requested"]
    eventually(lambda: processes_of(jobs_of(site)) == [])


def test_no_secret_reaches_the_log(site: Site) -> None:
    number = site.ask_for(8)
    site.until(number, "succeeded")
    log = site.log(number)
    assert "calling with Bearer … and sk-…" in log
    assert "canary" not in log


def test_what_is_no_event_is_a_line_of_the_log(site: Site) -> None:
    number = site.ask_for(9)
    job = site.until(number, "succeeded")
    assert "info: hello" in site.log(number)
    assert job["points"][0]["b"] is None


def test_when_the_agent_is_killed_its_processes_die_and_the_job_goes_on_at_once_after_its_start(site: Site) -> None:
    number = site.ask_for(6, 1.0)
    site.until(number, "running")
    eventually(lambda: len(processes_of(jobs_of(site))) >= 2)
    site.kill(site.agents["cpu-a"])
    eventually(lambda: processes_of(jobs_of(site)) == [], 5)
    site.start_agent()
    job = site.until(number, "succeeded")
    assert (job["attempt"], job["lost_workers"]) == (2, 1)
    assert "its worker started anew" in site.log(number)


def test_a_dead_worker_is_noticed_within_its_lease(site: Site) -> None:
    number = site.ask_for(6, 20.0)
    site.until(number, "running")
    site.kill(site.agents["cpu-a"])
    began = time.monotonic()
    site.until(number, "queued")
    assert time.monotonic() - began < 10.0 + 5.0
    site.post(f"/jobs/{number}/cancel", {})
    site.start_agent()


def test_a_restarted_server_finds_its_job_measured(site: Site) -> None:
    number = site.ask_for(6, 3.0)
    site.until(number, "running")
    site.kill(site.server)
    time.sleep(0.5)
    site.start_server()
    job = site.until(number, "succeeded")
    assert (job["attempt"], job["lost_workers"], len(job["run_ids"])) == (1, 0, 1)


def test_a_stopped_agent_gives_its_job_back_and_leaves(site: Site) -> None:
    number = site.ask_for(6, 20.0)
    site.until(number, "running")
    agent = site.agents["cpu-a"]
    agent.send_signal(signal.SIGTERM)
    assert agent.wait(15) == 0
    job = site.job(number)
    assert (job["state"], job["lost_workers"]) == ("queued", 0)
    assert [worker["state"] for worker in site.get("/api/v1/workers")["items"]] == ["left"]
    site.post(f"/jobs/{number}/cancel", {})
    # An idle one stops at once, in the middle of its wait.
    idle = site.start_agent()
    eventually(lambda: [worker["state"] for worker in site.get("/api/v1/workers")["items"]] == ["idle"])
    began = time.monotonic()
    idle.send_signal(signal.SIGTERM)
    assert idle.wait(10) == 0
    assert time.monotonic() - began < 4.5  # the wait is 5 s
    site.start_agent()


def test_two_agents_do_not_share_a_folder(site: Site) -> None:
    first = site.agents["cpu-a"]
    eventually(lambda: [worker["state"] for worker in site.get("/api/v1/workers")["items"]] == ["idle"])
    second = site.start_agent("cpu-a")
    assert second.wait(15) == 2
    assert "Another worker runs with" in (site.folder / "cpu-a.log").read_text()
    assert first.poll() is None
    site.agents["cpu-a"] = first


def test_a_server_stops_quickly_while_an_agent_waits(site: Site) -> None:
    eventually(lambda: [worker["state"] for worker in site.get("/api/v1/workers")["items"]] == ["idle"])
    server = site.server
    assert server is not None
    began = time.monotonic()
    os.kill(server.pid, signal.SIGTERM)
    server.wait(20)
    assert time.monotonic() - began < 5
    site.start_server()
