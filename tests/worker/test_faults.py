"""After any kill -9 of worker or server no job is lost and none is finished twice."""

import signal
from pathlib import Path

import pytest

from tests.worker.faults import LEASE_S, Outcome, kill_again_and_again
from tests.worker.processes import Site


def killed(folder: Path, kills: int, seed: int) -> Outcome:
    site = Site(folder, LEASE_S=str(LEASE_S))
    try:
        return kill_again_and_again(site, kills, seed)
    finally:
        site.close()


def sound(outcome: Outcome, kills: int) -> None:
    assert outcome.kills == outcome.jobs == kills
    assert (outcome.lost, outcome.finished_twice, outcome.runs_missing, outcome.runs_of_nobody) == (0, 0, 0, 0)
    assert all(seconds <= LEASE_S + 5.0 for seconds in outcome.requeue_s)


def test_a_few_kills_lose_nothing(tmp_path: Path) -> None:
    sound(killed(tmp_path, 4, seed=3), 4)


def test_a_worker_that_dies_between_its_result_and_its_last_word_leaves_no_run(tmp_path: Path) -> None:
    site = Site(tmp_path, LEASE_S=str(LEASE_S))
    try:
        site.start_server()
        number = site.ask_for(0)
        assert site.start_agent("cpu-a", "--dies-last").wait(60) == -signal.SIGKILL
        (brought,) = site.job(number)["run_ids"]
        assert site.get(f"/api/v1/runs/{brought}")
        site.start_agent("cpu-a")
        job = site.until(number, "succeeded")
        assert (job["attempt"], job["lost_workers"], len(job["run_ids"])) == (2, 1, 1)
        assert [run["id"] for run in site.get("/api/v1/runs")["items"]] == job["run_ids"] != [brought]
        assert "[1] info: Runs of this attempt that were taken back: 1." in site.log(number)
    finally:
        site.close()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    sound(killed(tmp_path, 100, seed=1), 100)
