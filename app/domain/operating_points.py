"""Points under the roof: where each pass of a request stands on a device's roofline, predicted and measured.

A pass does F FLOPs and moves B bytes in t seconds: it stands at F/B FLOP/byte and F/t FLOP/s, under min(peak, bandwidth x F/B).
Rates are per device, like the work of a PassCost.
"""

from dataclasses import dataclass
from typing import Literal

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.hardware import HardwareProfile
from app.domain.observed import Observed, observed, observed_step
from app.domain.phases import Question
from app.domain.prediction import Bound, PassCost, Prediction, Request
from app.domain.request_rules import check
from app.domain.run import Run
from app.domain.text import duration

PointKind = Literal["measured", "predicted", "bounded", "operator"]
Phase = Literal["prefill", "decode", "both"]

FROM_TTFT = "from TTFT (includes front-end)"
FROM_TTFT_LESS_QUEUE = "from TTFT less the queue (includes front-end)"
NO_PREFILL_UNDER_LOAD = (
    "No measured prefill point: under load TTFT holds queueing, and the file has neither a queue time nor a prefill time."
)
WHOLE_RUN = "whole run"
COUNTED = "counted by the server over {time}, idle time inside"
COUNTED_WITHOUT_TIME = (
    "The server counted {intensity:.4g} FLOP/byte over the run. Its scrapes do not say when they were taken, so it has "
    "no rate and no point."
)


@dataclass(frozen=True)
class Ceilings:
    """What one device can do for one number format: specified and achieved rates in FLOP/s and bytes/s."""

    name: str
    dtype: str
    peak_flops_per_s: float
    bandwidth_bytes_per_s: float
    achieved_flops_per_s: float
    achieved_bandwidth_bytes_per_s: float

    @property
    def ridge_peak(self) -> float:
        """FLOP/byte at which memory and arithmetic take equally long, at specified rates."""
        return self.peak_flops_per_s / self.bandwidth_bytes_per_s

    @property
    def ridge_achieved(self) -> float:
        """The same at achieved rates."""
        return self.achieved_flops_per_s / self.achieved_bandwidth_bytes_per_s

    def roof(self, intensity_flops_per_byte: float) -> float:
        """The most FLOP/s that the achieved rates allow at this work per byte."""
        return min(self.achieved_flops_per_s, intensity_flops_per_byte * self.achieved_bandwidth_bytes_per_s)


@dataclass(frozen=True)
class RooflinePoint:
    """One pass or operator, or both phases of a whole run as the server counted its work.

    "bounded" is a measured prefill known only from TTFT: its rate is at least `flops_per_s`.
    """

    title: str
    phase: Phase
    kind: PointKind
    flops: float
    bytes: float
    time_s: float
    source: str
    bound: Bound | None = None

    @property
    def intensity_flops_per_byte(self) -> float:
        """Work per byte moved."""
        return self.flops / self.bytes

    @property
    def flops_per_s(self) -> float:
        """The rate at which the work was done."""
        return self.flops / self.time_s


@dataclass(frozen=True)
class Roofline:
    """A device's ceilings with the points of one request. `notes` say why a point is missing."""

    ceilings: Ceilings
    points: tuple[RooflinePoint, ...]
    notes: tuple[str, ...] = ()

    def of_kind(self, *kinds: PointKind) -> tuple[RooflinePoint, ...]:
        """The points of these kinds, in order."""
        return tuple(point for point in self.points if point.kind in kinds)


