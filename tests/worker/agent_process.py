"""The agent with a stand-in for the measuring process, as a process of its own: `agent_process.py SERVER FOLDER DEVICE [--once]`.

With `--dies-last` it is killed between bringing a result and saying how the job ended.
"""

import os
import signal
import sys
from pathlib import Path

from app.domain.errors import PhaselineError
from app.logs import configure_logging
from app.worker.agent import Agent, Options
from app.worker.devices import Device
from app.worker.server import Server
from app.worker.state import State

STAND_IN = Path(__file__).with_name("stand_in.py")


def stand_in(kind: str, folder: Path) -> list[str]:
    return [sys.executable, "-I", str(STAND_IN), kind, str(folder)]


class DiesLast(Server):
    def finish(self, job: int, attempt: int, outcome: str, reason: str | None) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    address, folder, key, *rest = sys.argv[1:]
    configure_logging()
    is_gpu = key.startswith("gpu")
    device = Device(key, "Stand-in GPU", "gpu", backends=("torch",)) if is_gpu else Device(key, "Stand-in CPU", "cpu", backends=("numpy",))
    options = Options(name=key, once="--once" in rest, wait_s=5.0, measure=stand_in, find=lambda: [device])
    try:
        return Agent((DiesLast if "--dies-last" in rest else Server)(address), State(Path(folder)), options).run()
    except PhaselineError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
