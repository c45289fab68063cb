"""How large a lever is for a run: the run's own prediction again with that one thing changed. A lever without a model has no number.

Two kinds of size are kept apart: most levers are priced as they would be set; some only by what they could take away at most (`bound`),
since the model knows the time they act on and not how well they do it.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.diagnosis.vocabulary import Lever
from app.domain.dtypes import number_format
from app.domain.engine import EngineProfile
from app.domain.errors import PhaselineError
from app.domain.hardware import HardwareProfile
from app.domain.prediction import PassCost, Prediction, Request
from app.domain.schedule import Schedule
from app.domain.what_if import Change, changed, unmoved

# What drafts bring depends on model and text; these are said wherever their effect is shown.
_DRAFT_TOKENS = 3
_ACCEPTANCE = 0.7


@dataclass(frozen=True)
class Setting:
    """What a lever may change: the device, the request, the engine's profile, and how many copies of all this share the load."""

    hardware: HardwareProfile
    request: Request
    engine: EngineProfile | None
    copies: int = 1


Price = Callable[[Setting], Prediction]


@dataclass(frozen=True)
class Outlook:
    """Figures of one setting: seconds of a request of mean lengths, output tokens/s of all requests together over their whole time (Little:
    those in flight x tokens / total), devices, bytes per device, sequences that fit."""

    ttft_s: float
    itl_s: float
    total_s: float
    output_tokens_per_s: float
    devices: int
    memory_bytes: float
    max_batch: int | None

    @property
    def device_s_per_token(self) -> float:
        """Seconds of one device for an output token, what it costs wherever devices are paid by time."""
        return self.devices / self.output_tokens_per_s

    @classmethod
    def of(cls, prediction: Prediction, copies: int = 1) -> "Outlook":
        """The figures of a prediction, of `copies` of it for rates and devices."""
        request, memory = prediction.request, prediction.memory
        in_flight = copies * (request.batch if request.concurrency is None else request.concurrency)
        return cls(
            prediction.ttft_s,
            prediction.itl_s,
            prediction.total_s,
            in_flight * request.mean_lengths[1] / prediction.total_s,
            request.tp * request.pp * request.dp * copies,
            memory.weight_bytes + memory.kv_bytes + memory.activation_bytes,
            memory.max_batch,
        )


@dataclass(frozen=True)
class LeverEffect:
    """One lever alone, before and after; `…_unmoved` says why a phase stays where it is. `what` says what was changed, and by how much.

    `bound`: the effect is the most that the lever could have.
    """

    lever: Lever
    what: str
    before: Outlook
    after: Outlook
    prefill_unmoved: str | None = None
    decode_unmoved: str | None = None
    bound: bool = False

    @property
    def ttft_s(self) -> tuple[float, float]:
        """Seconds to the first token, before and after."""
        return self.before.ttft_s, self.after.ttft_s

    @property
    def itl_s(self) -> tuple[float, float]:
        """Seconds of each further token, before and after."""
        return self.before.itl_s, self.after.itl_s


@dataclass(frozen=True)
class Move:
    """How one lever is priced: a changed setting, or (`without`) the seconds that it could take from a pass at most."""

    what: str
    change: Callable[[Setting], Setting] | None = None
    without: Callable[[PassCost], float] | None = None
    no_interference: bool = False


def _power(**levers: float) -> Callable[[Setting], Setting]:
    def change(now: Setting) -> Setting:
        hardware, request = changed(now.hardware, now.request, Change(**levers))
        return replace(now, hardware=hardware, request=request)

    return change


def _asked(**values: Any) -> Callable[[Setting], Setting]:
    return lambda now: replace(now, request=replace(now.request, **values))


