"""Where the change of a mean request lies: parts that add up exactly, and what of each is workload, configuration, or not priced.

    delta total = delta TTFT + delta((output tokens - 1) x ITL) + remainder
    delta part  = workload + configuration + not priced

A part is what both runs measured of it, else what the model makes of it for each run's own operating point; what is left of the measured
half is `unexplained`: signed, never hidden, never forced to 0. Workload and configuration come from the model by swapping one factor at a
time from the one run's to the other's, averaged over all orders (`shapley`); what the model does not know (an engine's version, a flag,
noise) is `unpriced`. Without a price for both runs the halves alone are split, per token.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.domain.observed import Observed, observed, observed_first_token, observed_step
from app.domain.point_change import PointChange, Pricing, change_of
from app.domain.request_parts import BY_NAME, MODELLED, PARTS, UNEXPLAINED, Part, Phase, alike, measured_parts
from app.domain.run import Run

PartKind = Literal["measured", "predicted", "unexplained"]
SplitBy = Literal["model", "tokens"]
Pair = tuple[float, float]

ROUNDING_S = 1e-6


@dataclass(frozen=True)
class AttributionPart:
    """Seconds of a mean request that one part carries on both sides, and of what their difference is made.

    workload_s + efficiency_s + unpriced_s = delta_s where they are known; `efficiency_s` is what settings and devices changed, `factors`
    the same by factor. A part that nobody knows has None and says `why`; its time is then in the unexplained part of its half.
    """

    phase: Phase
    part: str
    base_s: float | None
    other_s: float | None
    delta_s: float | None
    workload_s: float | None = None
    efficiency_s: float | None = None
    unpriced_s: float | None = None
    kind: PartKind | None = None
    factors: Mapping[str, float] = field(default_factory=dict)
    why: str = ""

    @property
    def nothing(self) -> bool:
        """Whether the part takes no time on either side."""
        return self.base_s == 0.0 and self.other_s == 0.0

    @property
    def title(self) -> str:
        """What the part is called."""
        return BY_NAME[self.phase, self.part].title


@dataclass(frozen=True)
class HalfChange:
    """One half of a mean request on both sides, in seconds; workload_s + efficiency_s + unpriced_s = delta_s where they are known."""

    phase: Phase
    base_s: float
    other_s: float
    workload_s: float | None
    efficiency_s: float | None
    unpriced_s: float | None = None

    @property
    def delta_s(self) -> float:
        """Seconds that the half gained."""
        return self.other_s - self.base_s


@dataclass(frozen=True)
class FactorShare:
    """One thing that differs, as it is on both sides, and the seconds that the model gives to it in each half."""

    key: str
    title: str
    kind: Literal["workload", "configuration"]
    base: str
    other: str
    prefill_s: float
    decode_s: float

    @property
    def total_s(self) -> float:
        """Seconds of the whole request."""
        return self.prefill_s + self.decode_s


@dataclass(frozen=True)
class Attribution:
    """The change of a mean request's time. The halves and the remainder sum to `total_s`, and so do the parts and the remainder.

    `split_by` says how workload was told from the rest: by the model, or per token where it cannot price both runs (`notes` say why).
    `before_sending_s` is the client's wait before it sent a request, in neither total; None where it is not known on both sides.
    """

    base_total_s: float
    other_total_s: float
    halves: tuple[HalfChange, HalfChange]
    parts: tuple[AttributionPart, ...]
    factors: tuple[FactorShare, ...] = ()
    split_by: SplitBy = "tokens"
    notes: tuple[str, ...] = ()
    before_sending_s: Pair | None = None

    @property
    def total_s(self) -> float:
        """Seconds that a mean request gained."""
        return self.other_total_s - self.base_total_s

    @property
    def remainder_s(self) -> float:
        """What the measured total gained beyond both halves."""
        return self.total_s - self.halves[0].delta_s - self.halves[1].delta_s

    @property
    def shown_remainder_s(self) -> float:
        """The remainder for a reader: stored times are whole microseconds, so less than one is the rounding of a sum."""
        return 0.0 if abs(self.remainder_s) < ROUNDING_S else self.remainder_s

    @property
    def unpriced_s(self) -> float | None:
        """Seconds of the change that the model gives to nothing that differs; None where it priced nothing."""
        return None if self.split_by == "tokens" else sum(half.unpriced_s or 0.0 for half in self.halves)


def request_total_s(run: Run) -> float | None:
    """Seconds of a mean request: measured end to end where known, else TTFT + (output tokens - 1) x ITL."""
    e2e = observed(run, "e2e_s")
    if e2e is not None and e2e.stat == "mean":
        return e2e.value_s
    first, step, output = observed_first_token(run), observed_step(run), run.workload.output_tokens_mean
    if first is None or step is None or output is None:
        return None
    return first.value_s + max(output - 1, 0) * step.value_s


def attribute(base: Run, other: Run, pricing: Pricing | None = None) -> Attribution | None:
    """Split the change of a mean request; None unless both sides know first token, step time and output length."""
    sides = (_measured(base), _measured(other))
    totals = (request_total_s(base), request_total_s(other))
    if sides[0] is None or sides[1] is None or totals[0] is None or totals[1] is None:
        return None
    ends = (sides[0], sides[1])
    change = None if pricing is None else change_of(pricing.timed_as(ends[0].first.key, ends[1].first.key))
    parts = (*_first_token_parts(base, other, ends, change), *_further_parts(ends, change))
    priced = change is not None and change.priced
    halves = tuple(_priced_half(phase, ends, parts) if priced else _half_per_token(phase, ends, (base, other)) for phase in _PHASES)
    return Attribution(
        totals[0],
        totals[1],
        (halves[0], halves[1]),
        parts,
        factors=() if change is None else _factor_shares(change, parts),
        split_by="model" if priced else "tokens",
        notes=(*_unlike_statistics(ends), *(() if change is None else change.notes)),
        before_sending_s=_before_sending(base, other),
    )


_PHASES: tuple[Phase, Phase] = ("prefill", "decode")


@dataclass(frozen=True)
class _Measured:
    """Both halves of one run's mean request."""

    first: Observed
    step: Observed
    steps: float

    def half_s(self, phase: Phase) -> float:
        return self.first.value_s if phase == "prefill" else self.steps * self.step.value_s


