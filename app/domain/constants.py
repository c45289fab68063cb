"""The constants of the performance model where neither device nor engine has a figure of its own, each with label and source."""

from collections.abc import Mapping
from dataclasses import dataclass

_MODEL = "performance model section 3: fits to published operator and end-to-end measurements"
_PROFILES = "engine profiles section 1"


@dataclass(frozen=True)
class Constant:
    """A figure in SI units or a plain fraction, one of hardware.LABELS, and where it comes from."""

    value: float
    label: str
    source: str


def _fitted(value: float) -> Constant:
    return Constant(value, "fitted", _MODEL)


DEFAULTS: Mapping[str, Constant] = {
    "compute_efficiency.bf16": _fitted(0.75),
    "compute_efficiency.fp16": _fitted(0.75),
    "compute_efficiency.fp8": _fitted(0.50),
    "compute_efficiency.fp4": _fitted(0.42),
    "compute_efficiency.int8": Constant(0.50, "assumed", "as fp8"),
    "compute_efficiency.tf32": Constant(0.75, "assumed", "as bf16"),
    "compute_efficiency.fp32": Constant(0.75, "assumed", "as bf16"),
    "compute_efficiency.fp8_block": Constant(0.40, "fitted", _PROFILES + " (fp8 with a scale per block)"),
    "compute_efficiency.weight_only": Constant(0.50, "fitted", _PROFILES + " (weights unpacked to the activation's format)"),
    "expert_compute_efficiency.bf16": Constant(0.50, "fitted", _PROFILES + " (grouped products of experts)"),
    "expert_compute_efficiency.fp16": Constant(0.50, "assumed", "as bf16"),
    "expert_compute_efficiency.tf32": Constant(0.50, "assumed", "as bf16"),
    "expert_compute_efficiency.fp32": Constant(0.50, "assumed", "as bf16"),
    "expert_compute_efficiency.fp8": Constant(0.45, "fitted", _PROFILES),
    "expert_compute_efficiency.int8": Constant(0.45, "assumed", "as fp8"),
    "expert_compute_efficiency.fp8_block": Constant(0.40, "fitted", _PROFILES),
    "expert_compute_efficiency.fp4": Constant(0.30, "fitted", _PROFILES),
    "expert_compute_efficiency.weight_only": Constant(0.45, "fitted", _PROFILES),
    "attention_efficiency.limit": _fitted(0.6),
    "attention_efficiency.half_length_tokens": _fitted(1000.0),
    "attention_efficiency.decode": Constant(0.45, "fitted", _PROFILES + " (latent-attention decode kernels)"),
    "weight_bandwidth_efficiency": _fitted(0.86),
    "kv_bandwidth_efficiency": _fitted(0.85),
    "launch_s": _fitted(3e-6),
    "quantised_launch_s": _fitted(3e-6),
    "small_kernels_per_layer_s": _fitted(8e-6),
    "attention_per_layer_s": _fitted(12e-6),
    "all_reduce_alpha_graphs_s": Constant(2.5e-6, "fitted", _PROFILES + " (5 µs, of four devices on average: two rounds)"),
    "all_reduce_alpha_eager_s": Constant(10.5e-6, "fitted", _PROFILES + " (21 µs, likewise)"),
    "bus_share_of_link": _fitted(0.75),
    "per_expert_layer_s": Constant(0.0, "assumed", "in the fixed time of a layer until an engine states it"),
    "recurrent_layer_s": Constant(30e-6, "fitted", _PROFILES + " (a linear-attention layer)"),
    "expert_traffic": Constant(6.0, "fitted", _PROFILES + " (bytes per token, chosen expert and hidden element; vLLM's, the least)"),
    "alu_operations_per_weight": Constant(0.0, "assumed", "hidden behind the read until an engine states it"),
    "step_s": _fitted(0.5e-3),
    "per_sequence_s": _fitted(5e-6),
    "front_end_s": _fitted(15e-3),
    "sequence_layer_s": Constant(0.0, "assumed", "in the scheduler's time per sequence until an engine states it"),
    "serial_front_end_s": Constant(0.0, "assumed", "in the front-end time until an engine states it"),
    "admission_steps": Constant(0.5, "literature", "engine profiles section 2: a request comes, on average, in the middle of a step"),
    "admission_running_power": Constant(0.0, "assumed", "the wait is of so many steps at any load until an engine states how it grows"),
    "admission_devices_power": Constant(0.0, "assumed", "likewise on any number of devices"),
    "interference": Constant(1.0, "literature", "performance model section 4, closed form of continuous batching"),
    "textbook_compute_share": Constant(0.425, "assumed", "the founding text's own ratio of achieved to specified rate"),
    "textbook_bandwidth_share": Constant(1.0, "assumed", "the founding text reads memory at its specified rate"),
    "memory_kept_for_runtime": Constant(0.05, "literature", "engine profiles section 2: pools are cut from 0.95 of the memory"),
    "prefill_chunk_tokens": Constant(8192.0, "literature", "engine profiles section 2: the usual chunk budget"),
    "running_cap": Constant(1024.0, "literature", "the usual limit of a current server on a large device"),
    "kv_reservation": Constant(0.0, "literature", "engine profiles section 2: only engines that say so set the whole answer aside"),
    "unknown_engine_itl_factor": Constant(1.5, "fitted", "engine profiles section 6"),
    "unknown_engine_ttft_factor": Constant(2.0, "fitted", "engine profiles section 6"),
}


def default(key: str) -> float:
    """The value of one default constant."""
    return DEFAULTS[key].value
