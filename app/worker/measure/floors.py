"""What the model of performance expects of a point on the job's device, and whether the point fits in memory."""

from dataclasses import dataclass, replace

from app.domain.architecture import ModelArchitecture
from app.domain.hardware import HardwareProfile
from app.domain.prediction import PassCost, Prediction, Request
from app.domain.serving import predict

RUNTIME_BYTES = 2**30
_KEPT_FREE = 0.9


@dataclass(frozen=True)
class Floors:
    """Seconds of the prompt pass and of the mean decode step: the floor at specified rates, and what the achieved rates allow."""

    prefill_floor_s: float
    prefill_attainable_s: float
    decode_floor_s: float
    decode_attainable_s: float
    prefill_bound: str
    decode_bound: str

    def shares(self, prefill_s: float | None, step_s: float | None) -> dict[str, float | None]:
        """How close the measured times come to both, fractions; None where a time is not known."""
        return {
            "prefill_share_of_floor": self.prefill_floor_s / prefill_s if prefill_s else None,
            "prefill_share_of_attainable": self.prefill_attainable_s / prefill_s if prefill_s else None,
            "decode_share_of_floor": self.decode_floor_s / step_s if step_s else None,
            "decode_share_of_attainable": self.decode_attainable_s / step_s if step_s else None,
        }


def request_of(prompt_tokens: int, output_tokens: int, batch: int, dtype: str) -> Request:
    """A static batch in one number format."""
    request = Request(prompt_tokens=prompt_tokens, output_tokens=output_tokens, batch=batch)
    return replace(request, weight_dtype=dtype, activation_dtype=dtype, kv_dtype=dtype)


def predicted(model: ModelArchitecture, hardware: HardwareProfile, request: Request) -> Prediction:
    """The prediction of the point from the model's shapes, whatever round figure stands beside them."""
    return predict(replace(model, declared_parameters=None), hardware, request)


def floors(model: ModelArchitecture, hardware: HardwareProfile | None, request: Request) -> Floors | None:
    """The floors of a point; None without a profile of the device."""
    if hardware is None:
        return None
    found = predicted(model, hardware, request)
    prefill, decode = found.prefill, found.decode
    return Floors(prefill.floor_s, prefill.attainable_s, decode.floor_s, decode.attainable_s, _bound(prefill), _bound(decode))


def _bound(cost: PassCost) -> str:
    """Which of its two times is the longer, at achieved rates; fixed times apart."""
    return "compute" if cost.compute_s > cost.memory_s else "memory"


def needed_bytes(model: ModelArchitecture, request: Request, scores_bytes: float, weights_there: bool) -> float:
    """Bytes that a point needs beside what is in use: weights (unless they are there), KV cache, activations, logits, and 1 GiB."""
    nowhere = HardwareProfile("device", "device", "", 1.0, {request.weight_dtype: 1.0})
    memory = predicted(model, nowhere, request).memory
    weights = 0.0 if weights_there else memory.weight_bytes
    return weights + memory.kv_bytes + memory.activation_bytes + scores_bytes + RUNTIME_BYTES


def shortage(needed: float, free: int | None) -> str | None:
    """Why a point is not tried, None when it fits or nobody knows what is free."""
    if free is None or needed <= _KEPT_FREE * free:
        return None
    return f"about {needed / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free, of which a tenth stays free"
