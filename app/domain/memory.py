"""What a request keeps in the memory of each device, whether it fits, and how many such sequences would.

Weights are spread over tensor-parallel ranks and pipeline stages (the largest stage counts; KV heads are copied when there are fewer
than ranks), the KV cache likewise; a sliding-window layer keeps at most its window. The pool for KV is 0.95 of the device's memory
less weights and activations; the safe number of sequences is that pool over one sequence at its full length, prompt + output.
"""

from dataclasses import dataclass

import numpy as np

from app.domain.architecture import ModelArchitecture
from app.domain.constants import default
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Memory
from app.domain.request_rules import Load
from app.domain.work import ElementBytes, Quantity

_LOGIT_BYTES = 4.0  # logits are kept in fp32


@dataclass(frozen=True)
class Footprint:
    """The figures of Memory as floats or arrays; `pool_sequences` is None where the device's memory is not known."""

    weight_bytes: Quantity
    kv_bytes_per_token: Quantity
    kv_bytes: Quantity
    activation_bytes: Quantity
    capacity_bytes: float | None
    pool_sequences: Quantity | None
    sequences: Quantity

    @property
    def fits(self) -> Quantity | None:
        """1.0 where weights, activations and the KV cache of all sequences fit, 0.0 where not; None where memory is not known."""
        return None if self.pool_sequences is None else np.where(self.pool_sequences >= self.sequences, 1.0, 0.0)

    def memory(self) -> Memory:
        """The same as plain numbers, for one request."""
        pool = self.pool_sequences
        return Memory(
            weight_bytes=float(self.weight_bytes),
            kv_bytes_per_token=float(self.kv_bytes_per_token),
            kv_bytes=float(self.kv_bytes),
            activation_bytes=float(self.activation_bytes),
            capacity_bytes=self.capacity_bytes,
            fits=None if pool is None else bool(pool >= self.sequences),
            max_batch=None if pool is None else int(pool),
        )


def footprint(architecture: ModelArchitecture, hardware: HardwareProfile, element: ElementBytes, load: Load) -> Footprint:
    """Bytes per device of a request (or a grid of them), with `load.concurrency` or else `load.batch` sequences held at once."""
    model, tp = architecture, load.tp
    stage = np.ceil(model.layers / load.pp) / model.layers
    kv_heads: Quantity = np.maximum(model.kv_heads / tp, 1.0)
    copied = 2.0 * model.layers * model.hidden * model.head_dim * (kv_heads - model.kv_heads / tp)
    weights = element.weight * stage * (model.parameters / tp + copied)
    per_layer_position = 2.0 * kv_heads * model.head_dim * element.kv
    length = load.prompt_tokens + load.output_tokens
    window = float("inf") if model.sliding_window is None else float(model.sliding_window)
    kept: Quantity = model.full_layers * length + model.windowed_layers * np.minimum(length, window)
    per_sequence = stage * per_layer_position * kept
    sequences = load.batch if load.concurrency is None else load.concurrency
    activations = _activation_bytes(model, element, load, sequences)
    capacity = hardware.memory_bytes
    pool: Quantity | None = None
    if capacity is not None:
        free: Quantity = np.maximum((1.0 - default("memory_kept_for_runtime")) * capacity - weights - activations, 0.0)
        pool = np.floor(free / per_sequence)
    return Footprint(
        weight_bytes=weights,
        kv_bytes_per_token=stage * model.layers * per_layer_position,
        kv_bytes=sequences * per_sequence,
        activation_bytes=activations,
        capacity_bytes=capacity,
        pool_sequences=pool,
        sequences=sequences,
    )


def _activation_bytes(model: ModelArchitecture, element: ElementBytes, load: Load, sequences: Quantity) -> Quantity:
    """The live activations of the largest pass: residual, its norm, QKV and MLP of one layer for at most one chunk of tokens; logits."""
    new = load.prompt_tokens - load.cached_prefix_tokens
    tokens: Quantity = np.minimum(np.maximum(load.batch * new, sequences), default("prefill_chunk_tokens"))
    query_and_kv = (model.query_size + 2 * model.kv_size) / load.tp
    widest = (model.mlp_matrices - 1) * model.intermediate / load.tp
    return element.activation * tokens * (2.0 * model.hidden + query_and_kv + widest) + _LOGIT_BYTES * sequences * model.vocab / load.tp