def _measured(run: Run) -> _Measured | None:
    first, step, output = observed_first_token(run), observed_step(run), run.workload.output_tokens_mean
    return None if first is None or step is None or output is None else _Measured(first, step, max(output - 1.0, 0.0))


def _first_token_parts(base: Run, other: Run, ends: tuple[_Measured, _Measured], change: PointChange | None) -> tuple[AttributionPart, ...]:
    seen = alike(measured_parts(base, ends[0].first), measured_parts(other, ends[1].first))
    found = []
    for part in PARTS:
        if part.phase == "prefill" and part.key != UNEXPLAINED:
            found.append(_measured_part(part, seen, change) or _predicted_part(part, change) or _unknown_part(part, seen))
    return (*found, _unexplained_part("prefill", ends, found, change))


def _further_parts(ends: tuple[_Measured, _Measured], change: PointChange | None) -> tuple[AttributionPart, ...]:
    members = [part for part in PARTS if part.phase == "decode" and part.key != UNEXPLAINED]
    found = [_predicted_part(part, change) or _unknown_part(part, ({}, {})) for part in members]
    return (*found, _unexplained_part("decode", ends, found, change))


def _measured_part(part: Part, seen: tuple[dict[str, float], dict[str, float]], change: PointChange | None) -> AttributionPart | None:
    """A part that both runs measured; what the model does not give to anything that differs is not priced."""
    if part.key not in seen[0] or part.key not in seen[1]:
        return None
    a, b = seen[0][part.key], seen[1][part.key]
    if change is None or not change.priced or part.key not in MODELLED:
        return AttributionPart(part.phase, part.key, a, b, b - a, kind="measured")
    by = change.by_factor(part.key)
    workload, efficiency = change.sums(by)
    return AttributionPart(part.phase, part.key, a, b, b - a, workload, efficiency, b - a - workload - efficiency, "measured", by)


def _predicted_part(part: Part, change: PointChange | None) -> AttributionPart | None:
    if change is None or not change.priced or part.key not in MODELLED:
        return None
    a, b = change.base[part.key], change.other[part.key]
    by = change.by_factor(part.key)
    workload, efficiency = change.sums(by)
    return AttributionPart(part.phase, part.key, a, b, b - a, workload, efficiency, 0.0, "predicted", by)


