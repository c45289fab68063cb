"""The matrix products of a model's layers, as [rows, k] x [k, n]."""

from app.domain.architecture import ModelArchitecture
from app.domain.layers import LayerGroup


def layer_products(model: ModelArchitecture) -> tuple[tuple[str, int, int], ...]:
    """Name, n and k of each different product of the layers, queries, keys and values in one, gate and up in one."""
    found = [product for group in model.groups for product in _products(group, model.hidden)]
    return tuple(dict.fromkeys(found))


def _products(group: LayerGroup, hidden: int) -> list[tuple[str, int, int]]:
    found = []
    if (part := group.attention) is not None:
        found.append(("qkv", part.query_size + part.gate + part.kv_heads * part.projected_kv, hidden))
        found.append(("attention_out", hidden, part.output_size))
    if (mlp := group.mlp) is not None:
        found.append(("gate_up" if mlp.gated else "up", (mlp.matrices - 1) * mlp.intermediate, hidden))
        found.append(("down", hidden, mlp.intermediate))
    if (experts := group.experts) is not None:
        width = experts.width or hidden
        found.append(("expert_gate_up" if experts.gated else "expert_up", (experts.matrices - 1) * experts.intermediate, width))
        found.append(("expert_down", width, experts.intermediate))
    return found
