"""How large a lever is for a run: the run's own prediction again with that one thing changed. A lever without a model has no number."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.domain.architecture import ModelArchitecture
from app.domain.diagnosis.vocabulary import Lever
from app.domain.dtypes import number_format
from app.domain.engine import EngineProfile
from app.domain.errors import PhaselineError
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Prediction, Request
from app.domain.serving import predict
from app.domain.what_if import Change, changed, unmoved

Changed = tuple[HardwareProfile, Request]


@dataclass(frozen=True)
class LeverEffect:
    """Both phases in seconds, predicted before and after one lever alone; `…_unmoved` says why a phase stays where it is.

    `what` says what was changed, and by how much.
    """

    lever: Lever
    what: str
    ttft_s: tuple[float, float]
    itl_s: tuple[float, float]
    prefill_unmoved: str | None
    decode_unmoved: str | None


def _power(**levers: float) -> Callable[[HardwareProfile, Request], Changed]:
    return lambda hardware, request: changed(hardware, request, Change(**levers))


def _fewer_sequences(hardware: HardwareProfile, request: Request) -> Changed:
    clients = request.concurrency
    return hardware, replace(request, batch=max(request.batch // 2, 1), concurrency=None if clients is None else max(clients // 2, 1))


def _half_the_bytes(hardware: HardwareProfile, request: Request) -> Changed:
    """The format half as wide: of 16 bit that of 8 which the device computes in, where it has one."""
    if number_format(request.weight_dtype).payload_bytes == 2 and hardware.peak("fp8") is not None:
        return hardware, replace(request, weight_dtype="fp8")
    return changed(hardware, request, Change(weight_bytes=-1))


def _half_cached(hardware: HardwareProfile, request: Request) -> Changed:
    return hardware, replace(request, cached_prefix_tokens=request.prompt_tokens // 2)


def _half_prompt(hardware: HardwareProfile, request: Request) -> Changed:
    return hardware, replace(request, prompt_tokens=max(request.prompt_tokens // 2, 1), cached_prefix_tokens=0)


def _fp8(hardware: HardwareProfile, request: Request) -> Changed:
    return hardware, replace(request, weight_dtype="fp8", activation_dtype="fp8")


def _fp8_cache(hardware: HardwareProfile, request: Request) -> Changed:
    return hardware, replace(request, kv_dtype="fp8")


SIZED: Mapping[Lever, tuple[str, Callable[[HardwareProfile, Request], Changed]]] = {
    "fewer_bytes": ("half the bytes per weight", _half_the_bytes),
    "more_quantisation": ("half the bytes per weight", _half_the_bytes),
    "more_bandwidth": ("twice the bandwidth", _power(bandwidth=1)),
    "more_flops": ("twice the FLOP/s", _power(flops=1)),
    "larger_batch": ("twice the batch", _power(batch=1)),
    "smaller_batch": ("half the batch", _fewer_sequences),
    "lower_concurrency": ("half the clients", _fewer_sequences),
    "more_tp": ("twice the devices", _power(tp=1)),
    "more_gpus": ("twice the devices", _power(tp=1)),
    "fp8_kv": ("a cache of 8 bit", _fp8_cache),
    "prefix_cache": ("half of the prompt cached", _half_cached),
    "shorter_prompt": ("half the prompt", _half_prompt),
    "w8a8_or_fp8": ("weights and activations of 8 bit", _fp8),
}


def lever_effects(
    levers: Iterable[str], prediction: Prediction, model: ModelArchitecture, hardware: HardwareProfile, engine: EngineProfile | None
) -> dict[str, LeverEffect]:
    """Each of `levers` that the model can size, alone; those that the question does not allow are left out."""
    found = {}
    for lever, (what, change) in SIZED.items():
        if lever not in levers:
            continue
        try:
            after = predict(model, *change(hardware, prediction.request), engine=engine)
        except PhaselineError:
            # A change that cannot be made (no narrower format, no such device) has no size.
            continue
        found[str(lever)] = LeverEffect(
            lever,
            what,
            (prediction.ttft_s, after.ttft_s),
            (prediction.itl_s, after.itl_s),
            unmoved(prediction.prefill, after.ttft_s, prediction.ttft_s),
            unmoved(prediction.decode, after.itl_s, prediction.itl_s),
        )
    return found


def effect_json(effect: LeverEffect | None) -> dict[str, Any] | None:
    """The size of a lever as JSON-ready data; None: not known."""
    if effect is None:
        return None
    return {
        "what": effect.what,
        "ttft_s": list(effect.ttft_s),
        "itl_s": list(effect.itl_s),
        "prefill_unmoved": effect.prefill_unmoved,
        "decode_unmoved": effect.decode_unmoved,
    }
