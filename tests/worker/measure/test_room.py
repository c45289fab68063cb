"""Memory that others take while a point runs, by readers that say what a test wants."""

import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from app.worker.measure import room
from app.worker.measure.room import Memory, Room, gpu_memory, system_memory, watched

GB = 10**9


def reader(*values: int | None) -> Callable[[], int | None]:
    """Gives one value at each look, the last again and again."""
    left: Iterator[int | None] = iter(values[:-1])
    return lambda: next(left, values[-1])


def test_what_the_point_holds_already_need_not_be_free() -> None:
    # 10 GB in all: 4 are held, so that 6 are missing.
    found = Room(Memory(reader(6 * GB, 6 * GB - 1), reader(4 * GB)), 10 * GB)
    found.look()
    found.require()
    found.look()
    with pytest.raises(MemoryError, match=r"6\.00 GB are still needed and 6\.00 GB are free"):
        found.require()


def test_a_point_that_has_all_it_needs_does_not_mind_a_full_memory() -> None:
    found = Room(Memory(reader(0), reader(11 * GB)), 10 * GB)
    found.look()
    assert found.short is None


def test_once_short_it_stays_so() -> None:
    found = Room(Memory(reader(1, 100 * GB), reader(0)), 10 * GB)
    found.look()
    found.look()
    assert found.short is not None


@pytest.mark.parametrize(("free", "held"), [(None, 0), (0, None)])
def test_where_nobody_says_what_is_free_nothing_is_concluded(free: int | None, held: int | None) -> None:
    found = Room(Memory(reader(free), reader(held)), 10 * GB)
    found.look()
    assert found.short is None


def test_it_is_looked_at_again_and_again_until_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "EVERY_S", 0.001)
    looks: list[float] = []

    def free() -> int:
        looks.append(time.monotonic())
        return 0 if len(looks) >= 5 else 20 * GB

    with watched(Memory(free, lambda: 0), 10 * GB) as found:
        until = time.monotonic() + 10
        while found.short is None and time.monotonic() < until:
            time.sleep(0.001)
    assert found.short is not None
    assert len(looks) >= 5
    ended = len(looks)
    time.sleep(0.02)
    assert len(looks) == ended


def test_main_memory_counts_what_was_taken_since() -> None:
    memory = system_memory()
    before = memory.held()
    kept = np.ones(16_000_000)
    after = memory.held()
    assert before is not None
    assert after is not None
    assert after - before > 0.9 * kept.nbytes
    free = memory.free()
    assert free is not None
    assert free > 0


def test_a_gpu_says_what_is_free_and_torch_what_it_set_aside() -> None:
    class Cuda:
        mem_get_info = staticmethod(lambda device: (5 * GB, 80 * GB))
        memory_reserved = staticmethod(lambda device: 60 * GB)

    class Torch:
        cuda = Cuda

    memory = gpu_memory(Torch, "cuda:0")
    assert (memory.free(), memory.held()) == (5 * GB, 60 * GB)
