"""Every lever of the vocabulary for one stored run: its effect on both phases, rate, memory and cost, the largest effect first."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from app.domain.diagnosis import RULES
from app.domain.diagnosis.vocabulary import LEVERS
from app.domain.errors import InvalidRequest
from app.domain.profile_choice import held
from app.domain.rates import Formats
from app.services.assessment import price_like
from app.services.lever_effects import LeverEffect, Outlook, Setting, Sized, effect_json, sized_levers
from app.services.runs import RunView

Order = Literal["total", "prefill", "decode", "rate", "cost"]
ORDERS: tuple[Order, ...] = get_args(Order)

_BETTER: Mapping[Order, Any] = {
    "total": lambda effect: effect.after.total_s / effect.before.total_s,
    "prefill": lambda effect: effect.after.ttft_s / effect.before.ttft_s,
    "decode": lambda effect: effect.after.itl_s / effect.before.itl_s,
    "rate": lambda effect: effect.before.output_tokens_per_s / effect.after.output_tokens_per_s,
    "cost": lambda effect: effect.after.device_s_per_token / effect.before.device_s_per_token,
}


@dataclass(frozen=True)
class RunLevers:
    """The levers of a run: sized ones in order, then those without a size and why, and what others saw (source in the words) by lever.

    `reason` says why nothing is sized where the run has no prediction.
    """

    now: Outlook | None
    effects: tuple[LeverEffect, ...]
    without: tuple[tuple[str, str], ...]
    seen: Mapping[str, tuple[str, ...]]
    order: Order
    reason: str = ""


def levers_of(view: RunView, levers: Collection[str]) -> Sized:
    """`levers` sized for a run with its own model, device and the engine's fit that goes for it, held; empty where it is not priced."""
    prediction, model, hardware = view.assessment.prediction, view.model, view.hardware
    if prediction is None or model is None or hardware is None:
        return Sized()
    architecture, request = model.architecture, prediction.request
    engine = held(view.engine, architecture, hardware, Formats.of(request, architecture))
    run = view.stored.run
    return sized_levers(
        levers,
        Setting(hardware, request, engine),
        prediction,
        lambda setting: price_like(run, architecture, setting.hardware, setting.request, setting.engine),
    )


def read_order(text: str) -> Order:
    """An order by its name. Raises InvalidRequest, which lists them."""
    for order in ORDERS:
        if text == order:
            return order
    raise InvalidRequest("sort", f"sort must be one of {', '.join(ORDERS)}.")


def run_levers(view: RunView, order: Order = "total") -> RunLevers:
    """All levers for a stored run, sorted by how much better `order` gets; equal ones stand in the order of their names."""
    sized = levers_of(view, LEVERS)
    effects = sorted(sized.effects.values(), key=lambda effect: (effect.bound, _BETTER[order](effect), effect.lever))
    prediction = view.assessment.prediction
    reason = "" if prediction is not None else " ".join(view.assessment.reasons)
    now = None if prediction is None else Outlook.of(prediction)
    without = tuple(sorted(sized.without.items()))
    return RunLevers(now, tuple(effects), without, seen_elsewhere(), order, reason)


def seen_elsewhere() -> dict[str, tuple[str, ...]]:
    """What each lever did elsewhere, with its source in brackets at the end: what the rules of the diagnosis quote, once a source."""
    found: dict[str, dict[str, str]] = {}
    for rule in RULES:
        for advice in rule.levers:
            if advice.seen:
                found.setdefault(str(advice.lever), {}).setdefault(advice.seen.rpartition("(")[2], advice.seen)
    return {lever: tuple(texts.values()) for lever, texts in found.items()}


def run_levers_json(shown: RunLevers) -> dict[str, Any]:
    """The levers as JSON-ready data: times in seconds, pairs before and after."""
    return {
        "sort": shown.order,
        "reason": shown.reason or None,
        "levers": [
            {"lever": effect.lever, "expected": effect_json(effect), "why_not": None, "seen": _seen(shown, effect.lever)}
            for effect in shown.effects
        ]
        + [{"lever": lever, "expected": None, "why_not": why, "seen": _seen(shown, lever)} for lever, why in shown.without],
    }


def _seen(shown: RunLevers, lever: str) -> Sequence[str]:
    return list(shown.seen.get(lever, ()))