def _fewer_sequences(now: Setting) -> Setting:
    request, clients = now.request, now.request.concurrency
    if max(request.batch, clients or 1) == 1:
        raise PhaselineError("One request runs alone already.")
    halved = replace(request, batch=max(request.batch // 2, 1), concurrency=None if clients is None else max(clients // 2, 1))
    return replace(now, request=halved)


def _two_copies(now: Setting) -> Setting:
    return replace(_fewer_sequences(now), copies=2 * now.copies)


def _half_the_bytes(now: Setting) -> Setting:
    """The format half as wide: of 16 bit that of 8 which the device computes in, where it has one."""
    if number_format(now.request.weight_dtype).payload_bytes == 2 and now.hardware.peak("fp8") is not None:
        return _asked(weight_dtype="fp8")(now)
    return _power(weight_bytes=-1)(now)


def _half_cached(now: Setting) -> Setting:
    return _asked(cached_prefix_tokens=now.request.prompt_tokens // 2)(now)


def _half_prompt(now: Setting) -> Setting:
    return _asked(prompt_tokens=max(now.request.prompt_tokens // 2, 1), cached_prefix_tokens=0)(now)


def _twice_the_budget(schedule: Schedule) -> Schedule:
    return replace(schedule, chunk_tokens=2 * schedule.chunk)


def _twice_the_cap(schedule: Schedule) -> Schedule:
    return replace(schedule, running_cap=2 * schedule.cap)


def _scheduled(change: Callable[[Schedule], Schedule]) -> Callable[[Setting], Setting]:
    def move(now: Setting) -> Setting:
        if now.engine is None:
            raise PhaselineError("The run's engine has no profile, so its schedule is not known.")
        return replace(now, engine=replace(now.engine, schedule=change(now.engine.schedule)))

    return move


MOVES: Mapping[Lever, Move] = {
    "fewer_bytes": Move("half the bytes per weight", _half_the_bytes),
    "more_quantisation": Move("half the bytes per weight", _half_the_bytes),
    "w8a8_or_fp8": Move("weights and activations of 8 bit", _asked(weight_dtype="fp8", activation_dtype="fp8")),
    "fp8_kv": Move("a cache of 8 bit", _asked(kv_dtype="fp8")),
    "more_bandwidth": Move("twice the bandwidth", _power(bandwidth=1)),
    "more_flops": Move("twice the FLOP/s", _power(flops=1)),
    "larger_batch": Move("twice the batch", _power(batch=1)),
    "smaller_batch": Move("half the sequences at once", _fewer_sequences),
    "lower_concurrency": Move("half the sequences at once", _fewer_sequences),
    "more_tp": Move("twice the devices", _power(tp=1)),
    "more_gpus": Move("twice the devices", _power(tp=1)),
    "data_parallel_replicas": Move("two copies, each with half the load", _two_copies),
    "prefix_cache": Move("half of the prompt cached", _half_cached),
    "shorter_prompt": Move("half the prompt", _half_prompt),
    "shorter_context": Move("half the prompt", _half_prompt),
    "raise_max_num_batched_tokens": Move("twice the chunk budget", _scheduled(_twice_the_budget)),
    "raise_max_num_seqs": Move("twice the cap on running sequences", _scheduled(_twice_the_cap)),
    "speculative_decoding": Move(
        f"{_DRAFT_TOKENS} drafted tokens, each accepted with a chance of {_ACCEPTANCE:.0%}",
        _asked(draft_tokens=_DRAFT_TOKENS, acceptance=_ACCEPTANCE),
    ),
    "cuda_graphs": Move("no launches and no scheduling at all", without=lambda cost: cost.overhead_s),
    "fix_interconnect": Move("no time on links at all", without=lambda cost: cost.comm_s),
    "disaggregate_prefill": Move("no prefill between two tokens", no_interference=True),
    "chunked_prefill_interleave": Move("no prefill between two tokens", no_interference=True),
}

# Why a lever has no number: the model does not hold the time that it acts on.
UNSIZED: Mapping[Lever, str] = {
    "async_mask": "masks of constrained output are made by the host, whose time is in no profile; compare a run with and one without",
    "disable_proxy_buffering": "what a proxy holds back is not in the model; the same question sent past it tells",
    "faster_grammar_backend": "the time of a grammar is in no profile; compare a run with constrained output and one without",
    "kv_watermark": "preemptions follow from the moments of arrival: simulate the load on the prediction page",
    "merge_adapter": "the kernels of an adapter are in no profile; compare a run with the adapter and one without",
    "more_threads": "profiles hold no scaling with threads; measure at two counts",
    "no_evict_policy": "preemptions follow from the moments of arrival: simulate the load on the prediction page",
    "raise_graph_batch_limit": "where graphs end is a setting of the engine; a step on either side of it tells",
}


@dataclass(frozen=True)
class Sized:
    """Effects by lever, and for each lever without one the reason."""

    effects: Mapping[str, LeverEffect] = field(default_factory=dict)
    without: Mapping[str, str] = field(default_factory=dict)


def sized_levers(levers: Collection[str], now: Setting, prediction: Prediction, price: Price) -> Sized:
    """Each of `levers` alone: its effect, an upper bound of it, or the reason why it has none. `prediction` is the price of `now`."""
    effects, without = {}, dict[str, str]()
    for lever, why in UNSIZED.items():
        if lever in levers:
            without[lever] = why
    for lever, move in MOVES.items():
        if lever not in levers:
            continue
        try:
            effects[str(lever)] = _effect(lever, move, now, prediction, price)
        except PhaselineError as error:
            without[lever] = str(error).rstrip(".")
    return Sized(effects, without)


def _effect(lever: Lever, move: Move, now: Setting, prediction: Prediction, price: Price) -> LeverEffect:
    if move.change is None:
        after, copies = _taken_away(move, prediction), now.copies
    else:
        setting = move.change(now)
        after, copies = price(setting), setting.copies
    return LeverEffect(
        lever,
        move.what,
        Outlook.of(prediction, now.copies),
        Outlook.of(after, copies),
        unmoved(prediction.prefill, after.ttft_s, prediction.ttft_s, prediction.queue_s),
        unmoved(prediction.decode, after.itl_s, prediction.itl_s),
        bound=move.change is None,
    )


def _taken_away(move: Move, prediction: Prediction) -> Prediction:
    """The prediction without the time that a lever acts on, never below a pass's floor."""
    less_prefill = less_decode = 0.0
    if move.without is not None:
        less_prefill = min(move.without(prediction.prefill), prediction.prefill.time_s - prediction.prefill.floor_s)
        less_decode = min(move.without(prediction.decode), prediction.decode.time_s - prediction.decode.floor_s)
    if move.no_interference:
        less_decode = prediction.interference_s
    if less_prefill <= 0 and less_decode <= 0:
        raise PhaselineError("The prediction holds no such time for this run.")
    ttft, itl = prediction.ttft_s - less_prefill, prediction.itl_s - less_decode
    return replace(prediction, ttft_s=ttft, itl_s=itl, total_s=ttft + prediction.request.further_tokens * itl)


def effect_json(effect: LeverEffect | None) -> dict[str, Any] | None:
    """The size of a lever as JSON-ready data, pairs before and after; None: not known."""
    if effect is None:
        return None
    before, after = effect.before, effect.after
    return {
        "what": effect.what,
        "bound": effect.bound,
        "ttft_s": [before.ttft_s, after.ttft_s],
        "itl_s": [before.itl_s, after.itl_s],
        "total_s": [before.total_s, after.total_s],
        "output_tokens_per_s": [before.output_tokens_per_s, after.output_tokens_per_s],
        "devices": [before.devices, after.devices],
        "device_s_per_token": [before.device_s_per_token, after.device_s_per_token],
        "memory_bytes_per_device": [before.memory_bytes, after.memory_bytes],
        "max_batch": [before.max_batch, after.max_batch],
        "prefill_unmoved": effect.prefill_unmoved,
        "decode_unmoved": effect.decode_unmoved,
    }
