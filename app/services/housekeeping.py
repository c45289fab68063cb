"""What the server does about jobs without being asked: take back what dead workers held, make what is due."""

import asyncio

import structlog
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.exc import SQLAlchemyError

from app.domain.errors import PhaselineError
from app.services.context import Context
from app.services.job_schedules import run_due
from app.services.leasing import reap

_EVERY_S = 1.0

log = structlog.get_logger()


def keep_house(context: Context) -> None:
    """One round."""
    reap(context)
    run_due(context)


async def keep_house_forever(context: Context) -> None:
    """A round each second until cancelled. A database that is busy or away is tried again in the next round."""
    failed = False
    while True:
        await asyncio.sleep(_EVERY_S)
        try:
            await run_in_threadpool(keep_house, context)
            failed = False
        except (PhaselineError, SQLAlchemyError) as error:
            if not failed:
                log.warning("housekeeping failed and is tried again", error=type(error).__name__)
            failed = True
