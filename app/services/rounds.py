"""What the server does again and again without being asked, each round in a thread of its own."""

import asyncio
from collections.abc import Callable

import structlog
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from app.domain.errors import PhaselineError

log = structlog.get_logger()


async def in_rounds(work: Callable[[], object], every_s: float, failure: str) -> None:
    """Do `work` every so many seconds until cancelled, and end with the round that has begun: no thread outlives its database.

    A database that is busy, away or not to be written is tried again in the next round; `failure` is logged once until it works again.
    """
    failed = False
    while True:
        await asyncio.sleep(every_s)
        try:
            await _to_its_end(work)
            failed = False
        except (PhaselineError, SQLAlchemyError) as error:
            if not failed:
                log.warning(failure, error=type(error).__name__)
            failed = True


async def _to_its_end(work: Callable[[], object]) -> None:
    thread = asyncio.ensure_future(run_in_threadpool(work))
    try:
        await asyncio.shield(thread)
    except asyncio.CancelledError:
        # A thread cannot be cancelled, only left behind with a connection in its hand.
        await asyncio.wait([thread])
        raise
