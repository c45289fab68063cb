"""After any kill -9 of worker or server no job is lost and none is finished twice."""

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
    assert (outcome.lost, outcome.finished_twice, outcome.runs_missing) == (0, 0, 0)
    assert all(seconds <= LEASE_S + 5.0 for seconds in outcome.requeue_s)


def test_a_few_kills_lose_nothing(tmp_path: Path) -> None:
    sound(killed(tmp_path, 4, seed=3), 4)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    sound(killed(tmp_path, 100, seed=1), 100)
