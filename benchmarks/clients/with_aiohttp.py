"""aiohttp, used as load generators use it: each line of the answer stamped and read as it comes."""

import json
from functools import partial
from time import perf_counter_ns

import aiohttp

from benchmarks.clients.outcome import Outcome, Task, in_streams, main


async def client(task: Task) -> Outcome:
    """`streams` coroutines that each post and read."""
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{task.port}", connector=connector, timeout=timeout, trust_env=False) as session:
        return await in_streams(task, partial(_stream, session))


async def _stream(session: aiohttp.ClientSession, task: Task, outcome: Outcome) -> None:
    for _ in range(task.requests):
        stamps: list[int] = []
        sent = perf_counter_ns()
        async with session.post("/v1/chat/completions", json=task.body) as response:
            async for line in response.content:
                now = perf_counter_ns()
                line = line.strip()
                if not line.startswith(b"data: ") or line == b"data: [DONE]":
                    continue
                outcome.events += 1
                event = json.loads(line[6:])
                if event["choices"] and event["choices"][0]["delta"].get("content"):
                    stamps.append(now)
        outcome.add(sent, stamps)


if __name__ == "__main__":
    main(client)
