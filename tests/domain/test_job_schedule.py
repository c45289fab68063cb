"""When a job of a schedule is due."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidRequest
from app.domain.job_schedule import Rhythm

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
FROM, TO = NOON.replace(year=2026, tzinfo=None), NOON.replace(year=2028, tzinfo=None)
MOMENTS = st.datetimes(FROM, TO, timezones=st.just(UTC))


@pytest.mark.parametrize(
    ("rhythm", "now", "due"),
    [
        (Rhythm(every_hours=24), NOON, NOON + timedelta(days=1)),
        (Rhythm(every_hours=6), NOON + timedelta(hours=20), NOON + timedelta(hours=24)),
        (Rhythm(every_hours=6), NOON + timedelta(hours=24), NOON + timedelta(hours=30)),
        (Rhythm(daily_at="02:30"), NOON, datetime(2026, 5, 2, 2, 30, tzinfo=UTC)),
        (Rhythm(daily_at="12:01"), NOON, datetime(2026, 5, 1, 12, 1, tzinfo=UTC)),
        (Rhythm(daily_at="12:00"), NOON, datetime(2026, 5, 2, 12, tzinfo=UTC)),
    ],
)
def test_the_next_time(rhythm: Rhythm, now: datetime, due: datetime) -> None:
    assert rhythm.next_after(NOON, now) == due


@given(hours=st.integers(1, 8784), begun=MOMENTS, now=MOMENTS)
def test_hours_count_from_the_beginning_and_the_next_time_is_the_first_after_now(hours: int, begun: datetime, now: datetime) -> None:
    due = Rhythm(every_hours=hours).next_after(begun, now)
    assert due > now or due == begun
    assert (due - begun) % timedelta(hours=hours) == timedelta(0)
    assert due == begun or due - timedelta(hours=hours) <= now


@given(minute=st.integers(0, 24 * 60 - 1), now=MOMENTS)
def test_a_daily_time_is_within_the_next_day(minute: int, now: datetime) -> None:
    due = Rhythm(daily_at=f"{minute // 60:02}:{minute % 60:02}").next_after(NOON, now)
    assert timedelta(0) < due - now <= timedelta(days=1)
    assert due.hour * 60 + due.minute == minute


@pytest.mark.parametrize(
    "values",
    [{}, {"every_hours": 1, "daily_at": "01:00"}, {"every_hours": 0}, {"daily_at": "24:00"}, {"daily_at": "1:00"}, {"daily_at": "٠١:٠٠"}],
)
def test_what_is_no_rhythm_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        Rhythm(**values)  # type: ignore[arg-type]
