"""The folder of one attempt, and the end of every process that still belongs to it.

Processes are found by a variable of their environment, which names their folder: it reaches grandchildren too, and those that left the
process group.
"""

import os
import shutil
import signal
import time
from pathlib import Path

MARK = "PHASELINE_JOB_FOLDER"
_PROC = Path("/proc")
_GONE_WITHIN_S = 5.0


def make_folder(parent: Path, job: int, attempt: int) -> Path:
    """A new, empty folder that only this user can read."""
    folder = parent / f"job-{job}-{attempt}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    (folder / "tmp").mkdir(mode=0o700)
    return folder


def processes_of(folder: Path) -> list[int]:
    """The processes whose environment says that they belong to `folder`, or to one below it."""
    wanted = f"{MARK}={folder}".encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:  # ended meanwhile, or another user's
            continue
        if any(item == wanted or item.startswith(wanted + b"/") for item in environment.split(b"\0")):
            found.append(int(entry.name))
    return found


def end_processes_of(folder: Path) -> int:
    """Kill them all, and wait until they are gone; how many there were."""
    seen: set[int] = set()
    until = time.monotonic() + _GONE_WITHIN_S
    while (alive := processes_of(folder)) and time.monotonic() < until:
        seen.update(alive)
        for pid in alive:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.02)
    return len(seen)


def sweep(parent: Path) -> int:
    """What an agent that was killed left behind in `parent`: its processes end, its folders go. How many processes there were."""
    ended = end_processes_of(parent)
    for folder in parent.glob("job-*-*"):
        shutil.rmtree(folder, ignore_errors=True)
    return ended


def remove(folder: Path) -> None:
    """End what still runs there and remove it."""
    end_processes_of(folder)
    shutil.rmtree(folder, ignore_errors=True)
