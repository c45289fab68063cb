"""Gemma 4: sliding and full layers with heads of different sizes, keys as values, shared caches, an input for each layer, experts beside
the MLP. The layout is that of the modeling class of transformers 5.24.0.
"""

from app.domain.configs.mixture import experts_of
from app.domain.configs.reader import ConfigReader
from app.domain.configs.shape import Shape, head_norms, kv_heads_of, positions_of, qkv_biases
from app.domain.layers import FULL, Attention, Experts, LayerGroup, Mlp, Reach


def read_gemma4(reader: ConfigReader, notes: list[str]) -> Shape:
    """The text part of Gemma 4."""
    reader.only("use_bidirectional_attention", "vision")
    hidden, layers = reader.whole("hidden_size"), reader.whole("num_hidden_layers")
    side, intermediate = reader.count("hidden_size_per_layer_input", 256), reader.whole("intermediate_size")
    shared = reader.count("num_kv_shared_layers")
    if shared >= layers:
        raise reader.refuse("num_kv_shared_layers", f"is {shared} of {layers} layers; at least one must keep a cache of its own.")
    doubled, experts = reader.flag("use_double_wide_mlp", False), _experts(reader, hidden)
    norms = (4 + (1 if side else 0) + (3 if experts else 0)) * hidden
    biased = reader.flag("attention_bias", False)
    groups = []
    for place, full in enumerate(_full_layers(reader, layers)):
        reuses = place >= layers - shared
        attention = _attention(reader, full, own_cache=not reuses)
        groups.append(
            LayerGroup(
                1,
                attention,
                mlp=Mlp(intermediate * (2 if doubled and reuses else 1)),
                experts=experts,
                norm_parameters=norms + head_norms(attention),
                bias_parameters=qkv_biases(attention) + hidden if biased else 0,
                side_input=side,
            )
        )
    return Shape(
        hidden,
        reader.whole("vocab_size", 262_144),
        tuple(groups),
        reader.flag("tie_word_embeddings", True),
        hidden + side,
        positions_of(reader, 131_072),
        looked_up_parameters=reader.whole("vocab_size_per_layer_input", 262_144) * layers * side,
        side_projection=layers * side,
    )


def _full_layers(reader: ConfigReader, layers: int) -> list[bool]:
    """Which layers see all positions: those listed, every sixth where none are; the last one always."""
    kinds = reader.kinds("layer_types", layers, ("sliding_attention", "full_attention"))
    full = [(place + 1) % 6 == 0 for place in range(layers)] if kinds is None else [kind == "full_attention" for kind in kinds]
    return [*full[:-1], True]


def _attention(reader: ConfigReader, full: bool, own_cache: bool) -> Attention:
    """A full layer may have larger heads and fewer KV heads, and its keys may serve as values."""
    heads, same = reader.whole("num_attention_heads", 8), reader.flag("attention_k_eq_v", False)
    kv_heads = kv_heads_of(reader, heads, 4)
    global_heads = kv_heads_of(reader, heads, kv_heads, "num_global_key_value_heads")
    if not full:
        return Attention(
            heads, kv_heads, reader.whole("head_dim", 256), reach=Reach("window", reader.whole("sliding_window", 512)), own_cache=own_cache
        )
    size = reader.whole("global_head_dim", 512)
    return Attention(heads, global_heads if same else kv_heads, size, reach=FULL, keys_as_values=same, own_cache=own_cache)


def _experts(reader: ConfigReader, hidden: int) -> Experts | None:
    """The mixture beside the MLP, with a scale for the router's input and one for each expert; None where it is turned off."""
    if not reader.flag("enable_moe_block", False):
        reader.ignore("num_experts", "top_k_experts", "moe_intermediate_size", "expert_intermediate_size")
        return None
    count, width = reader.whole("num_experts"), reader.whole("moe_intermediate_size")
    return experts_of(reader, "num_experts", count, reader.whole("top_k_experts"), width, vectors=hidden + count)
