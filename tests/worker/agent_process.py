"""The agent with a stand-in for the measuring process, as a process of its own: `agent_process.py SERVER FOLDER DEVICE [--once]`.

With `--dies-last` it is killed between bringing a result and saying how the job ended; with `--loses-at-claim` the stand-in driver falls
silent as soon as a job was taken.
"""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.domain.errors import PhaselineError
from app.logs import configure_logging
from app.worker.agent import Agent, Options
from app.worker.devices import Device
from app.worker.server import WAIT_S, Server
from app.worker.state import State

STAND_IN = Path(__file__).with_name("stand_in.py")


def stand_in(kind: str, folder: Path) -> list[str]:
    return [sys.executable, "-I", str(STAND_IN), kind, str(folder)]


class DiesLast(Server):
    def finish(self, job: int, attempt: int, outcome: str, reason: str | None) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class LosesAtClaim(Server):
    def claim(self, free: Sequence[str], holding: Sequence[int], wait_s: float = WAIT_S) -> Mapping[str, Any] | None:
        job = super().claim(free, holding, wait_s)
        if job is not None:
            Path(os.environ["STAND_IN_GPU_LOST"]).touch()
        return job


SERVERS = {"--dies-last": DiesLast, "--loses-at-claim": LosesAtClaim}


def main() -> int:
    address, folder, key, *rest = sys.argv[1:]
    configure_logging()
    is_gpu = key.startswith("gpu")
    device = Device(key, "Stand-in GPU", "gpu", backends=("torch",)) if is_gpu else Device(key, "Stand-in CPU", "cpu", backends=("numpy",))
    options = Options(name=key, once="--once" in rest, wait_s=5.0, measure=stand_in, find=lambda: [device])
    try:
        server = next((SERVERS[word] for word in rest if word in SERVERS), Server)
        return Agent(server(address), State(Path(folder)), options).run()
    except PhaselineError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
