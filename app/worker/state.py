"""What a worker keeps on its machine: who it is, where attempts work, that it is alive, and which device is in use."""

import fcntl
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.domain.errors import PhaselineError


class StateTaken(PhaselineError):
    """Another worker runs with the same folder."""


class State:
    """A folder of one worker. `keys` is where keys of targets may lie."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.jobs, self.keys, self.alive = self.folder / "jobs", self.folder / "keys", self.folder / "alive"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else uses the folder meanwhile. Raises StateTaken."""
        try:
            self.jobs.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StateTaken(
                f"{self.folder} cannot be used ({error.strerror}): set PHASELINE_WORKER_DIR to a folder of the worker."
            ) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(lock)
            raise StateTaken(f"Another worker runs with {self.folder}: stop it, or set PHASELINE_WORKER_DIR to another folder.") from error
        try:
            yield
        finally:
            os.close(lock)

    def identity(self) -> str:
        """The worker's own secret, made at its first start."""
        path = self.folder / "identity"
        try:
            held = path.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            held = ""
        if len(held) >= 32:
            return held
        made = secrets.token_urlsafe(32)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="ascii") as file:
            file.write(made)
        return made

    def touch(self) -> None:
        """Say that the worker is alive: the time of this file is what a health check looks at."""
        self.alive.touch()


@contextmanager
def device_lock(key: str) -> Iterator[bool]:
    """Whether the device is ours meanwhile: no other worker of this machine, of whatever server, measures on it."""
    folder = Path(tempfile.gettempdir()) / "phaseline-devices"
    try:
        folder.mkdir(mode=0o1777, exist_ok=True)
        lock = os.open(folder / f"{key}.lock", os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError:
        # A folder of somebody else's: the server's own rule, one job a device, is what is left.
        yield True
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
    finally:
        os.close(lock)
