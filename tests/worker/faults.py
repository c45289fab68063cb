"""Kill -9 of workers and of the server in the middle of jobs, again and again, and what became of the jobs afterwards.

Run by hand: `python -m tests.worker.faults 100` prints one JSON object.
"""

import json
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.worker.processes import Site, eventually

LEASE_S = 10.0
_PATIENCE_S = 240.0


@dataclass
class Outcome:
    """What was counted. `requeue_s` are the times from a worker's death to its job's return into the queue."""

    kills: int = 0
    jobs: int = 0
    lost: int = 0
    finished_twice: int = 0
    runs_missing: int = 0
    runs_of_nobody: int = 0
    requeue_s: list[float] = field(default_factory=list)

    def figures(self) -> dict[str, Any]:
        times = sorted(self.requeue_s)
        return {
            "kills": self.kills,
            "jobs": self.jobs,
            "lost": self.lost,
            "finished_twice": self.finished_twice,
            "runs_missing": self.runs_missing,
            "runs_of_nobody": self.runs_of_nobody,
            "requeue_p50_s": times[len(times) // 2] if times else None,
            "requeue_max_s": times[-1] if times else None,
            "lease_s": LEASE_S,
        }


def kill_again_and_again(site: Site, kills: int, seed: int) -> Outcome:
    """One job for each kill; who dies is drawn: the worker (started again at once, or when the server has noticed), the server, or both."""
    draw, outcome = random.Random(seed), Outcome()
    site.start_server()
    site.start_agent()
    numbers: list[int] = []
    for _ in range(kills):
        number = site.ask_for(6, draw.uniform(0.2, 1.5))
        numbers.append(number)
        site.until(number, "running", "succeeded", within_s=_PATIENCE_S)
        time.sleep(draw.uniform(0.0, 1.0))
        victim = draw.choice(["worker", "worker and wait", "server", "both"])
        outcome.kills += 1
        _strike(site, number, victim, outcome)
        site.until(number, "succeeded", "failed", "lost", within_s=_PATIENCE_S)
    outcome.jobs = len(numbers)
    _judge(site, numbers, outcome)
    return outcome


def _strike(site: Site, number: int, victim: str, outcome: Outcome) -> None:
    if victim in ("server", "both"):
        site.kill(site.server)
    if victim != "server":
        site.kill(site.agents["cpu-a"])
    began = time.monotonic()
    if victim in ("server", "both"):
        site.start_server()
    if victim == "worker and wait":
        # One that had just finished has nothing to be taken back.
        state = eventually(lambda: found if (found := site.job(number)["state"]) != "running" else None, _PATIENCE_S)
        if state == "queued":
            outcome.requeue_s.append(time.monotonic() - began)
    if victim != "server":
        site.start_agent()


def _judge(site: Site, numbers: list[int], outcome: Outcome) -> None:
    linked: set[int] = set()
    for number in numbers:
        job = site.job(number)
        outcome.lost += job["state"] != "succeeded"
        outcome.finished_twice += site.log(number).count("state: succeeded") > 1
        outcome.runs_missing += len(job["run_ids"]) != 1
        linked.update(job["run_ids"])
    stored = {run["id"] for run in site.get("/api/v1/runs?limit=500")["items"]}
    outcome.runs_of_nobody = len(stored - linked)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), LEASE_S=str(LEASE_S))
        try:
            found = kill_again_and_again(site, int(sys.argv[1]), seed=1)
        finally:
            site.close()
    sys.stdout.write(json.dumps(found.figures()) + "\n")


if __name__ == "__main__":
    main()
