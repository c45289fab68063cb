"""Which models our own measuring builds: layers of full attention (multi-head, grouped or one KV head) and a gated MLP, as in Llama.

Anything else is refused by the field that says so; what is measured is always what was asked for.
"""

from dataclasses import dataclass

from app.domain.architecture import ModelArchitecture
from app.domain.errors import InvalidRequest
from app.domain.layers import LayerGroup

# Shares of the parameters that may be left out: norms of queries and keys, biases. They move next to nothing.
_NEGLIGIBLE = 0.002


@dataclass(frozen=True)
class LayerShape:
    """One layer: heads and KV heads of `head_dim`, and the width of the MLP."""

    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int

    @property
    def qkv(self) -> int:
        """Rows of the matrix that makes queries, keys and values."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim


@dataclass(frozen=True)
class ModelShape:
    """What is built: sizes that all layers share, and each layer. `left_out` parameters of the model are not (small vectors)."""

    hidden: int
    vocab: int
    tied: bool
    layers: tuple[LayerShape, ...]
    left_out: int = 0

    @property
    def parameters(self) -> int:
        """Elements of everything that is built."""
        layer = sum(self.hidden * (one.qkv + one.heads * one.head_dim + 3 * one.intermediate) + 2 * self.hidden for one in self.layers)
        return layer + (1 if self.tied else 2) * self.vocab * self.hidden + self.hidden

    def kv_elements(self, batch: int, positions: int) -> int:
        """Elements of the cache of `batch` sequences of `positions` tokens."""
        return batch * positions * sum(2 * one.kv_heads * one.head_dim for one in self.layers)


def shape_of(model: ModelArchitecture, positions: int) -> ModelShape:
    """The shape to build for sequences of `positions` tokens. Raises InvalidRequest for `model` that names the part which is not built."""
    for field in ("looked_up_parameters", "position_parameters", "side_projection"):
        if getattr(model, field):
            raise _refused(model, field, f"{getattr(model, field):,}")
    layers = tuple(
        layer for index, group in enumerate(model.groups) for layer in (_layer(model, group, f"groups[{index}]", positions),) * group.count
    )
    shape = ModelShape(model.hidden, model.vocab, model.tied_embeddings, layers)
    left_out = max(model.shape_parameters - shape.parameters, 0)
    if left_out > _NEGLIGIBLE * model.shape_parameters:
        raise _refused(model, "bias_parameters and norm_parameters", f"{left_out:,} parameters more than are built")
    return ModelShape(shape.hidden, shape.vocab, shape.tied, shape.layers, left_out)


def _layer(model: ModelArchitecture, group: LayerGroup, where: str, positions: int) -> LayerShape:
    for part in ("latent", "recurrent", "experts"):
        if getattr(group, part) is not None:
            raise _refused(model, f"{where}.{part}", "set")
    attention, mlp = group.attention, group.mlp
    if attention is None or mlp is None:
        raise _refused(model, f"{where}.{'attention' if attention is None else 'mlp'}", "absent")
    unlike = {
        "attention.value_dim": attention.values != attention.head_dim,
        "attention.gate": bool(attention.gate),
        "attention.keys_as_values": attention.keys_as_values,
        "attention.own_cache": not attention.own_cache,
        "mlp.gated": not mlp.gated,
        "side_input": bool(group.side_input),
    }
    for field, is_unlike in unlike.items():
        if is_unlike:
            raise _refused(model, f"{where}.{field}", "other than a Llama layer's")
    reach = attention.reach
    if reach.span is not None and reach.span < positions:
        raise _refused(model, f"{where}.attention.reach", f"a {reach.kind} of {reach.span:,}, shorter than the {positions:,} tokens")
    return LayerShape(attention.heads, attention.kv_heads, attention.head_dim, mlp.intermediate)


def _refused(model: ModelArchitecture, field: str, what: str) -> InvalidRequest:
    return InvalidRequest(
        "model", f"{model.name} is not built here: {field} is {what}. Built are layers of full attention and a gated MLP, as in Llama"
    )
