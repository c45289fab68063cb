"""The work of one forward pass: what it carries in, FLOPs and bytes per operator out.

Per layer and device (tp of them share an attention rank, dp such ranks share the sequences, G = tp·dp; ep of the G hold different
experts; w, a, k bytes per weight, activation and KV element; T_l and T_g tokens of one rank and of all):

    a linear [k -> n]     2·T·k·n FLOPs              w·k·n + a·T·(k + n) bytes
    attention             2·(h/tp)·(D + Dv)·A        max(kv/tp, 1)·(D + Dv)·k·R
    latent attention      2·(h/tp)·(2·d_c + d_r)·A absorbed, or 2·(h/tp)·(d_n + d_r + d_v)·A with keys and values made again for
                          the context, whichever is less; (d_c + d_r)·k·R bytes on every rank
    sparse attention      A and R clipped to the best positions, and an index of all of them
    recurrent state       FLOPs linear in T          the state read and written once a sequence, in fp32
    router                a linear [H -> E], 16 bit in weights and arithmetic, on every rank
    experts               2·3·H·I·T_g·k/G            E·q·3·H·I·w/G with q = 1 - (1 - k/E)^T_g of the experts touched
    norms, rope, residual                            10·T·H·a, and their own vectors
    logits                2·S·V·H/tp                 w·V·H/tp + a·S·(H + V/tp), w = 2 where checkpoints keep tables at 16 bit

Attention sees T_l, dense MLPs and experts T_g. Where ep ranks hold different experts the busiest decides: sqrt(2·ln(ep)·m) more than the
mean m of tokens, and likewise of distinct experts. Tables are looked up, never read; a tied table is read once, at the logits.
Every function takes floats or numpy arrays that broadcast against each other. Source: the design's performance model, sections 1
and 2, and its engine profiles, section 1.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from app.domain.architecture import ModelArchitecture
from app.domain.layers import FULL, Attention, Experts, Latent, LayerGroup, Recurrent
from app.domain.pass_numbers import PassNumbers, Quantity, Sequences, decode_steps, mean_decode_numbers, pass_numbers

__all__ = [
    "ElementBytes",
    "OperatorWork",
    "PassNumbers",
    "Placement",
    "Quantity",
    "Sequences",
    "decode_steps",
    "mean_decode_numbers",
    "operators",
    "pass_numbers",
]

Kind = Literal["linear", "expert", "attention", "index", "elementwise"]

ELEMENTWISE_PASSES = 10.0  # activations of width hidden moved per token and layer by norms, rope, residuals and the activation function
ROUTER_BYTES = 2.0  # a router stays at 16 bit whatever the experts are


@dataclass(frozen=True)
class ElementBytes:
    """Bytes per weight (scales counted), activation element, KV element, weight of an expert, element that crosses a link, and weight of
    the input table and the output matrix.

    The last three are the weight's, the activation's and the weight's where None. Recurrent states are kept in fp32 whatever the rest is.
    """

    weight: float = 2.0
    activation: float = 2.0
    kv: float = 2.0
    experts: float | None = None
    messages: float | None = None
    state: float = 4.0
    tables: float | None = None

    @property
    def expert(self) -> float:
        """Bytes per weight of an expert."""
        return self.weight if self.experts is None else self.experts

    @property
    def message(self) -> float:
        """Bytes per element sent to another device."""
        return self.activation if self.messages is None else self.messages

    @property
    def table(self) -> float:
        """Bytes per weight of the input table and the output matrix."""
        return self.weight if self.tables is None else self.tables


@dataclass(frozen=True)
class Placement:
    """How a pass is spread: tp devices share an attention rank, dp ranks share the sequences, pp stages follow one another.

    Of the tp·dp devices of a stage, ep hold different experts.
    """

    tp: Quantity = 1.0
    pp: Quantity = 1.0
    ep: Quantity = 1.0
    dp: Quantity = 1.0

    @property
    def devices(self) -> Quantity:
        """Devices of one pipeline stage."""
        return self.tp * self.dp


@dataclass(frozen=True)
class OperatorWork:
    """One kind of operator, summed over its layers, on one device. `launches` counts its GEMMs, `weights` the weights it reads.

    `wide`: a product that stays at 16 bit whatever the format of the other weights is.
    """

    name: str
    kind: Kind
    flops: Quantity
    weight_bytes: Quantity = 0.0
    activation_bytes: Quantity = 0.0
    kv_bytes: Quantity = 0.0
    launches: int = 0
    weights: Quantity = 0.0
    wide: bool = False

    @cached_property
    def bytes(self) -> Quantity:
        """Everything the operator moves to or from memory."""
        return self.weight_bytes + self.activation_bytes + self.kv_bytes


def operators(
    architecture: ModelArchitecture, numbers: PassNumbers, element: ElementBytes, placement: Placement | None = None
) -> tuple[OperatorWork, ...]:
    """The work of every operator of a pass on the busiest device of a stage, over all layers (all stages one after another)."""
    work = _Work(architecture.hidden, numbers, element, Placement() if placement is None else placement)
    for group in architecture.groups:
        work.layers(group)
    return work.collected(architecture)


class _Linear:
    """A linear operator being summed over layers: weights, widths of its rows in and out, and launches."""

    def __init__(self, tokens: Quantity, width: float, wide: bool) -> None:
        self.tokens = tokens
        self.width = width
        self.wide = wide
        self.weights: Quantity = 0.0
        self.rows: Quantity = 0.0
        self.launches = 0

    def work(self, name: str, element: ElementBytes) -> OperatorWork:
        return OperatorWork(
            name,
            "linear",
            flops=2.0 * self.weights * self.tokens,
            weight_bytes=self.width * self.weights,
            activation_bytes=element.activation * self.rows * self.tokens,
            launches=self.launches,
            weights=self.weights,
            wide=self.wide,
        )


class _Work:
    """The operators of a pass as they are met, group by group. `local` are the numbers of one attention rank, `tokens` those of all."""

    def __init__(self, hidden: int, numbers: PassNumbers, element: ElementBytes, placement: Placement) -> None:
        self.hidden = float(hidden)
        self.element = element
        self.place = placement
        self.local = numbers.of_one_rank(placement.dp)
        self.local_tokens = self.local.tokens
        self.tokens = numbers.tokens
        self.linears: dict[str, _Linear] = {}
        self.others: dict[str, OperatorWork] = {}

    def linear(self, name: str, rows: Quantity, columns: Quantity, layers: int, tokens: Quantity, width: float | None = None) -> None:
        """A product [rows -> columns] of so many rows of activations, in each of `layers` layers; `width` bytes a weight: kept wide."""
        kept = _Linear(tokens, self.element.weight if width is None else width, wide=width is not None)
        one = self.linears.setdefault(name, kept)
        one.weights = one.weights + layers * rows * columns
        one.rows = one.rows + layers * (rows + columns)
        one.launches += layers

    def other(self, found: OperatorWork) -> None:
        """An operator that is no plain product; one of the same name is added to."""
        known = self.others.get(found.name)
        if known is not None:
            found = OperatorWork(
                found.name,
                found.kind,
                known.flops + found.flops,
                known.weight_bytes + found.weight_bytes,
                known.activation_bytes + found.activation_bytes,
                known.kv_bytes + found.kv_bytes,
                known.launches + found.launches,
                known.weights + found.weights,
            )
        self.others[found.name] = found

    def layers(self, group: LayerGroup) -> None:
        """All parts of a group of equal layers."""
        if group.attention is not None:
            self.attention(group.count, group.attention)
        if group.latent is not None:
            self.latent(group.count, group.latent)
        if group.recurrent is not None:
            self.recurrent(group.count, group.recurrent)
        if group.mlp is not None:
            self.feed_forward(group.count, group.mlp.intermediate, group.mlp.gated, "")
        if group.experts is not None:
            self.experts(group.count, group.experts)
        if group.side_input:
            self.linear("side_inputs", self.hidden, 2.0 * group.side_input, group.count, self.local_tokens)

    def attention(self, count: int, part: Attention) -> None:
        tp, tokens = self.place.tp, self.local_tokens
        kv_heads: Quantity = np.maximum(part.kv_heads / tp, 1.0)
        self.linear("qkv", self.hidden, (part.query_size + part.gate) / tp + kv_heads * part.projected_kv, count, tokens)
        self.linear("attention_output", part.output_size / tp, self.hidden, count, tokens)
        name = {"full": "attention", "window": "window_attention", "chunk": "chunked_attention", "top": "sparse_attention"}[part.reach.kind]
        flops = 2.0 * count * (part.query_size + part.output_size) / tp * self.local.pairs_at(part.reach)
        read = count * kv_heads * part.kv_width * self.element.kv * self.local.positions_at(part.reach)
        self.other(OperatorWork(name, "attention", flops, kv_bytes=read))

    def latent(self, count: int, part: Latent) -> None:
        """Down-projections and the indexer stand on every rank of a tensor-parallel group, the heads are shared."""
        tp, tokens = self.place.tp, self.local_tokens
        heads = part.heads / tp
        self.linear("latent_down", self.hidden, float(part.query_rank + part.cached), count, tokens)
        self.linear("latent_query", float(part.query_rank or self.hidden), part.query_size / tp, count, tokens)
        self.linear("latent_up", float(part.kv_rank), part.expanded / tp, count, tokens)
        self.linear("attention_output", part.output_size / tp, self.hidden, count, tokens)
        flops = sum(self._latent_flops(part, heads, one) for one in self.local.parts)
        read = count * part.cached * self.element.kv * self.local.positions_at(part.reach)
        self.other(OperatorWork("latent_attention", "attention", count * flops, kv_bytes=read))
        if part.index_heads:
            self.linear("index_query", float(part.query_rank or self.hidden), float(part.index_heads * part.index_dim), count, tokens)
            self.linear("index_key", self.hidden, float(part.index_dim + part.index_heads), count, tokens)
            scores = 2.0 * count * part.index_heads * part.index_dim * self.local.pairs
            self.other(OperatorWork("index", "index", scores, kv_bytes=count * (part.index_dim + 4.0) * self.local.positions))

    @staticmethod
    def _latent_flops(part: Latent, heads: Quantity, one: Sequences) -> Quantity:
        """The lesser of both ways: queries brought to the latent space, or keys and values of the context made again."""
        pairs = one.pairs(part.reach)
        absorbed = 2.0 * heads * (2.0 * part.kv_rank + part.rope_dim) * pairs
        again = one.positions(FULL) - one.tokens
        widths = part.nope_dim + part.rope_dim + part.value_dim
        expanded = 2.0 * heads * widths * pairs + 2.0 * heads * part.kv_rank * (part.nope_dim + part.value_dim) * again
        least: Quantity = np.minimum(absorbed, expanded)
        return least

    def recurrent(self, count: int, part: Recurrent) -> None:
        tp, tokens = self.place.tp, self.local_tokens
        inner = part.inner / tp
        self.linear("recurrent_in", self.hidden, part.in_columns / tp, count, tokens)
        if part.selection:
            self.linear("recurrent_selection", inner, float(part.selection + part.step_rank), count, tokens)
        self.linear("recurrent_out", inner, self.hidden, count, tokens)
        kept = 2.0 * (part.state * self.element.state + part.convolution * self.element.activation) / tp
        flops = count * part.flops / tp * tokens
        self.other(OperatorWork("recurrent_state", "attention", flops, kv_bytes=count * kept * self.local.sequences))

    def feed_forward(self, count: int, intermediate: int, gated: bool, prefix: str) -> None:
        """A dense MLP, shared by all devices of the stage."""
        width = intermediate / self.place.devices
        first = f"{prefix}gate_up" if gated else f"{prefix}up"
        self.linear(first, self.hidden, (2.0 if gated else 1.0) * width, count, self.tokens)
        self.linear(f"{prefix}down", width, self.hidden, count, self.tokens)

    def experts(self, count: int, part: Experts) -> None:
        place, element = self.place, self.element
        self.linear("router", self.hidden, float(part.count), count, self.local_tokens, ROUTER_BYTES)
        if part.shared_intermediate:
            self.feed_forward(count, part.shared_intermediate, part.gated, "shared_")
        if part.width:
            self.linear("experts_narrow", self.hidden, 2.0 * part.width, count, self.local_tokens)
        tokens, touched = busiest_rank(part, self.tokens, place.ep)
        ranks = place.devices / place.ep  # devices that share one expert
        wide, inner = float(part.width or self.hidden), part.intermediate / ranks
        up = 2.0 if part.gated else 1.0
        for name, matrices in (("experts_gate_up" if part.gated else "experts_up", up), ("experts_down", 1.0)):
            one = matrices * wide * inner + (part.expert_vectors / ranks if name == "experts_down" else 0.0)
            self.other(
                OperatorWork(
                    name,
                    "expert",
                    flops=2.0 * count * matrices * wide * inner * tokens,
                    weight_bytes=count * element.expert * one * touched,
                    activation_bytes=count * element.activation * (wide + matrices * inner) * tokens,
                    launches=count,
                    weights=count * one * touched,
                )
            )

    def collected(self, model: ModelArchitecture) -> tuple[OperatorWork, ...]:
        """All operators, with what stands around the layers: side inputs, logits, norms."""
        element, tokens = self.element, self.local_tokens
        if model.side_projection:
            self.linear("side_inputs", self.hidden, float(model.side_projection), 1, tokens)
        self.linear("logits", self.hidden, model.vocab / self.place.tp, 1, self.local.rows, element.tables)
        vectors = model.final_norm_parameters + sum(group.count * _vectors(group) for group in model.groups)
        moved = ELEMENTWISE_PASSES * model.depth * self.hidden * element.activation * tokens
        norms = OperatorWork("norms_rope_residual", "elementwise", 0.0, vectors * element.weight, moved, weights=float(vectors))
        return (*(one.work(name, element) for name, one in self.linears.items()), *self.others.values(), norms)


def _vectors(group: LayerGroup) -> int:
    """Norms, biases and the other small vectors of one layer."""
    inside = (group.recurrent.vectors if group.recurrent else 0) + (group.experts.vectors if group.experts else 0)
    return group.norm_parameters + group.bias_parameters + inside


def busiest_rank(part: Experts, tokens: Quantity, ep: Quantity) -> tuple[Quantity, Quantity]:
    """Expert tokens and distinct experts of the busiest of ep ranks, for `tokens` tokens that each choose k of E experts evenly.

    The mean of a rank and sqrt(2·ln(ep)) standard deviations more, at most all the tokens and experts it can have.
    """
    missed = (1.0 - part.chosen / part.count) ** tokens
    held, spread = part.count / ep, 2.0 * np.log(ep)
    mean = tokens * part.chosen / ep
    most: Quantity = np.minimum(mean + np.sqrt(spread * mean), tokens * np.minimum(float(part.chosen), held))
    mean_touched = held * (1.0 - missed)
    touched: Quantity = np.minimum(mean_touched + np.sqrt(spread * mean_touched * missed), np.minimum(held, part.count * (1.0 - missed)))
    return most, touched


def routed_elements(architecture: ModelArchitecture, tokens: Quantity, ep: Quantity) -> Quantity:
    """Hidden elements that go to experts and back on one rank, T·k·H/ep summed over layers: what permuting and combining moves."""
    per_token = sum(
        group.count * group.experts.chosen * (group.experts.width or architecture.hidden) for group in architecture.groups if group.experts
    )
    return per_token * tokens / ep


def all_reduce_bytes(architecture: ModelArchitecture, tokens: Quantity, element: ElementBytes, devices: Quantity) -> Quantity:
    """Bytes over one device's link in one all-reduce of the activations: 2·(G-1)/G · T·H·a (ring), 0 for one device."""
    return 2.0 * (devices - 1.0) / devices * architecture.hidden * element.message * tokens


def all_to_all_bytes(architecture: ModelArchitecture, tokens: Quantity, chosen: int, element: ElementBytes, devices: Quantity) -> Quantity:
    """Bytes over one device's link to send its share of all `tokens` to their experts on G devices and back; one copy to each device."""
    copies = np.minimum(float(chosen), devices)
    return 2.0 * (devices - 1.0) / devices * architecture.hidden * element.message * copies * tokens / devices
