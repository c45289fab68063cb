"""Whether the memory that a point needs is still there while it runs: others may take it after it was found to fit.

A thread looks once a second, so that no look falls into a timed pass; the sweep asks between passes what it saw. A point that would run
into a full memory ends as `oom` before the system ends somebody's process.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.worker import processor

EVERY_S = 1.0
_STATM = Path("/proc/self/statm")


@dataclass(frozen=True)
class Memory:
    """The memory of a job's device: bytes that are free, and bytes that the measuring took of it. None where nobody says."""

    free: Callable[[], int | None]
    held: Callable[[], int | None]


def system_memory() -> Memory:
    """Main memory; what is held counts from here on, since the interpreter and its libraries are there already."""
    before = _resident_bytes()

    def held() -> int | None:
        now = _resident_bytes()
        return None if now is None or before is None else max(now - before, 0)

    return Memory(processor.free_bytes, held)


def gpu_memory(torch: Any, device: Any) -> Memory:
    """That of a GPU; what torch has set aside for itself is not free, and is the job's own."""
    return Memory(lambda: int(torch.cuda.mem_get_info(device)[0]), lambda: int(torch.cuda.memory_reserved(device)))


class Room:
    """What was seen at the last look: `short` says why the point has to end, None while there is room."""

    def __init__(self, memory: Memory, needed: float) -> None:
        self._memory, self._needed = memory, needed
        self.short: str | None = None

    def look(self) -> None:
        """Hold what is free against what the point does not have yet. Once short it stays short."""
        free, held = self._memory.free(), self._memory.held()
        if free is None or held is None or self.short is not None:
            return
        missing = self._needed - held
        if missing > free:
            self.short = f"others took the memory: {missing / 1e9:.2f} GB are still needed and {free / 1e9:.2f} GB are free"

    def require(self) -> None:
        """Raise MemoryError when there is none left."""
        if self.short is not None:
            raise MemoryError(self.short)


@contextmanager
def watched(memory: Memory, needed: float) -> Iterator[Room]:
    """Looks every EVERY_S seconds until the block ends. `needed` are the bytes of the whole point, those that it holds among them."""
    room, over = Room(memory, needed), threading.Event()

    def watch() -> None:
        while not over.wait(EVERY_S):
            room.look()

    thread = threading.Thread(target=watch, name="room", daemon=True)
    thread.start()
    try:
        yield room
    finally:
        over.set()
        thread.join(timeout=10)


def _resident_bytes() -> int | None:
    """Main memory that this process holds."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
