"""Two small requests before any point: what this server refuses, whether it counts tokens, and how many a word makes."""

import asyncio
from dataclasses import dataclass

from app.domain.errors import PhaselineError
from app.worker.load.connection import Connection, refused_status
from app.worker.load.events import Reply, read_reply
from app.worker.load.exchange import Exchange
from app.worker.load.link import Link
from app.worker.load.prompts import Prompts, TokensPerWord, tokens_per_word
from app.worker.load.request import Asking, refused_parameters

_FEW, _MANY = 16, 144
_TOKENS = 4
_REFUSALS = 3
_PROBES = 2**31
_HINTS = {
    401: "give the key that the server asks for",
    403: "give a key that may use this model",
    404: "look at the model's name and at the path before /v1",
    429: "the server limits requests: wait, or raise its limit",
}


class ServerRefused(PhaselineError):
    """The server does not answer what is needed to measure it: the message says what it did, never what it wrote."""


@dataclass(frozen=True)
class Probed:
    """How to ask from now on, what a word costs (None: the server does not count), and what was left out for it."""

    asking: Asking
    words: TokensPerWord | None
    left_out: tuple[str, ...]
    counts: bool
    continuous: bool


async def single(link: Link, data: bytes, timeout_s: float) -> Exchange:
    """One request on a connection of its own; raises Unreachable where there is none."""
    ended: asyncio.Future[Exchange] = asyncio.get_running_loop().create_future()

    def finished(connection: Connection, exchange: Exchange) -> None:
        if not ended.done():
            ended.set_result(exchange)

    connection = await link.open(finished)
    exchange = Exchange(data)
    timer = asyncio.get_running_loop().call_later(timeout_s, connection.abandon, exchange, f"no end within {timeout_s:g} s")
    try:
        connection.send(exchange)
        return await ended
    finally:
        timer.cancel()
        connection.close()


async def probe(link: Link, asking: Asking, seed: int, timeout_s: float) -> Probed:
    """Ask twice. Raises ServerRefused with what to do about it, and Unreachable."""
    prompts = Prompts(seed, _PROBES)
    given = asking
    asking, few = await _accepted(link, asking, prompts.next(_FEW), timeout_s)
    exchange = await single(link, asking.template(_TOKENS).filled(prompts.next(_MANY)), timeout_s)
    many = read_reply(exchange)
    if many.error is not None:
        raise ServerRefused(_sentence(many.error, exchange.status))
    counted = few.prompt_tokens is not None and many.prompt_tokens is not None
    words = tokens_per_word((_FEW, few.prompt_tokens or 0), (_MANY, many.prompt_tokens or 0)) if counted else None
    return Probed(
        asking=asking,
        words=words,
        left_out=tuple(sorted(asking.without - given.without)),
        counts=many.output_tokens is not None,
        continuous=bool(many.counts),
    )


async def _accepted(link: Link, asking: Asking, prompt: bytes, timeout_s: float) -> tuple[Asking, Reply]:
    """The first answer with tokens, and how it was asked for."""
    for _ in range(_REFUSALS):
        exchange = await single(link, asking.template(_TOKENS).filled(prompt), timeout_s)
        refused = refused_parameters(exchange.status, exchange.body, asking.without)
        status, reply = exchange.status, read_reply(exchange)
        if reply.error is None:
            return asking, reply
        if not refused:
            raise ServerRefused(_sentence(reply.error, status))
        asking = asking.giving_up(refused)
    raise ServerRefused(_sentence(refused_status(status) or "the server refuses", status))


def _sentence(what: str, status: int) -> str:
    hint = _HINTS.get(status, "see its own log" if status != 200 else "try the other API, chat or completions")
    return f"The server cannot be measured: {what}; {hint}."
