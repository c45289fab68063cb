"""A run's operating point as the performance model is asked about it, and what can differ between two of them.

A point may be changed in one factor at a time: its prompt, its load, its device. That is how a difference of two runs is divided among
what changed (`attribution`).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Prediction, Request
from app.domain.serving import predict

Place = Literal["served", "in_process", "apart"]
FactorKind = Literal["workload", "configuration"]


@dataclass(frozen=True)
class Point:
    """What prices one run. `steps` is the exact mean number of tokens after the first, which the request holds rounded.

    `place` says what the tool timed: a server's answer, the passes inside the process (nothing stands before the prompt pass), or two
    tests apart, each behind `depth` tokens of context.
    """

    architecture: ModelArchitecture
    hardware: HardwareProfile
    engine: EngineProfile | None
    request: Request
    steps: float
    place: Place = "served"
    depth: int = 0


@dataclass(frozen=True)
class Factor:
    """Something that may differ between two points: fields of the point and of its request that belong together."""

    key: str
    title: str
    kind: FactorKind
    of_request: tuple[str, ...] = ()
    of_point: tuple[str, ...] = ()

    def same(self, base: Point, other: Point) -> bool:
        """Whether the two points agree in it; of lengths that are drawn the means count."""
        asked = all(_asked(base.request, name) == _asked(other.request, name) for name in self.of_request)
        return asked and all(getattr(base, name) == getattr(other, name) for name in self.of_point)

    def words(self, point: Point) -> str:
        """Its value in a point, for a reader."""
        return _WORDS[self.key](point)


_POOLS = ("prefill_replicas", "decode_replicas", "prefill_tp", "prefill_dp", "prefill_ep", "transfer_bytes_per_s")
FACTORS = (
    Factor("prompt_length", "prompt length", "workload", ("prompt_tokens",)),
    Factor("context", "context already present", "workload", ("cached_prefix_tokens",), ("depth",)),
    Factor("output_length", "output length", "workload", ("output_tokens",), ("steps",)),
    Factor("load", "sequences at once", "workload", ("batch", "concurrency", "requests_per_client", "shortest_length", "open_loop")),
    Factor("model", "model", "configuration", ("calibration",), ("architecture",)),
    Factor("device", "device", "configuration", (), ("hardware",)),
    Factor("engine", "engine", "configuration", ("engine",), ("engine",)),
    Factor("weight_format", "weight format", "configuration", ("weight_dtype", "activation_dtype", "moe_dtype", "comm_dtype")),
    Factor("kv_format", "KV cache format", "configuration", ("kv_dtype",)),
    Factor("parallelism", "parallelism", "configuration", ("tp", "pp", "ep", "dp")),
    Factor("pools", "pools for prefill and decode", "configuration", _POOLS),
    Factor("speculation", "speculation", "configuration", ("draft_tokens", "acceptance")),
    Factor("place", "place of measurement", "configuration", (), ("place",)),
)


_LENGTHS = ("prompt_tokens", "output_tokens")


def _asked(request: Request, name: str) -> object:
    return round(request.mean_lengths[_LENGTHS.index(name)]) if name in _LENGTHS else getattr(request, name)


def _load_words(point: Point) -> str:
    asked = point.request
    if asked.concurrency is not None:
        return f"{asked.concurrency:,} running" + (" in an open loop" if asked.open_loop else "")
    return "1 alone" if asked.batch == 1 else f"a batch of {asked.batch:,}"


def _spread_words(point: Point) -> str:
    sizes = {name: getattr(point.request, name) for name in ("tp", "pp", "ep", "dp")}
    return ", ".join(f"{name} {size}" for name, size in sizes.items() if size > 1) or "one device"


def _pool_words(point: Point) -> str:
    asked = point.request
    return "none" if asked.prefill_replicas is None else f"{asked.prefill_replicas} for prefill, {asked.decode_replicas} for decode"


_WORDS: Mapping[str, Callable[[Point], str]] = {
    "prompt_length": lambda point: f"{round(point.request.mean_lengths[0]):,} tokens",
    "context": lambda point: f"{max(point.depth, point.request.cached_prefix_tokens):,} tokens",
    "output_length": lambda point: f"{point.steps + 1:,.6g} tokens",
    "load": _load_words,
    "model": lambda point: point.architecture.name,
    "device": lambda point: point.hardware.name,
    "engine": lambda point: point.engine.name if point.engine else "none named",
    "weight_format": lambda point: point.request.weight_dtype,
    "kv_format": lambda point: point.request.kv_dtype,
    "parallelism": _spread_words,
    "pools": _pool_words,
    "speculation": lambda point: f"{point.request.draft_tokens} drafted" if point.request.draft_tokens else "off",
    "place": lambda point: point.place.replace("_", " "),
}


def differing(base: Point, other: Point) -> tuple[Factor, ...]:
    """The factors in which two points differ, in the order of FACTORS."""
    return tuple(factor for factor in FACTORS if not factor.same(base, other))


def swapped(base: Point, other: Point, factors: Collection[Factor]) -> Point:
    """`base` with these factors as `other` has them. Lengths that are drawn keep their means where only their spread is swapped."""
    names = {name for factor in factors for name in factor.of_request}
    asked = replace(base.request, **{name: getattr(other.request, name) for name in names})
    means = ((other if name in names else base).request.mean_lengths[place] for place, name in enumerate(_LENGTHS))
    moved = {name: getattr(other, name) for factor in factors for name in factor.of_point}
    return replace(base, request=asked.with_mean_lengths(*means), **moved)


def price_point(point: Point) -> Prediction:
    """The prediction at a point. Raises InvalidRequest, with the field, for what cannot be priced."""
    if point.place == "apart":
        return _apart(point)
    predicted = predict(point.architecture, point.hardware, point.request, engine=point.engine)
    if point.place == "served":
        return predicted
    total = predicted.total_s - predicted.front_end_s
    share = predicted.prefill.time_s / total
    return replace(predicted, front_end_s=0.0, ttft_s=predicted.prefill.time_s, total_s=total, prefill_share=share)


def _apart(point: Point) -> Prediction:
    """Two phases timed in two tests, each behind `depth` tokens of context: priced apart and put together."""
    request, depth = point.request, point.depth
    behind = replace(request, prompt_tokens=request.prompt_tokens + depth, cached_prefix_tokens=depth)
    prefill = predict(point.architecture, point.hardware, behind, engine=point.engine)
    decode = predict(point.architecture, point.hardware, replace(request, prompt_tokens=max(depth, 1)), engine=point.engine)
    total = prefill.prefill.time_s + (request.output_tokens - 1) * decode.itl_s
    return replace(
        decode,
        request=request,
        prefill=prefill.prefill,
        front_end_s=0.0,
        ttft_s=prefill.prefill.time_s,
        total_s=total,
        prefill_share=prefill.prefill.time_s / total,
        ttft_range_s=prefill.ttft_range_s,
    )
