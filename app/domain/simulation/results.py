"""What a simulated load gave: TTFT in its parts, TPOT, gaps, throughput, what held requests back, and how many met a target."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from app.domain.errors import InvalidRequest
from app.domain.run import Distribution, Floats
from app.domain.simulation.load import ServedLoad, Wholes
from app.domain.simulation.state import BINS_PER_E_FOLD, FIRST_GAP_S


@dataclass(frozen=True)
class Target:
    """Bounds in seconds that a request must keep, each one or more of them: time to first token, time per further token, whole request."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    e2e_s: float | None = None

    def __post_init__(self) -> None:
        """Raises InvalidRequest for a bound that no request could be held to."""
        for name in ("ttft_s", "tpot_s", "e2e_s"):
            bound = getattr(self, name)
            if bound is not None and not (np.isfinite(bound) and bound > 0):
                raise InvalidRequest(name, f"{name} of the target is {bound}; give seconds above 0.")


@dataclass(frozen=True)
class Goodput:
    """Requests that kept every bound: their share, and how many a second."""

    share: float
    requests_per_s: float


@dataclass(frozen=True, eq=False)
class Timeline:
    """Moments of every request in seconds from the start: sent, at the engine, admitted, first token, last token; its output tokens."""

    sent_s: Floats
    arrived_s: Floats
    admitted_s: Floats
    first_s: Floats
    finished_s: Floats
    output_tokens: Wholes

    @property
    def ttft_s(self) -> Floats:
        """From sending to the first token."""
        return self.first_s - self.sent_s

    @property
    def e2e_s(self) -> Floats:
        """From sending to the last token."""
        return self.finished_s - self.sent_s

    @property
    def tpot_s(self) -> Floats:
        """Seconds a further token, NaN for a request of one token."""
        further = np.where(self.output_tokens > 1, self.output_tokens - 1.0, np.nan)
        return (self.finished_s - self.first_s) / further


@dataclass(frozen=True, eq=False)
class Crossing:
    """Moments of every request between two pools: first token, its cache sets off and has landed, second token (-1 where none comes).

    `busy` is the share of the time in which engines of each pool ran a pass, `prefill` and `decode`.
    """

    first_s: Floats
    left_s: Floats
    landed_s: Floats
    second_s: Floats
    busy: Mapping[str, float]

    @property
    def crossed(self) -> npt.NDArray[np.bool_]:
        """Requests that have more than one token."""
        return self.second_s >= 0.0

    @cached_property
    def first_gap(self) -> Distribution | None:
        """From the first token to the second; None where every answer is one token."""
        return Distribution.from_samples((self.second_s - self.first_s)[self.crossed])

    def mean_s(self) -> dict[str, float] | None:
        """The first gap in its parts: wait for room and for the link, transfer, and the step that it joins; None without any."""
        if not self.crossed.any():
            return None
        stations = {
            "admission_s": (self.first_s, self.left_s),
            "transfer_s": (self.left_s, self.landed_s),
            "step_s": (self.landed_s, self.second_s),
        }
        return {name: float((to - since)[self.crossed].mean()) for name, (since, to) in stations.items()}


