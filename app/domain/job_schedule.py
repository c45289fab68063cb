"""When a job of a schedule is due: every so many hours, or each day at a time of UTC. Pure: the clock comes in."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from app.domain.errors import InvalidRequest

_DAILY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)", re.ASCII)
_MOST_HOURS = 24 * 366


@dataclass(frozen=True)
class Rhythm:
    """One of the two: `every_hours`, counted from when the schedule began, or `daily_at`, HH:MM in UTC."""

    every_hours: int | None = None
    daily_at: str | None = None

    def __post_init__(self) -> None:
        if (self.every_hours is None) == (self.daily_at is None):
            raise InvalidRequest("every_hours", "A schedule has either every_hours or daily_at (HH:MM, UTC).")
        if self.every_hours is not None and not 1 <= self.every_hours <= _MOST_HOURS:
            raise InvalidRequest("every_hours", f"every_hours must be from 1 to {_MOST_HOURS:,}.")
        if self.daily_at is not None and not _DAILY.fullmatch(self.daily_at):
            raise InvalidRequest("daily_at", "daily_at must be a time of day in UTC such as 02:30.")

    def next_after(self, begun: datetime, now: datetime) -> datetime:
        """The first time after `now`; those that passed meanwhile are skipped, so that what was missed runs once and not many times."""
        if self.daily_at is not None:
            hour, minute = (int(part) for part in self.daily_at.split(":"))
            today = now.astimezone(UTC).replace(hour=hour, minute=minute, second=0, microsecond=0)
            return today if today > now else today + timedelta(days=1)
        step = timedelta(hours=self.every_hours or 1)
        passed = max((now - begun) // step, -1)
        return begun + (passed + 1) * step
