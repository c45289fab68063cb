"""httpx, used as load generators use it: each line of the answer stamped and read as it comes."""

import asyncio
import json
from time import perf_counter_ns

import httpx

from benchmarks.clients.outcome import Cost, Outcome, Task, main


async def client(task: Task) -> Outcome:
    """`streams` coroutines that each post and read."""
    outcome, cost = Outcome(), Cost()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{task.port}", limits=limits, timeout=120, trust_env=False) as session:
        short = Task(task.port, task.streams, 1, 1)
        await asyncio.gather(*(_stream(session, short, Outcome()) for _ in range(task.streams)))
        cost.start()
        await asyncio.gather(*(_stream(session, task, outcome) for _ in range(task.streams)))
        cost.stop(outcome)
    return outcome


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
