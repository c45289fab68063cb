"""What a request keeps in the memory of each device, whether it fits, and how many such sequences would.

Weights are spread over the devices and pipeline stages (the largest stage counts), the KV cache over tensor-parallel ranks; a
sliding-window layer keeps at most its window, a recurrent one a state of fixed size. The pool for KV is 0.95 of the device's memory
less weights and activations; the safe number of sequences is that pool over one sequence at its full length, prompt + output, times
the attention ranks that share the sequences.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from app.domain.architecture import ModelArchitecture, cache_elements, index_bytes
from app.domain.constants import default
from app.domain.hardware import HardwareProfile
from app.domain.layers import LayerGroup
from app.domain.prediction import Memory
from app.domain.request_rules import Load
from app.domain.work import ElementBytes, Quantity

_LOGIT_BYTES = 4.0  # logits are kept in fp32
_LEAST = 1e-3  # bytes of a sequence of a model that keeps nothing; keeps the division finite


@dataclass(frozen=True)
class Footprint:
    """The figures of Memory as floats or arrays; `pool_sequences` is None where the device's memory is not known.

    `served_sequences` is the number that the pool holds on average, at the prompt and the share of the answer that the engine's
    admission and growth take up; not rounded.
    """

    weight_bytes: Quantity
    kv_bytes_per_token: Quantity
    kv_bytes: Quantity
    activation_bytes: Quantity
    capacity_bytes: float | None
    pool_sequences: Quantity | None
    sequences: Quantity
    served_sequences: Quantity | None = None

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


def footprint(
    architecture: ModelArchitecture, hardware: HardwareProfile, element: ElementBytes, load: Load, reservation: float = 1.0
) -> Footprint:
    """Bytes per device of a request (or a grid of them), with `load.concurrency` or else `load.batch` sequences held at once.

    `reservation` is the share of the answer that the cache of a running sequence holds on average.
    """
    stage = np.ceil(architecture.layers / load.pp) / architecture.layers
    weights = stage * _weight_bytes(architecture, element, load)

    def sequence_bytes(length: Quantity) -> Quantity:
        return stage * cache_bytes(architecture, element, load.tp, length)

    per_sequence = sequence_bytes(load.prompt_tokens + load.output_tokens)
    sequences = load.batch if load.concurrency is None else load.concurrency
    held = np.ceil(sequences / load.dp)
    activations = _activation_bytes(architecture, element, load, held)
    capacity = hardware.capacity_bytes
    pool: Quantity | None = None
    served: Quantity | None = None
    if capacity is not None:
        free: Quantity = np.maximum((1.0 - default("memory_kept_for_runtime")) * capacity - weights - activations, 0.0)
        pool = load.dp * np.floor(free / np.maximum(per_sequence, _LEAST))
        served = load.dp * (free / np.maximum(sequence_bytes(load.prompt_tokens + reservation * load.output_tokens), _LEAST))
    return Footprint(
        weight_bytes=weights,
        kv_bytes_per_token=stage * _sum(group.count * _position_bytes(group, element, load.tp) for group in architecture.groups),
        kv_bytes=held * per_sequence,
        activation_bytes=activations,
        capacity_bytes=capacity,
        pool_sequences=pool,
        sequences=sequences,
        served_sequences=served,
    )


def cache_bytes(architecture: ModelArchitecture, element: ElementBytes, tp: Quantity, length: Quantity) -> Quantity:
    """Bytes that one of tp devices keeps of a sequence of so many positions, all layers together."""
    return _sum(_kept_bytes(group, element, tp, length) for group in architecture.groups)


def _weight_bytes(model: ModelArchitecture, element: ElementBytes, load: Load) -> Quantity:
    """Weights of one device if all stages were on it: attention and tables over tp, MLPs and experts over all devices of the stage.

    Down-projections of latent attention, indexers and routers stand on every device, and KV heads where ranks outnumber them.
    """
    hidden, devices = model.hidden, load.tp * load.dp
    routed = sum(group.count * group.routed_parameters(hidden) for group in model.groups)
    spread = sum(group.count * _feed_forward_parameters(group, hidden) for group in model.groups)
    everywhere = sum(group.count * _standing_parameters(group, hidden) for group in model.groups)
    copied = _sum(_copied_parameters(group, hidden, load.tp) for group in model.groups)
    others = (model.parameters - routed - spread - everywhere) / load.tp + spread / devices + everywhere + copied
    tables = (element.table - element.weight) * (1 if model.tied_embeddings else 2) * model.embedding_parameters / load.tp
    return element.weight * others + element.expert * routed / devices + tables


def _feed_forward_parameters(group: LayerGroup, hidden: int) -> int:
    """Dense MLP and shared expert of one layer."""
    shared = group.experts.matrices * hidden * group.experts.shared_intermediate if group.experts else 0
    return (group.mlp.parameters(hidden) if group.mlp else 0) + shared


def _standing_parameters(group: LayerGroup, hidden: int) -> int:
    """What every device of a stage holds whole of one layer."""
    router = hidden * group.experts.count if group.experts else 0
    part = group.latent
    return router + (hidden * (part.query_rank + part.cached) + part.index_parameters(hidden) if part else 0)


def _copied_parameters(group: LayerGroup, hidden: int, tp: Quantity) -> Quantity:
    """Key and value projections that are copied where ranks outnumber KV heads."""
    part = group.attention
    if part is None:
        return 0.0
    return group.count * hidden * part.projected_kv * (np.maximum(part.kv_heads / tp, 1.0) - part.kv_heads / tp)


def _position_bytes(group: LayerGroup, element: ElementBytes, tp: Quantity) -> Quantity:
    """Bytes that one layer keeps for each position on one rank: KV heads are shared, a latent vector stands on every rank."""
    part = group.attention
    if part is not None and part.own_cache:
        return np.maximum(part.kv_heads / tp, 1.0) * part.kv_width * element.kv
    return cache_elements(group) * element.kv + index_bytes(group)


def _kept_bytes(group: LayerGroup, element: ElementBytes, tp: Quantity, length: Quantity) -> Quantity:
    """Bytes that the layers of a group keep for a sequence: positions in reach, and the recurrent state."""
    reach = group.reach
    kept = length if reach is None or reach.span is None or reach.kind == "top" else np.minimum(length, float(reach.span))
    part = group.recurrent
    state = (part.state * element.state + part.convolution * element.activation) / tp if part else 0.0
    return group.count * (_position_bytes(group, element, tp) * kept + state)


def _activation_bytes(model: ModelArchitecture, element: ElementBytes, load: Load, sequences: Quantity) -> Quantity:
    """The live activations of the largest pass: residual, its norm, mixer and MLP of one layer for at most one chunk of tokens; logits."""
    new = load.prompt_tokens - load.cached_prefix_tokens
    tokens: Quantity = np.minimum(np.maximum(np.ceil(load.batch / load.dp) * new, sequences), default("prefill_chunk_tokens"))
    widths = [_mixer_width(group) / load.tp + _feed_forward_width(group) / (load.tp * load.dp) for group in model.groups]
    widest = widths[0]
    for width in widths[1:]:
        widest = np.maximum(widest, width)
    return element.activation * tokens * (2.0 * model.hidden + widest) + _LOGIT_BYTES * sequences * model.vocab / load.tp


def _mixer_width(group: LayerGroup) -> int:
    """Columns that the projections into a layer's attention or mixer make."""
    width = group.recurrent.in_columns if group.recurrent else 0
    if group.attention:
        width += group.attention.query_size + group.attention.gate + group.attention.kv_heads * group.attention.kv_width
    if group.latent:
        width += group.latent.query_size + group.latent.expanded
    return width


def _feed_forward_width(group: LayerGroup) -> int:
    """Columns that a token makes in a layer's MLP and chosen experts."""
    width = (group.mlp.matrices - 1) * group.mlp.intermediate if group.mlp else 0
    if group.experts:
        width += (group.experts.matrices - 1) * (group.experts.chosen * group.experts.intermediate + group.experts.shared_intermediate)
    return width


def _sum(values: Iterable[Quantity]) -> Quantity:
    total: Quantity = 0.0
    for value in values:
        total = total + value
    return total
