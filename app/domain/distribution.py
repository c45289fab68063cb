"""How one metric of a run spreads: its percentiles with the number of samples they rest on, and the samples where there are some."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.domain.derive import tpot_values
from app.domain.metrics import METRICS
from app.domain.quantity import NBSP, count, factor, seconds
from app.domain.run import Distribution, Floats, RequestSamples, Run

# Fewer samples than this beyond a percentile and it is grey: it rests on too little to be judged.
ENOUGH_BEYOND = 10
_PERCENTILES = (("p50", 50.0), ("p90", 90.0), ("p95", 95.0), ("p99", 99.0))

Hue = Literal["prefill", "decode", "rest"]


@dataclass(frozen=True)
class Mark:
    """A value of a distribution: what it is called, its seconds, and the percent of samples at or below it."""

    name: str
    value_s: float
    percent: float


@dataclass(frozen=True, eq=False)
class Spread:
    """One metric of one run. `samples` are sorted finite seconds, empty where only the statistics in `known` are there."""

    key: str
    title: str
    hue: Hue
    of_what: str
    known: Distribution
    samples: Floats

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The percentiles that are known."""
        found = ((name, self.known.stat(name), percent) for name, percent in _PERCENTILES)
        return tuple(Mark(name, value, percent) for name, value, percent in found if value is not None)

    @property
    def outline(self) -> tuple[Mark, ...]:
        """The marks with both ends where they are known."""
        low, high = self.known.min, self.known.max
        first = () if low is None else (Mark("min", low, 0.0),)
        last = () if high is None else (Mark("max", high, 100.0),)
        return (*first, *self.marks, *last)

    def rests_on_too_little(self, percent: float) -> bool:
        """Whether fewer than ten samples lie beyond this percentile; where n is not known, every percentile does."""
        return self.known.n is None or self.known.n * (1 - percent / 100) < ENOUGH_BEYOND

    @property
    def finding(self) -> str:
        """The spread in one sentence: the median, the farthest percentile that may be judged, and n."""
        n = "an unknown number of" if self.known.n is None else count(self.known.n)
        median = next((mark for mark in self.marks if mark.name == "p50"), None)
        if median is None:
            return f"{self.title} of {n} {self.of_what}; the file has no median."
        said = f"{self.title}: half of {n} {self.of_what} within {seconds(median.value_s)}"
        judged = [mark for mark in self.marks if mark.percent > 50 and not self.rests_on_too_little(mark.percent)]
        if not judged or not median.value_s:
            return f"{said}."
        tail = judged[-1]
        times = factor(tail.value_s / median.value_s)
        beyond = f", {times} the median" if times not in ("1.0×", "1.1×") else ""
        return f"{said}, {tail.percent:g}{NBSP}% within {seconds(tail.value_s)}{beyond}."


def spread_of(run: Run, key: str, samples: RequestSamples | None = None) -> Spread | None:
    """The spread of the latency `key` of a run, from raw samples where there are some; None when too little is known to draw it.

    A metric that a flag withholds is not drawn.
    """
    known = run.distribution(key)
    if known is None or any(key in flag.withholds for flag in run.flags):
        return None
    values = _sorted(_samples_of(key, samples)) if samples is not None else np.empty(0)
    metric = METRICS[key]
    hue: Hue = "prefill" if metric.phase == "prefill" else "decode" if metric.phase == "decode" else "rest"
    found = Spread(key, metric.title, hue, "gaps" if key == "chunk_gap_s" else "requests", known, values)
    return found if values.size or len(found.outline) > 1 else None


def _samples_of(key: str, samples: RequestSamples) -> Floats:
    """The values of a metric that one sample stands behind; ITL has none, since it weighs tokens and samples are per request."""
    if key == "tpot_s":
        return tpot_values(samples)
    if key == "chunk_gap_s":
        return samples.chunk_gaps_s
    column = {"ttft_s": samples.ttft_s, "e2e_s": samples.e2e_s, "queue_s": samples.queue_s}.get(key)
    return np.empty(0) if column is None else column[samples.ok]


def _sorted(values: Floats) -> Floats:
    finite = values[np.isfinite(values)]
    return np.sort(finite)
