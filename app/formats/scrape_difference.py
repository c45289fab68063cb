"""Two scrapes of one server and what happened between them: which came first, whether a counter began again, differences by name."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite, isinf

from app.domain.errors import ImportRefused
from app.domain.text import clean_text
from app.formats.prometheus_histogram import Histogram, cumulative_counts
from app.formats.prometheus_text import Labels, Scrape

START = "process_start_time_seconds"
_COUNTS_UP = ("_total", "_bucket", "_count", "_sum")
_CREATED = "_created"
_NAMED = 3
NOTHING_SERVED = "Both scrapes show the same counters: nothing was served between them. Send one from before and one from after."


@dataclass(frozen=True)
class Difference:
    """What lies between `before` and `after`, for the series of one model (None: those of all).

    `between` are scrapes taken meanwhile, in order: their gauges say what two moments do not.
    """

    before: Scrape
    after: Scrape
    model: str | None = None
    between: tuple[Scrape, ...] = ()

    def rise(self, *names: str) -> float | None:
        """How much the first of these counters that is there rose, over all its series of the model; None where there is none."""
        return next((rise for name in names if (rise := self._rise(name)) is not None), None)

    def mean_rise(self, name: str) -> float | None:
        """The same as the mean over its series: a counter that each engine keeps for one of its devices."""
        series = list(self._of_model(name))
        total = self._rise(name)
        return total / len(series) if total is not None else None

    def rises(self, name: str, label: str) -> dict[str, float]:
        """How much a counter rose, by the values of one of its labels."""
        found: dict[str, float] = {}
        for labels in self._of_model(name):
            key = dict(labels).get(label, "")
            found[key] = found.get(key, 0.0) + self._step(name, labels)
        return found

    def histogram(self, *names: str) -> Histogram | None:
        """What the first of these histograms that is there observed; None where there is none, or nothing was observed."""
        for name in names:
            count, total = self._rise(f"{name}_count"), self._rise(f"{name}_sum")
            if count is None or total is None:
                continue
            return Histogram(count, total, self._cumulative(name, count)) if count > 0 else None
        return None

    def gauges(self, scrape: Scrape, *names: str) -> list[float]:
        """The values of the first of these gauges that is there at a scrape, one an engine; none where one of them is no number."""
        for name in names:
            values = [value for labels, value in scrape.get(name).items() if self._is_ours(labels)]
            if values:
                return values if all(map(isfinite, values)) else []
        return []

    def _cumulative(self, name: str, count: float) -> tuple[tuple[float, float], ...]:
        buckets: dict[float, float] = {}
        engines: dict[float, int] = {}
        for labels in self._of_model(f"{name}_bucket"):
            bound = _number(dict(labels).get("le", ""))
            if bound is None:
                return ()
            buckets[bound] = buckets.get(bound, 0.0) + self._step(f"{name}_bucket", labels)
            engines[bound] = engines.get(bound, 0) + 1
        # Engines with bounds of their own cannot be added up.
        return cumulative_counts(buckets, count) if len(set(engines.values())) == 1 else ()

    def _rise(self, name: str) -> float | None:
        steps = [self._step(name, labels) for labels in self._of_model(name)]
        return sum(steps) if steps and all(map(isfinite, steps)) else None

    def _step(self, name: str, labels: Labels) -> float:
        # A series appears with its first observation: before that it is 0.
        return self.after.get(name)[labels] - self.before.get(name).get(labels, 0.0)

    def _of_model(self, name: str) -> Iterator[Labels]:
        return (labels for labels in self.after.get(name) if self._is_ours(labels))

    def _is_ours(self, labels: Labels) -> bool:
        return self.model is None or dict(labels).get("model_name") in (None, self.model)


def in_series(scrapes: Sequence[Scrape]) -> tuple[Scrape, Scrape, tuple[Scrape, ...]]:
    """The earliest and the latest of two scrapes or more of one server, and those between, which must be in the order of their times.

    Raises ImportRefused as `in_order` does for any neighbours, and where three or more do not say when they were taken.
    """
    if len(scrapes) == 2:
        return (*in_order(*scrapes), ())
    if any(scrape.time_s is None for scrape in scrapes):
        raise ImportRefused(
            f"There are {len(scrapes)} scrapes in one upload, and they do not say when they were taken: which two belong together is not "
            "in them. Send two at a time, or save each with `curl -i`, so that they are read as one series from the first to the last."
        )
    ordered = sorted(scrapes, key=lambda scrape: scrape.time_s or 0.0)
    served = [_served_between(earlier, later) for earlier, later in pairwise(ordered)]
    if not any(served):
        raise ImportRefused(NOTHING_SERVED)
    first, last = served.index(True), len(served) - served[::-1].index(True)
    if not all(served[first:last]):
        raise ImportRefused(
            f"Of {len(scrapes)} scrapes neighbours in the middle show the same counters: nothing was served between them, as between two "
            "benchmarks. Send the scrapes of one benchmark at a time."
        )
    return ordered[0], ordered[-1], tuple(ordered[1:-1])


def in_order(first: Scrape, second: Scrape) -> tuple[Scrape, Scrape]:
    """The earlier and the later of two scrapes of one server.

    Raises ImportRefused where a counter began again between them, where they are of different servers, and where nothing happened.
    """
    timed = first.time_s is not None and second.time_s is not None
    if first.time_s is not None and second.time_s is not None and first.time_s > second.time_s:
        first, second = second, first
    same_server = _same_start(first, second)
    steps = list(_steps(first, second))
    rising = [name for name, step in steps if step > 0]
    falling = [name for name, step in steps if step < 0]
    if not rising and not falling:
        raise ImportRefused(NOTHING_SERVED)
    backwards = bool(falling) and not rising
    if falling and not (backwards and same_server and not timed):
        raise ImportRefused(_fell(falling))
    before, after = (second, first) if backwards else (first, second)
    _same_series(before, after)
    return before, after


def _served_between(earlier: Scrape, later: Scrape) -> bool:
    """Whether any counter rose. Raises ImportRefused where they are not of one server that ran on."""
    _same_start(earlier, later)
    steps = list(_steps(earlier, later))
    if falling := [name for name, step in steps if step < 0]:
        raise ImportRefused(_fell(falling))
    _same_series(earlier, later)
    return any(step > 0 for _, step in steps)


def _fell(names: list[str]) -> str:
    return (
        f"{_listed(names)} fell from the first scrape to the second: a counter that falls began again, so the server was started "
        "anew or these are two servers, and their difference is no measurement. Take both of one server, the earlier one first."
    )


def _same_series(before: Scrape, after: Scrape) -> None:
    lost = [name for name in before.series if name.endswith(_COUNTS_UP) and before.series[name].keys() - after.get(name).keys()]
    if lost:
        raise ImportRefused(
            f"The later scrape lacks series of {_listed(lost)} that the earlier one has: they are of different servers or models. "
            "Take both scrapes of one server."
        )


def _same_start(first: Scrape, second: Scrape) -> bool:
    """Whether both say that their process and counters began at one moment. Raises ImportRefused where they say that it was not."""
    known = False
    for name in first.series:
        if name != START and not name.endswith(_CREATED):
            continue
        for labels, moment in first.series[name].items():
            other = second.get(name).get(labels)
            if other is None:
                continue
            if other != moment:
                raise ImportRefused(
                    f"The server was started anew between the scrapes, or they are of two servers: {clean_text(name, 80)} is {moment:.3f} "
                    f"in the first and {other:.3f} in the second. Counters began again at 0, so their difference is no measurement: take "
                    "both scrapes of one server without a restart between them."
                )
            known = True
    return known


def _steps(first: Scrape, second: Scrape) -> Iterator[tuple[str, float]]:
    for name, series in first.series.items():
        if name.endswith(_COUNTS_UP):
            for labels, value in series.items():
                step = second.get(name).get(labels, value) - value
                if isfinite(step):
                    yield name, step
    for name, series in second.series.items():
        if name.endswith(_COUNTS_UP):
            yield from ((name, value) for labels, value in series.items() if labels not in first.get(name) and isfinite(value))


def _listed(names: list[str]) -> str:
    each = list(dict.fromkeys(clean_text(name, 80) for name in names))
    return ", ".join(each[:_NAMED]) + (f" and {len(each) - _NAMED} more" if len(each) > _NAMED else "")


def _number(text: str) -> float | None:
    """A bucket's bound, None where the label is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) or (isinf(value) and value > 0) else None
