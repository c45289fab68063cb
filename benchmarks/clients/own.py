"""Our own load client."""

from app.domain.addresses import parse_destination
from app.worker.load.link import Link, checked_address
from app.worker.load.loops import ClosedLoop
from app.worker.load.prompts import Prompts
from app.worker.load.request import Asking
from app.worker.load.supply import Supply
from benchmarks.clients.outcome import Cost, Outcome, Task, main


async def client(task: Task) -> Outcome:
    """A closed loop; reading the answers belongs to its cost."""
    destination = parse_destination(f"http://127.0.0.1:{task.port}", ("127.0.0.0/8",))
    link = Link(destination, await checked_address(destination))
    asking = Asking(destination, "mock", "chat").giving_up(frozenset({"ignore_eos", "min_tokens", "continuous_usage_stats"}))
    warm = Supply(Prompts(0, 0), asking.template(1), 100)
    await ClosedLoop(link, warm, task.streams, 0.0, task.streams, 120.0).run()
    loop = ClosedLoop(
        link, Supply(Prompts(0, 1), asking.template(task.tokens), 100), task.streams, 0.0, task.streams * task.requests, 120.0
    )
    cost, outcome = Cost(), Outcome()
    cost.start()
    await loop.run()
    for exchange, reply in loop.answers.finish():
        outcome.add(exchange.sent, reply.stamps if reply.error is None else ())
        outcome.events += reply.events
    cost.stop(outcome)
    return outcome


if __name__ == "__main__":
    main(client)