def _unknown_part(part: Part, seen: tuple[dict[str, float], dict[str, float]]) -> AttributionPart:
    if part.key == "client":
        why = "not told apart from the network on both sides: what is known of it stands under transport"
    elif part.key in seen[0] or part.key in seen[1]:
        why = f"only the {'base' if part.key in seen[0] else 'other run'} measured it, and the model does not price both"
    elif part.key == "transport":
        why = "needs the server’s own time to the first token on both sides"
    else:
        why = "not measured on both sides, and the model does not price both"
    return AttributionPart(part.phase, part.key, None, None, None, why=why)


def _unexplained_part(
    phase: Phase, ends: tuple[_Measured, _Measured], known: list[AttributionPart], change: PointChange | None
) -> AttributionPart:
    """What the parts leave of a measured half. More tokens make it more by their number; the rest of its change is not priced."""
    a = ends[0].half_s(phase) - sum(part.base_s or 0.0 for part in known)
    b = ends[1].half_s(phase) - sum(part.other_s or 0.0 for part in known)
    if change is None or not change.priced:
        return AttributionPart(phase, UNEXPLAINED, a, b, b - a, kind="unexplained")
    workload, by = 0.0, {}
    longer = change.key_of("output_length")
    steps = (ends[0].steps, ends[1].steps)
    if phase == "decode" and longer is not None and steps[0] and steps[1]:
        workload = (steps[1] - steps[0]) * (a / steps[0] + b / steps[1]) / 2
        by = {longer: workload}
    return AttributionPart(phase, UNEXPLAINED, a, b, b - a, workload, 0.0, b - a - workload, "unexplained", by)


def _priced_half(phase: Phase, ends: tuple[_Measured, _Measured], parts: tuple[AttributionPart, ...]) -> HalfChange:
    members = [part for part in parts if part.phase == phase]
    a, b = ends[0].half_s(phase), ends[1].half_s(phase)
    workload = sum(part.workload_s or 0.0 for part in members)
    efficiency = sum(part.efficiency_s or 0.0 for part in members)
    return HalfChange(phase, a, b, workload, efficiency, b - a - workload - efficiency)


def _half_per_token(phase: Phase, ends: tuple[_Measured, _Measured], runs: tuple[Run, Run]) -> HalfChange:
    """A half as a product, tokens x seconds a token: half of each change is weighed at the other's old value, half at its new one."""
    a, b = ends[0].half_s(phase), ends[1].half_s(phase)
    if phase == "decode":
        tokens, each = (ends[0].steps, ends[1].steps), (ends[0].step.value_s, ends[1].step.value_s)
    else:
        prompts = (runs[0].workload.prompt_tokens_mean, runs[1].workload.prompt_tokens_mean)
        if not prompts[0] or not prompts[1]:
            return HalfChange(phase, a, b, None, None)
        tokens, each = (prompts[0], prompts[1]), (a / prompts[0], b / prompts[1])
    return HalfChange(phase, a, b, (tokens[1] - tokens[0]) * (each[0] + each[1]) / 2, (each[1] - each[0]) * (tokens[0] + tokens[1]) / 2)


def _factor_shares(change: PointChange, parts: tuple[AttributionPart, ...]) -> tuple[FactorShare, ...]:
    shares = []
    for group in change.groups:
        by = {phase: sum(part.factors.get(group.key, 0.0) for part in parts if part.phase == phase) for phase in _PHASES}
        words = change.words(group)
        shares.append(FactorShare(group.key, group.title, group.kind, words[0], words[1], by["prefill"], by["decode"]))
    return tuple(shares)


def _unlike_statistics(ends: tuple[_Measured, _Measured]) -> tuple[str, ...]:
    """Said where a mean is set against a median, or a TTFT against a prompt pass."""
    a, b = ends[0].first, ends[1].first
    if (a.key, a.stat) == (b.key, b.stat):
        return ()
    return (f"The first token is {a.key} ({a.words}) on one side and {b.key} ({b.words}) on the other.",)


def _before_sending(base: Run, other: Run) -> Pair | None:
    a, b = observed(base, "client_queue_s"), observed(other, "client_queue_s")
    return None if a is None or b is None else (a.value_s, b.value_s)
