"""What the server does about jobs without being asked: take back what dead workers held, make what is due."""

from app.services.context import Context
from app.services.job_schedules import run_due
from app.services.leasing import reap
from app.services.rounds import in_rounds

_EVERY_S = 1.0


def keep_house(context: Context) -> None:
    """One round."""
    reap(context)
    run_due(context)


async def keep_house_forever(context: Context) -> None:
    """A round each second until cancelled."""
    await in_rounds(lambda: keep_house(context), _EVERY_S, "housekeeping failed and is tried again")
