"""The prediction of the public contract as JSON-ready data."""

from dataclasses import asdict
from typing import Any

from app.domain.prediction import PassCost, Prediction
from app.services.nearest import nearest_json
from app.services.pools import pools_json
from app.services.predicting import Answer
from app.services.under_load import UnderLoad, served_json


def answer_json(found: Answer, simulated: UnderLoad | None = None) -> dict[str, Any]:
    """The same with `nearest`, the published measurements nearest to the question."""
    return {**deployment_json(found, simulated), "nearest": nearest_json(found)}


def deployment_json(found: Answer, simulated: UnderLoad | None = None) -> dict[str, Any]:
    """A prediction with `pools`, those of a disaggregated deployment; null where prefill and decode share their devices."""
    return {**prediction_json(found.prediction, simulated), "pools": pools_json(found)}


def prediction_json(prediction: Prediction, simulated: UnderLoad | None = None) -> dict[str, Any]:
    """The answer of /predict: both phases with their operators, the request, memory, range and assumptions; SI units.

    `simulated` is the load pass by pass, where it was asked for.
    """
    memory = prediction.memory
    return {
        "prefill": _pass(prediction.prefill),
        "decode": {**_pass(prediction.decode), "first_step_s": prediction.first_step_s, "last_step_s": prediction.last_step_s},
        "front_end_s": prediction.front_end_s,
        "queue_s": prediction.queue_s,
        "interference_s": prediction.interference_s,
        "ttft_s": prediction.ttft_s,
        "itl_s": prediction.itl_s,
        "total_s": prediction.total_s,
        "prefill_share": prediction.prefill_share,
        "phase": prediction.phase,
        "attention_beside": _beside(prediction),
        "ridge_flops_per_byte": {"peak": prediction.ridge_peak, "achieved": prediction.ridge_achieved},
        "tokens_per_s": {"request": prediction.request_tokens_per_s, "aggregate": prediction.aggregate_tokens_per_s},
        "memory": {
            "weight_bytes": memory.weight_bytes,
            "kv_bytes_per_token": memory.kv_bytes_per_token,
            "kv_bytes": memory.kv_bytes,
            "activation_bytes": memory.activation_bytes,
            "capacity_bytes": memory.capacity_bytes,
            "fits": memory.fits,
            "max_batch": memory.max_batch,
        },
        "weights": None if prediction.weights is None else asdict(prediction.weights),
        "range": {"ttft_s": list(prediction.ttft_range_s), "itl_s": list(prediction.itl_range_s)},
        "assumptions": list(prediction.assumptions),
        "served": served_json(prediction, simulated),
        "model_version": prediction.model_version,
    }


def _beside(prediction: Prediction) -> dict[str, float] | None:
    """Textbook mode's line of its own: what causal attention would add to prefill, its share of the arithmetic then, and prefill with it.

    It is in no other figure.
    """
    beside, prefill = prediction.attention_beside, prediction.prefill
    if beside is None:
        return None
    share = beside.flops / (prefill.flops + beside.flops)
    return {"time_s": beside.time_s, "flops": beside.flops, "share": share, "prefill_with_it_s": prefill.compute_s + beside.time_s}


def _pass(cost: PassCost) -> dict[str, Any]:
    return {
        "time_s": cost.time_s,
        "floor_s": cost.floor_s,
        "attainable_s": cost.attainable_s,
        "compute_s": cost.compute_s,
        "memory_s": cost.memory_s,
        "comm_s": cost.comm_s,
        "overhead_s": cost.overhead_s,
        "bound": cost.bound,
        "flops": cost.flops,
        "bytes": cost.bytes,
        "intensity_flops_per_byte": cost.intensity_flops_per_byte,
        "terms": [
            {"name": t.name, "part": t.part, "time_s": t.time_s, "flops": t.flops, "bytes": t.bytes, "bound": t.bound} for t in cost.terms
        ],
    }
