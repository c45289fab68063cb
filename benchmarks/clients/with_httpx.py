"""httpx, used as load generators use it: each line of the answer stamped and read as it comes."""

import json
from functools import partial
from time import perf_counter_ns

import httpx

from benchmarks.clients.outcome import Outcome, Task, in_streams, main


async def client(task: Task) -> Outcome:
    """`streams` coroutines that each post and read."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{task.port}", limits=limits, timeout=120, trust_env=False) as session:
        return await in_streams(task, partial(_stream, session))


async def _stream(session: httpx.AsyncClient, task: Task, outcome: Outcome) -> None:
    for _ in range(task.requests):
        stamps: list[int] = []
        sent = perf_counter_ns()
        async with session.stream("POST", "/v1/chat/completions", json=task.body) as response:
            async for line in response.aiter_lines():
                now = perf_counter_ns()
                if not line.startswith("data: ") or line == "data: [DONE]":
                    continue
                outcome.events += 1
                event = json.loads(line[6:])
                if event["choices"] and event["choices"][0]["delta"].get("content"):
                    stamps.append(now)
        outcome.add(sent, stamps)


if __name__ == "__main__":
    main(client)
