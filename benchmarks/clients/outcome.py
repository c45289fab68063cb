"""What every client prints: per request the time to its first token and its gaps, in seconds, and what it cost."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from time import perf_counter_ns, process_time_ns
from typing import Any

import uvloop

PROMPT = " ".join(["word"] * 100)


@dataclass
class Outcome:
    """`ttft_s` of each request, `gaps_s` of all; processor seconds from the first request to the last figure, and events read."""

    ttft_s: list[float] = field(default_factory=list)
    gaps_s: list[float] = field(default_factory=list)
    events: int = 0
    failed: int = 0
    cpu_s: float = 0.0
    wall_s: float = 0.0

    def add(self, sent: int, stamps: Sequence[int]) -> None:
        """One answer: when its request was sent and when its tokens were read, in ns."""
        if not stamps:
            self.failed += 1
            return
        self.ttft_s.append((stamps[0] - sent) / 1e9)
        self.gaps_s.extend((later - earlier) / 1e9 for earlier, later in pairwise(stamps))


@dataclass(frozen=True)
class Task:
    """The load: `streams` clients in a closed loop, `requests` each, of `tokens` output tokens."""

    port: int
    streams: int
    requests: int
    tokens: int

    @property
    def body(self) -> dict[str, object]:
        """What every client sends, a fresh object each time as it would in use."""
        return {
            "model": "mock",
            "messages": [{"role": "user", "content": PROMPT}],
            "max_tokens": self.tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }


Stream = Callable[[Task, Outcome], Coroutine[Any, Any, None]]
Client = Callable[[Task], Coroutine[Any, Any, Outcome]]


def main(client: Client) -> None:
    """Let the client do the task, which warms up with one short request a stream, and print the outcome."""
    parser = argparse.ArgumentParser()
    for name in ("port", "streams", "requests", "tokens"):
        parser.add_argument(name, type=int)
    parser.add_argument("--core", type=int)
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    task = Task(options.port, options.streams, options.requests, options.tokens)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        outcome = runner.run(client(task))
    sys.stdout.write(json.dumps(asdict(outcome)) + "\n")


class Cost:
    """Processor and wall time from `start` to `stop`."""

    def __init__(self) -> None:
        self._cpu = self._wall = 0

    def start(self) -> None:
        """The first request is sent now."""
        self._cpu, self._wall = process_time_ns(), perf_counter_ns()

    def stop(self, outcome: Outcome) -> None:
        """Every figure is there."""
        outcome.cpu_s, outcome.wall_s = (process_time_ns() - self._cpu) / 1e9, (perf_counter_ns() - self._wall) / 1e9


async def in_streams(task: Task, stream: Stream) -> Outcome:
    """The task by `streams` coroutines, after one short request each to warm up."""
    outcome, cost = Outcome(), Cost()
    short = Task(task.port, task.streams, 1, 1)
    await asyncio.gather(*(stream(short, Outcome()) for _ in range(task.streams)))
    cost.start()
    await asyncio.gather(*(stream(task, outcome) for _ in range(task.streams)))
    cost.stop(outcome)
    return outcome
