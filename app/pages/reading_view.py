"""What changed between two readings of a run, in words."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.identity import SAID
from app.domain.metrics import METRICS
from app.domain.quantity import in_metric_unit, moment
from app.domain.rereading import Change, Value
from app.pages.identity_view import TITLES
from app.store.readings import Reading

_ABSENT = "nothing"


@dataclass(frozen=True)
class ShownChange:
    """A change as a row of a table."""

    part: str
    name: str
    old: str
    new: str
    kind: str


@dataclass(frozen=True)
class PastReading:
    """One time that a run was read again."""

    at: str
    from_version: int
    to_version: int
    rows: tuple[ShownChange, ...]


def past_readings(history: Iterable[Reading]) -> list[PastReading]:
    """The readings of a run as its page lists them."""
    return [
        PastReading(
            moment(each.read_at),
            each.from_version,
            each.to_version,
            tuple(shown(Change(made["part"], made["key"], made["old"], made["new"])) for made in each.changes),
        )
        for each in history
    ]


def shown(change: Change) -> ShownChange:
    """A change in words: figures in their unit, absent ones as "nothing"."""
    name = TITLES.get(change.key, change.key) if change.part == "word" and change.key in SAID else change.key.replace("_", " ")
    if change.part == "metric":
        key, _, stat = change.key.rpartition(".")
        name = f"{METRICS[key].title if key in METRICS else key}, {stat}"
    if change.part == "warning":
        name = "warning"
    return ShownChange(change.part, name, _text(change, change.old), _text(change, change.new), change.kind)


def _text(change: Change, value: Value) -> str:
    if value is None:
        return _ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    key, _, stat = change.key.rpartition(".")
    if change.part == "metric" and stat != "n" and isinstance(value, int | float) and key in METRICS:
        return in_metric_unit(value, METRICS[key].unit)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}" if isinstance(value, float) else str(value)
