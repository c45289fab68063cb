"""What would change a prediction: the same question with its levers moved, together and one at a time."""

from dataclasses import dataclass, replace
from typing import Any

from app.domain.errors import PhaselineError
from app.domain.prediction import Prediction
from app.domain.profile_choice import held
from app.domain.rates import Formats
from app.domain.what_if import RANGES, Change, Lever, changed, unmoved
from app.services.predicting import Answer, Question, answer, priced
from app.services.prediction_json import deployment_json
from app.services.profiles import ProfileBook

# What one move of each lever is: its usual direction is the better one.
SINGLE: dict[Lever, Change] = {
    "bandwidth": Change(bandwidth=1),
    "flops": Change(flops=1),
    "weight_bytes": Change(weight_bytes=-1),
    "batch": Change(batch=1),
    "tp": Change(tp=1),
}
TITLES: dict[Lever, str] = {
    "bandwidth": "Twice the bandwidth",
    "flops": "Twice the FLOP/s",
    "weight_bytes": "Half the bytes per weight",
    "batch": "Twice the batch",
    "tp": "Twice the devices",
}


@dataclass(frozen=True)
class LeverEffect:
    """One lever moved alone: both phases and the rate for all, or the reason why it cannot be moved."""

    lever: Lever
    title: str
    after: Prediction | None
    refused: str | None = None
    prefill_unmoved: str | None = None
    decode_unmoved: str | None = None


@dataclass(frozen=True)
class WhatIf:
    """A prediction before and after a change; `refused` says why there is no after."""

    change: Change
    before: Answer
    after: Answer | None
    refused: str | None
    effects: tuple[LeverEffect, ...]


def what_if(book: ProfileBook, question: Question, change: Change) -> WhatIf:
    """The question before and after `change`, and each lever alone. Raises what `answer` raises for the question as it stands."""
    before = answer(book, question)
    effects = tuple(_effect(before, lever) for lever in SINGLE)
    try:
        return WhatIf(change, before, _after(before, change), None, effects)
    except PhaselineError as error:
        return WhatIf(change, before, None, str(error), effects)


def _after(before: Answer, change: Change) -> Answer:
    asked, architecture = before.question.request, before.model.architecture
    hardware, request = changed(before.hardware, asked, change)
    engine = held(before.engine, architecture, before.hardware, Formats.of(asked, architecture))
    rate = before.question.request_rate_per_s
    question = replace(before.question, request=request)
    if rate is not None:  # more of a load that comes at a rate is a higher rate
        question = replace(question, request=replace(request, batch=asked.batch), request_rate_per_s=rate * 2.0**change.batch)
    return replace(before, question=question, hardware=hardware, prediction=priced(architecture, hardware, question, engine))


def _effect(before: Answer, lever: Lever) -> LeverEffect:
    old = before.prediction
    try:
        new = _after(before, SINGLE[lever]).prediction
    except PhaselineError as error:
        return LeverEffect(lever, TITLES[lever], None, str(error))
    return LeverEffect(
        lever,
        TITLES[lever],
        new,
        prefill_unmoved=unmoved(old.prefill, new.ttft_s, old.ttft_s, old.queue_s),
        decode_unmoved=unmoved(old.decode, new.itl_s, old.itl_s),
    )


def what_if_json(found: WhatIf) -> dict[str, Any]:
    """The answer as JSON-ready data; ratios are after / before."""
    before = found.before.prediction
    return {
        "change": {f"{lever}_log2": getattr(found.change, lever) for lever in RANGES},
        "before": deployment_json(found.before),
        "after": None if found.after is None else deployment_json(found.after),
        "refused": found.refused,
        "levers": [_effect_json(effect, before) for effect in found.effects],
    }


def _effect_json(effect: LeverEffect, before: Prediction) -> dict[str, Any]:
    after = effect.after
    return {
        "lever": effect.lever,
        "title": effect.title,
        "ttft_ratio": None if after is None else after.ttft_s / before.ttft_s,
        "itl_ratio": None if after is None else after.itl_s / before.itl_s,
        "total_ratio": None if after is None else after.total_s / before.total_s,
        "aggregate_tokens_per_s_ratio": None if after is None else after.aggregate_tokens_per_s / before.aggregate_tokens_per_s,
        "prefill_unmoved": effect.prefill_unmoved,
        "decode_unmoved": effect.decode_unmoved,
        "refused": effect.refused,
    }
