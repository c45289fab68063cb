"""A prediction in words and numbers, as the pages show it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.domain.dtypes import number_format
from app.domain.errors import PhaselineError
from app.domain.hardware import HardwareProfile
from app.domain.nearest import Near
from app.domain.observed import RequestTimes, predicted_times
from app.domain.prediction import PassCost, Prediction
from app.domain.quantity import byte_rate, bytes_, count, factor, flops, flops_rate, percent, seconds
from app.pages.form import PredictForm
from app.services.figures import prediction_roofline
from app.services.nearest import nearest
from app.services.predicting import Answer, answer
from app.services.profiles import ProfileBook


@dataclass(frozen=True)
class PhaseView:
    """One phase as a claim: its time, the formula with the numbers put in, and the limit it does not meet."""

    key: str
    title: str
    cost: PassCost
    bound_words: str
    badge: str
    formula: tuple[str, str]
    aside: str


@dataclass(frozen=True)
class Row:
    """A row of the two-phase table."""

    title: str
    prefill: str
    decode: str
    note: str = ""


@dataclass(frozen=True)
class PredictionView:
    """Everything the prediction pages show."""

    answer: Answer
    prefill: PhaseView
    decode: PhaseView
    rows: tuple[Row, ...]
    times: RequestTimes
    roofline: dict[str, Any]
    headline: str
    left_behind: str
    nearest: tuple[Near, ...]

    @property
    def prediction(self) -> Prediction:
        """The numbers behind it."""
        return self.answer.prediction


def view_of(found: Answer) -> PredictionView:
    """The view of one answer."""
    prediction = found.prediction
    request = prediction.request
    prefill, decode = _phase("prefill", found), _phase("decode", found)
    whole = "A request of mean length" if request.mean_share < 1 else "The whole request"
    return PredictionView(
        answer=found,
        prefill=prefill,
        decode=decode,
        rows=phase_rows(found),
        times=predicted_times(prediction),
        roofline=prediction_roofline(found),
        headline=f"{whole} {'takes' if request.further_tokens else 'is its first token:'} {seconds(prediction.total_s)}",
        left_behind=_left_behind(found),
        nearest=nearest(found),
    )


def _left_behind(found: Answer) -> str:
    """The KV cache halfway through the answer, beside the weights that each step reads too: why steps cost about the same."""
    request, architecture = found.prediction.request, found.model.architecture
    positions = request.prompt_tokens + request.output_tokens // 2
    cache = architecture.kv_cache_bytes(positions, number_format(request.kv_dtype, "kv_dtype").bytes)
    weights = architecture.active_parameters * number_format(request.weight_dtype).bytes
    return f"{count(positions)} positions leave {bytes_(cache)} of KV cache, {percent(cache / weights)} of the weights"


def _phase(key: str, found: Answer) -> PhaseView:
    prediction, hardware = found.prediction, found.hardware
    cost = prediction.prefill if key == "prefill" else prediction.decode
    compute_bound = cost.bound == "compute"
    achieved = cost.flops / cost.compute_s if cost.compute_s else None
    read_rate = cost.bytes / cost.memory_s if cost.memory_s else hardware.bandwidth_bytes_per_s
    if compute_bound and achieved:
        formula = (flops(cost.flops), flops_rate(achieved))
        aside = f"Memory would need {seconds(cost.memory_s)}: {factor(cost.compute_s / cost.memory_s).rstrip('×')} times less."
    else:
        formula = (bytes_(cost.bytes), byte_rate(read_rate))
        aside = f"Arithmetic needs {seconds(cost.compute_s)}."
        if key == "decode":
            rate = count(prediction.request_tokens_per_s)
            aside = f"At most {rate} tokens/s per request. Arithmetic needs {seconds(cost.compute_s)}."
    words = {"compute": "compute-bound", "memory": "bandwidth-bound", "communication": "bound by the link", "overhead": "bound by launches"}
    badge = "compute" if compute_bound else "memory" if cost.bound == "memory" else ""
    return PhaseView(key, key.capitalize(), cost, words[cost.bound], badge, formula, aside)


def phase_rows(found: Answer) -> tuple[Row, ...]:
    """The two phases side by side: what a pass is, what it costs, what limits it, what it makes, what it grows with, what helps."""
    prediction, model, hardware = found.prediction, found.model, found.hardware
    request, prefill, decode = prediction.request, prediction.prefill, prediction.decode
    hidden = model.architecture.hidden
    batch = f" × {request.batch} requests" if request.batch > 1 else ""
    new = max(request.prompt_tokens - request.cached_prefix_tokens, 1)
    ridge = prediction.ridge_achieved
    return (
        Row(
            "Shape of the pass",
            f"{count(new)} × {count(hidden)}{batch}, once",
            f"1 × {count(hidden)}{batch}, for {count(request.output_tokens)} tokens in sequence",
            "positions through a layer at once",
        ),
        Row("Arithmetic", flops(prefill.flops), flops(decode.flops), _arithmetic_words(found, new)),
        Row("Bytes moved", bytes_(prefill.bytes), bytes_(decode.bytes), _bytes_words(found)),
        Row(
            "Work per byte",
            f"{_three(prefill.intensity_flops_per_byte)} FLOP/byte",
            f"{_three(decode.intensity_flops_per_byte)} FLOP/byte",
            f"the ridge is at {_three(ridge)} achieved, {_three(prediction.ridge_peak)} by specification",
        ),
        *_attention_row(prediction),
        Row("Arithmetic alone", seconds(prefill.compute_s), seconds(decode.compute_s), _achieved_words(prefill, hardware)),
        Row("Memory alone", seconds(prefill.memory_s), seconds(decode.memory_s), byte_rate(_rate(decode, hardware))),
        Row("Limited by", _limit(prefill), _limit(decode)),
        Row("Floor", seconds(prefill.floor_s), seconds(decode.floor_s), "specified peaks: nothing can beat it"),
        Row("Expected", seconds(prefill.time_s), seconds(decode.time_s), "achieved rates, launches and overheads"),
        Row("Makes", f"time to first token, {seconds(prediction.ttft_s)}", f"inter-token latency, {seconds(prediction.itl_s)}"),
        *_share_row(prediction),
        Row("Grows with", "prompt length", "output length, and context"),
        Row("Gains from batching", _batching(prefill), _batching(decode)),
        Row(
            "Levers",
            "shorter or cached prompts, more FLOP/s, a better attention kernel, lower-precision arithmetic",
            "fewer bytes per weight, more bandwidth, more devices, a larger batch, speculation",
        ),
    )


def _share_row(prediction: Prediction) -> list[Row]:
    """What each phase takes of the whole request; nothing to say when one token is all."""
    steps = prediction.request.further_tokens
    if not steps:
        return []
    decode_s, share = steps * prediction.itl_s, prediction.ttft_s / prediction.total_s
    decode = f"{count(steps)} × {seconds(prediction.itl_s)} = {seconds(decode_s)}, {percent(1 - share)}"
    return [
        Row("Of the whole request", f"{seconds(prediction.ttft_s)}, {percent(share)}", decode, f"{seconds(prediction.total_s)} together")
    ]


def _arithmetic_words(found: Answer, new: int) -> str:
    """How the arithmetic came about: the numbers put in where the weights are all that counts, else what is summed."""
    request = found.prediction.request
    if found.prediction.attention_beside is None:
        return "2 per weight and token, and attention"
    return f"2 per weight and token: 2 × {_parameters(found)} × {count(request.batch * new)} and × {request.batch}{_devices(request.tp)}"


def _bytes_words(found: Answer) -> str:
    """How the bytes came about, in the same way."""
    request = found.prediction.request
    if found.prediction.attention_beside is None:
        return "weights once a pass, with KV cache and activations"
    width = number_format(request.weight_dtype).payload_bytes
    if found.model.architecture.expert_layers:
        return (
            f"the weights that these tokens touch at {width:g} byte{'s' if width > 1 else ''}{_devices(request.tp)}, crossing once a pass"
        )
    return f"{_parameters(found)} weights at {width:g} byte{'s' if width > 1 else ''}{_devices(request.tp)}, crossing once a pass"


def _parameters(found: Answer) -> str:
    return count_billions(found.model.architecture.active_parameters)


def _devices(tp: int) -> str:
    return f" ÷ {tp} devices" if tp > 1 else ""


def _batching(cost: PassCost) -> str:
    return "nothing: the arithmetic units are busy" if cost.bound == "compute" else "most: one read serves the batch"


def _attention_row(prediction: Prediction) -> list[Row]:
    """Textbook mode counts the weights alone; what attention would add to prefill stands beside it, in no other figure."""
    beside = prediction.attention_beside
    if beside is None:
        return []
    with_it = seconds(prediction.prefill.time_s + beside.time_s)
    note = f"{flops(beside.flops)}, {percent(beside.flops / prediction.prefill.flops)} of the weights’ work; in no other figure here"
    return [Row("Attention, beside", f"{seconds(beside.time_s)} more: {with_it} with it", "", note)]


def _achieved_words(cost: PassCost, hardware: HardwareProfile) -> str:
    return flops_rate(cost.flops / cost.compute_s) if cost.compute_s else f"on {hardware.name}"


def _rate(cost: PassCost, hardware: HardwareProfile) -> float:
    return cost.bytes / cost.memory_s if cost.memory_s else hardware.bandwidth_bytes_per_s


def _limit(cost: PassCost) -> str:
    if not cost.compute_s or not cost.memory_s:
        return cost.bound
    if cost.bound == "compute":
        return f"arithmetic, by {factor(cost.compute_s / cost.memory_s)}"
    if cost.bound == "memory":
        idle = 1 - cost.compute_s / cost.memory_s
        return f"memory, by {factor(cost.memory_s / cost.compute_s)}; the arithmetic waits {percent(idle)} of the step"
    return {"communication": "the link between devices", "overhead": "launches and scheduling"}[cost.bound]


def _three(value: float) -> str:
    return count(round(value)) if value >= 100 else f"{value:.3g}"


def count_billions(parameters: int) -> str:
    """A parameter count as people say it: 8.03 billion."""
    return f"{parameters / 1e9:.3g} billion" if parameters >= 1e9 else f"{parameters / 1e6:.3g} million"


@dataclass(frozen=True)
class Try:
    """One thing changed: the request before and after on one scale, and what moved."""

    title: str
    why: str
    href: str
    before: Prediction
    after: Prediction


def tries_of(book: ProfileBook, form: PredictForm, before: Prediction) -> Sequence[Try]:
    """Three changes to the question on the form, each priced beside `before`; one that cannot be priced is left out."""
    question = form.question
    if question is None:
        return ()
    prompt = question.request.prompt_tokens
    changes: list[tuple[str, str, dict[str, Any]]] = [
        ("Double the prompt", f"{count(2 * prompt)} tokens in: only the first bar grows.", {"prompt_tokens": 2 * prompt}),
        ("Halve the bytes", "8-bit weights: each token reads half as much.", {"weight_dtype": "int8"}),
        ("Batch of 32", "One read of the weights serves 32 users.", {"batch": 32}),
    ]
    tries = []
    for title, why, change in changes:
        try:
            changed = replace(question, request=replace(question.request, **change))
            tries.append(Try(title, why, form.address("/predict", **change), before, answer(book, changed).prediction))
        except PhaselineError:
            continue
    return tries
