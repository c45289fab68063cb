"""What a reader of one family of configs gives back, and the small counts that several families share."""

from dataclasses import dataclass

from app.domain.configs.reader import ConfigReader
from app.domain.layers import Attention, LayerGroup


@dataclass(frozen=True)
class Shape:
    """The shapes read from a config; fields as in ModelArchitecture. `groups` may still hold single layers."""

    hidden: int
    vocab: int
    groups: tuple[LayerGroup, ...]
    tied: bool
    final_norm_parameters: int
    max_positions: int | None
    looked_up_parameters: int = 0
    position_parameters: int = 0
    side_projection: int = 0
    extra_prediction_layers: int = 0
    experts_alone_quantised: bool = False


def positions_of(reader: ConfigReader, default: int | None = None) -> int | None:
    """The most positions the config declares; None where it and the class say nothing."""
    return reader.whole("max_position_embeddings", default or 0) or None


def head_dim_of(reader: ConfigReader, hidden: int, heads: int, notes: list[str], default: int | None = None) -> int:
    """An explicit head_dim wins; else the class default; else hidden / heads, which must be whole."""
    if reader.has("head_dim"):
        return reader.whole("head_dim")
    if default is not None:
        notes.append(f"{reader.path('head_dim')} is not in the config: {default}, as the model class takes it.")
        return default
    if hidden % heads:
        raise reader.refuse("hidden_size", f"({hidden}) is not a multiple of num_attention_heads ({heads}) and head_dim is not given.")
    return hidden // heads


def kv_heads_of(reader: ConfigReader, heads: int, default: int | None = None, key: str = "num_key_value_heads") -> int:
    """KV heads, which must divide the heads; absent: `default`, or as many as heads."""
    kv_heads = reader.whole(key, default or heads)
    if kv_heads > heads or heads % kv_heads:
        raise reader.refuse(key, f"is {kv_heads}, which does not divide num_attention_heads ({heads}).")
    return kv_heads


def head_norms(attention: Attention) -> int:
    """Norms of one head's size on queries and keys; a layer without keys of its own has only the first."""
    return (2 if attention.own_cache else 1) * attention.head_dim


def qkv_biases(attention: Attention) -> int:
    """Bias vectors of the query (gate included), key and value projections."""
    return attention.query_size + attention.gate + attention.kv_heads * attention.projected_kv
