"""The work of one forward pass: four numbers in, FLOPs and bytes per operator out.

A pass is a set of sequences, each with n new tokens after c tokens of context. Whatever the phase, it is

    T = Σ n                       tokens through every linear layer
    A = Σ n·c + n·(n+1)/2         causal attention pairs, each token's clipped to the window in a sliding layer
    R = Σ (c + n)                 cached positions read, clipped likewise
    S                             rows of logits wanted

Prefill is n = prompt, decode is n = 1; chunks, prefix hits and mixed steps are sums of such numbers. Per layer and tensor-parallel
rank (tp of them; w, a, k bytes per weight, activation and KV element):

    a linear [k -> n]     2·T·k·n FLOPs          w·k·n + a·T·(k + n) bytes
    attention             4·(h/tp)·D·A           2·max(kv/tp, 1)·D·k·R
    norms, rope, residual                        10·T·H·a, and their own vectors
    logits                2·S·V·H/tp             w·V·H/tp + a·S·(H + V/tp)

The input table is looked up, never read; a tied table is read once, at the logits. Every function takes floats or numpy arrays
that broadcast against each other. Source of the formulas: the design's performance model, sections 1 and 2.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.domain.architecture import ModelArchitecture

Quantity = float | npt.NDArray[np.float64]
Kind = Literal["linear", "attention", "elementwise"]

ELEMENTWISE_PASSES = 10.0  # activations of width hidden moved per token and layer by norms, rope, residuals and the activation function


@dataclass(frozen=True)
class PassNumbers:
    """T, A, R, S of a pass, with A and R also as a sliding-window layer sees them. Passes add up."""

    tokens: Quantity
    pairs: Quantity
    positions: Quantity
    rows: Quantity
    sequences: Quantity
    window_pairs: Quantity
    window_positions: Quantity

    def __add__(self, other: "PassNumbers") -> "PassNumbers":
        """The numbers of one pass that carries both sets of sequences."""
        return PassNumbers(
            self.tokens + other.tokens,
            self.pairs + other.pairs,
            self.positions + other.positions,
            self.rows + other.rows,
            self.sequences + other.sequences,
            self.window_pairs + other.window_pairs,
            self.window_positions + other.window_positions,
        )


def reach(positions: Quantity, window: int | None) -> Quantity:
    """Attention pairs of the first `positions` tokens of a sequence: Σ min(j, window) for j = 1..positions."""
    inside: Quantity = positions if window is None else np.minimum(positions, float(window))
    return inside * (inside + 1.0) / 2.0 + (positions - inside) * inside


def pass_numbers(
    new: Quantity, context: Quantity = 0.0, batch: Quantity = 1.0, window: int | None = None, rows: Quantity = 1.0
) -> PassNumbers:
    """The numbers of `batch` equal sequences with `new` tokens after `context`; `rows` of logits per sequence.

    In a windowed layer the new tokens together read the last new + window - 1 positions at most.
    """
    end = new + context
    pairs = new * context + new * (new + 1.0) / 2.0
    window_pairs: Quantity = pairs if window is None else reach(end, window) - reach(context, window)
    window_end: Quantity = end if window is None else np.minimum(end, new + (window - 1.0))
    return PassNumbers(
        tokens=batch * new,
        pairs=batch * pairs,
        positions=batch * end,
        rows=batch * rows,
        sequences=batch * 1.0,
        window_pairs=batch * window_pairs,
        window_positions=batch * window_end,
    )


def decode_steps(output: Quantity) -> Quantity:
    """Decode passes of a request: one less than its output tokens, since prefill makes the first; at least one is priced."""
    steps: Quantity = np.maximum(output - 1.0, 1.0)
    return steps


def mean_decode_numbers(prompt: Quantity, output: Quantity, batch: Quantity = 1.0, window: int | None = None) -> PassNumbers:
    """The mean over a request's decode steps, in closed form: step i = 1..output-1 reads prompt + i positions.

    Exact where a window clips part-way: the mean of min(prompt + i, window) is a difference of two sums. Since every operator's
    time is linear in these numbers within a phase, the cost at the mean is the mean of the costs.
    """
    steps = decode_steps(output)
    mean_positions = prompt + (steps + 1.0) / 2.0
    clipped: Quantity = mean_positions if window is None else (reach(prompt + steps, window) - reach(prompt, window)) / steps
    return PassNumbers(
        tokens=batch * 1.0,
        pairs=batch * mean_positions,
        positions=batch * mean_positions,
        rows=batch * 1.0,
        sequences=batch * 1.0,
        window_pairs=batch * clipped,
        window_positions=batch * clipped,
    )


@dataclass(frozen=True)
class ElementBytes:
    """Bytes per weight (scales counted), activation element, KV element, weight of an expert and element that crosses a link.

    The last two are the weight's and the activation's where None. Recurrent states are kept in fp32 whatever the rest is.
    """

    weight: float = 2.0
    activation: float = 2.0
    kv: float = 2.0
    experts: float | None = None
    messages: float | None = None
    state: float = 4.0

    @property
    def expert(self) -> float:
        """Bytes per weight of an expert."""
        return self.weight if self.experts is None else self.experts

    @property
    def message(self) -> float:
        """Bytes per element sent to another device."""
        return self.activation if self.messages is None else self.messages


@dataclass(frozen=True)
class OperatorWork:
    """One kind of operator, summed over its layers, on one tensor-parallel rank. `launches` counts its GEMMs in a pass."""

    name: str
    kind: Kind
    flops: Quantity
    weight_bytes: Quantity = 0.0
    activation_bytes: Quantity = 0.0
    kv_bytes: Quantity = 0.0
    launches: int = 0

    @property
    def bytes(self) -> Quantity:
        """Everything the operator moves to or from memory."""
        return self.weight_bytes + self.activation_bytes + self.kv_bytes


def operators(architecture: ModelArchitecture, numbers: PassNumbers, element: ElementBytes, tp: Quantity = 1.0) -> tuple[OperatorWork, ...]:
    """The work of every operator of a pass, per tensor-parallel rank, over all layers (all pipeline stages one after another)."""
    model = architecture
    hidden = float(model.hidden)
    query = model.query_size / tp
    kv_heads: Quantity = np.maximum(model.kv_heads / tp, 1.0)
    qkv = query + 2.0 * kv_heads * model.head_dim
    intermediate = model.intermediate / tp
    first = "gate_up" if model.gated_mlp else "up"
    found = [
        _linear("qkv", hidden, qkv, numbers.tokens, element, model.layers),
        _linear("attention_output", query, hidden, numbers.tokens, element, model.layers),
        _linear(first, hidden, (model.mlp_matrices - 1) * intermediate, numbers.tokens, element, model.layers),
        _linear("down", intermediate, hidden, numbers.tokens, element, model.layers),
        _linear("logits", hidden, model.vocab / tp, numbers.rows, element, 1),
    ]
    per_position = 2.0 * kv_heads * model.head_dim * element.kv
    if model.full_layers:
        found.append(_attention("attention", query, per_position, numbers.pairs, numbers.positions, model.full_layers))
    if model.windowed_layers:
        found.append(
            _attention("window_attention", query, per_position, numbers.window_pairs, numbers.window_positions, model.windowed_layers)
        )
    vectors = model.layers * (model.norm_parameters_per_layer + model.bias_parameters_per_layer) + model.final_norm_parameters
    moved = ELEMENTWISE_PASSES * model.layers * hidden * element.activation
    found.append(OperatorWork("norms_rope_residual", "elementwise", 0.0, vectors * element.weight, moved * numbers.tokens))
    return tuple(found)


def _linear(name: str, rows: Quantity, columns: Quantity, tokens: Quantity, element: ElementBytes, layers: int) -> OperatorWork:
    """A product [rows -> columns] of `tokens` rows of activations, in each of `layers` layers."""
    weights = layers * rows * columns
    return OperatorWork(
        name,
        "linear",
        flops=2.0 * weights * tokens,
        weight_bytes=element.weight * weights,
        activation_bytes=element.activation * layers * (rows + columns) * tokens,
        launches=layers,
    )


def _attention(name: str, query: Quantity, bytes_per_position: Quantity, pairs: Quantity, positions: Quantity, layers: int) -> OperatorWork:
    """Scores and weighted values: 4 FLOPs per pair and query element; the cache of every position read once."""
    return OperatorWork(name, "attention", flops=4.0 * layers * query * pairs, kv_bytes=layers * bytes_per_position * positions)


def all_reduce_bytes(architecture: ModelArchitecture, tokens: Quantity, element: ElementBytes, tp: Quantity) -> Quantity:
    """Bytes over one rank's link in one all-reduce of the activations: 2·(tp-1)/tp · T·H·a (ring), 0 for tp = 1."""
    return 2.0 * (tp - 1.0) / tp * architecture.hidden * element.activation * tokens