@dataclass(frozen=True, eq=False)
class Simulation:
    """The outcome of one simulated load. Means over all requests, the burst at the start included, as a benchmark takes them.

    `gap_counts`, `gap_s` and `gap_n` are the gaps between deliveries by bin, their seconds and their number. `running` is the mean
    number of sequences that ran, `busy` the share of the time in which a pass ran, `prompt_share` in which one with prompts did;
    `held_back` that in which a waiting request was kept from running by the cap, the pool or the budget. `pool_peak` is the fullest the
    pool was, a fraction, None where memory is not known.
    """

    load: ServedLoad
    timeline: Timeline
    gap_counts: Floats
    gap_s: float
    gap_n: float
    running: float
    busy: float
    prompt_share: float
    held_back: Mapping[str, float]
    preemptions: int
    passes: int
    pool_peak: float | None
    crossing: Crossing | None = None

    @property
    def duration_s(self) -> float:
        """From the first request sent to the last token."""
        return float(self.timeline.finished_s.max() - self.timeline.sent_s.min())

    @cached_property
    def ttft(self) -> Distribution:
        """Time to first token, from sending."""
        return _known(self.timeline.ttft_s)

    @cached_property
    def e2e(self) -> Distribution:
        """Time of a whole request."""
        return _known(self.timeline.e2e_s)

    @cached_property
    def tpot(self) -> Distribution | None:
        """Time per further token, requests weighted equally; None where every answer is one token."""
        return Distribution.from_samples(self.timeline.tpot_s)

    @cached_property
    def gap(self) -> Distribution | None:
        """Gaps between deliveries: between tokens, where each step gives one."""
        return gaps_from(self.gap_counts, self.gap_s, self.gap_n)

    @property
    def front_end_s(self) -> float:
        """Mean time before the engine sees a request; with `queue_s` and `prefill_s` it adds up to the mean TTFT."""
        return float((self.timeline.arrived_s - self.timeline.sent_s).mean())

    @property
    def queue_s(self) -> float:
        """Mean time from reaching the engine to the pass that takes the request in."""
        return float((self.timeline.admitted_s - self.timeline.arrived_s).mean())

    @property
    def prefill_s(self) -> float:
        """Mean time from there to the first token: its own chunks and whatever shares their passes."""
        return float((self.timeline.first_s - self.timeline.admitted_s).mean())

    @property
    def itl_s(self) -> float | None:
        """Mean time per further token, tokens weighted equally."""
        further = int(self.timeline.output_tokens.sum()) - self.load.total
        return float((self.timeline.finished_s - self.timeline.first_s).sum()) / further if further else None

    @property
    def requests_per_s(self) -> float:
        """Requests answered a second, over the whole run."""
        return self.load.total / self.duration_s

    @property
    def output_tokens_per_s(self) -> float:
        """Output tokens a second of all requests together."""
        return float(self.timeline.output_tokens.sum()) / self.duration_s

    @property
    def in_system(self) -> float:
        """Mean number of requests between sending and last token (Little's law)."""
        return float(self.timeline.e2e_s.sum()) / self.duration_s

    def goodput(self, target: Target) -> Goodput:
        """The share of requests within `target`, and their number a second. A request of one token has no TPOT to miss."""
        met = np.ones(self.timeline.sent_s.size, dtype=np.bool_)
        if target.ttft_s is not None:
            met &= self.timeline.ttft_s <= target.ttft_s
        if target.tpot_s is not None:
            met &= ~(self.timeline.tpot_s > target.tpot_s)
        if target.e2e_s is not None:
            met &= self.timeline.e2e_s <= target.e2e_s
        share = float(met.mean())
        return Goodput(share, share * self.requests_per_s)


def _known(values: Floats) -> Distribution:
    found = Distribution.from_samples(values)
    if found is None:
        raise ArithmeticError("a simulation gave no finite times")
    return found


def gaps_from(counts: Floats, seconds: float, number: float) -> Distribution | None:
    """The distribution of gaps that were counted in bins of one percent; mean exact, percentiles to half a percent. None without any."""
    if number <= 0:
        return None
    upto = np.cumsum(counts)
    middles = FIRST_GAP_S * np.exp((np.arange(counts.size) + 0.5) / BINS_PER_E_FOLD)
    used = np.flatnonzero(counts)

    def at(share: float) -> float:
        return float(middles[min(int(np.searchsorted(upto, share * upto[-1])), counts.size - 1)])

    return Distribution(
        mean=seconds / number,
        p50=at(0.50),
        p90=at(0.90),
        p95=at(0.95),
        p99=at(0.99),
        min=float(middles[used[0]]),
        max=float(middles[used[-1]]),
        n=round(number),
        origin="samples",
    )