def ceilings_of(
    architecture: ModelArchitecture, hardware: HardwareProfile, request: Request, engine: EngineProfile | None = None
) -> Ceilings:
    """The roof that `request` is priced under. Raises InvalidRequest where the request cannot be priced.

    Where experts compute in a format of their own the faster of the two sets the roof: a pass is a mixture of both and stays under it.
    """
    rates = Question.of(architecture, hardware, request, check(request, architecture, hardware), engine).rates
    units, achieved, read = [rates.gemm], [rates.achieved_flops_per_s], [rates.achieved_bytes_per_s]
    if architecture.expert_layers and rates.experts is not None:
        units.append(rates.experts)
        achieved.append(rates.expert_efficiency * rates.experts.peak_flops_per_s)
        read.append(rates.expert_weight_efficiency * rates.bandwidth_bytes_per_s)
    fastest = max(units, key=lambda one: one.peak_flops_per_s)
    return Ceilings(
        name=hardware.name,
        dtype=fastest.format,
        peak_flops_per_s=fastest.peak_flops_per_s,
        bandwidth_bytes_per_s=float(rates.bandwidth_bytes_per_s),
        achieved_flops_per_s=max(float(one) for one in achieved),
        achieved_bandwidth_bytes_per_s=max(float(one) for one in read),
    )


def roofline_of(prediction: Prediction, ceilings: Ceilings, run: Run | None = None) -> Roofline:
    """Both passes as predicted and, with a run, as measured; and the operators of each pass that do arithmetic and move bytes."""
    points = [*_operators("prefill", prediction.prefill), *_operators("decode", prediction.decode)]
    points += [_predicted("prefill", prediction.prefill), _predicted("decode", prediction.decode)]
    notes: list[str] = []
    if run is not None:
        prefill, decode = _measured_prefill(prediction.prefill, run), observed_step(run)
        if prefill is not None:
            points.append(prefill)
        elif observed(run, "ttft_s") is not None:
            notes.append(NO_PREFILL_UNDER_LOAD)
        if decode is not None:
            points.append(_measured("decode", prediction.decode, decode))
        counted, note = _counted(run)
        points += [counted] if counted else []
        notes += [note] if note else []
    return Roofline(ceilings, tuple(points), tuple(notes))


def _operators(phase: Phase, cost: PassCost) -> list[RooflinePoint]:
    """A pass of a single operator is its own point already."""
    if len(cost.terms) < 2:
        return []
    return [
        RooflinePoint(term.name.replace("_", " "), phase, "operator", term.flops, term.bytes, term.time_s, "predicted", term.bound)
        for term in cost.terms
        if term.flops > 0 and term.bytes > 0 and term.time_s > 0
    ]


def _predicted(phase: Phase, cost: PassCost) -> RooflinePoint:
    return RooflinePoint(phase, phase, "predicted", cost.flops, cost.bytes, cost.time_s, "predicted", cost.bound)


def _measured(phase: Phase, cost: PassCost, found: Observed) -> RooflinePoint:
    return RooflinePoint(phase, phase, "measured", cost.flops, cost.bytes, found.value_s, f"measured, {found.words}")


def _counted(run: Run) -> tuple[RooflinePoint | None, str | None]:
    """The whole run where the server counted FLOPs and bytes of a device: a point where the time is known too, else a sentence."""
    intensity, work, moved = (run.rate(key) for key in ("intensity_flops_per_byte", "flops_per_s", "bytes_per_s"))
    if work is not None and moved is not None and run.duration_s and work.value > 0 and moved.value > 0:
        time_s = run.duration_s
        source = COUNTED.format(time=duration(time_s))
        return RooflinePoint(WHOLE_RUN, "both", "measured", work.value * time_s, moved.value * time_s, time_s, source), None
    return None, COUNTED_WITHOUT_TIME.format(intensity=intensity.value) if intensity is not None else None


def _measured_prefill(cost: PassCost, run: Run) -> RooflinePoint | None:
    """The prompt pass where it was timed; else TTFT, which is longer, where no queue hides in it or the queue is known."""
    alone = observed(run, "prefill_s")
    if alone is not None:
        return _measured("prefill", cost, alone)
    first, queue = observed(run, "ttft_s"), observed(run, "queue_s")
    if first is None:
        return None
    if queue is not None and first.value_s > queue.value_s:
        return RooflinePoint("prefill", "prefill", "bounded", cost.flops, cost.bytes, first.value_s - queue.value_s, FROM_TTFT_LESS_QUEUE)
    if run.workload.concurrency == 1 or run.load_mode == "single":
        return RooflinePoint("prefill", "prefill", "bounded", cost.flops, cost.bytes, first.value_s, FROM_TTFT)
    return None
