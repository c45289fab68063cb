"""What a sweep needs of a model, whichever library computes it; and the names of its weights."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from app.domain.built_model import ModelShape

Tokens = np.typing.NDArray[np.int64]
Weights = Mapping[str, Any]
NORM_EPSILON = 1e-5
ROPE_BASE = 10_000.0
# Uniform between these: the spread of a usual start, so that activations stay of ordinary size.
WEIGHT_LIMIT = 0.035


class Model(Protocol):
    """A model with weights, ready to run batches. Each call has finished when it returns."""

    backend: str
    version: str

    def begin(self, batch: int, positions: int) -> None:
        """An empty cache for `batch` sequences of at most `positions` tokens."""

    def prefill(self, tokens: Tokens) -> None:
        """One pass over prompts of shape (batch, tokens); chooses the first token of each."""

    def step(self) -> None:
        """One decode step: each sequence's last token goes in, the next is chosen."""

    def logits(self) -> "np.typing.NDArray[np.float32]":
        """Of the last pass, shape (batch, vocab)."""

    def release(self) -> None:
        """Give the cache's memory back."""

    def peak_bytes(self) -> int | None:
        """The most memory that was in use, weights and cache inside."""


def weight_shapes(shape: ModelShape) -> dict[str, tuple[int, ...]]:
    """The weights by name, matrices as (out, in): "embed", "final_norm", "output" unless tied, and seven of each layer."""
    found: dict[str, tuple[int, ...]] = {"embed": (shape.vocab, shape.hidden), "final_norm": (shape.hidden,)}
    if not shape.tied:
        found["output"] = (shape.vocab, shape.hidden)
    for index, layer in enumerate(shape.layers):
        found |= {
            f"{index}.attention_norm": (shape.hidden,),
            f"{index}.qkv": (layer.qkv, shape.hidden),
            f"{index}.attention_out": (shape.hidden, layer.heads * layer.head_dim),
            f"{index}.mlp_norm": (shape.hidden,),
            f"{index}.gate_up": (2 * layer.intermediate, shape.hidden),
            f"{index}.down": (shape.hidden, layer.intermediate),
        }
    return found


def rope_angles(positions: int, head_dim: int) -> "np.typing.NDArray[np.float32]":
    """Angles of rotary embedding, shape (positions, head_dim / 2): position · base^(-2i/head_dim)."""
    frequencies = ROPE_BASE ** (-np.arange(0, head_dim, 2) / head_dim)
    return np.outer(np.arange(positions), frequencies).astype(np.float32)
