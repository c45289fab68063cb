"""Dense transformers whose classes differ in few ways: one table of families (`dense_families`), one reader."""

from dataclasses import dataclass

from app.domain.configs.dense_families import BIAS_SWITCHES, FAMILIES, READ_SWITCHES, Family
from app.domain.configs.reader import ConfigReader, shown
from app.domain.configs.shape import Shape, kv_heads_of
from app.domain.layers import FULL, Attention, LayerGroup, Mlp, Reach

ATTENTION_LAYERS = ("full_attention", "sliding_attention")


@dataclass(frozen=True)
class _Sizes:
    """The sizes that every count below needs, checked against each other."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int


def read_dense(reader: ConfigReader, model_type: str, notes: list[str]) -> Shape:
    """The shapes of a model of one of FAMILIES; a nested text_config is a difference from class defaults, so its gaps are filled."""
    family = FAMILIES[model_type]
    _refuse_unread_switches(reader, family)
    sizes = _sizes(reader, family, bool(reader.prefix), notes)
    window, windowed = _windows(reader, family, sizes.layers, notes)
    norms, biases = _norm_parameters(reader, family, sizes), _bias_parameters(reader, family, sizes)

    def group(count: int, reach: Reach) -> LayerGroup:
        attention = Attention(sizes.heads, sizes.kv_heads, sizes.head_dim, reach=reach)
        mlp = Mlp(sizes.intermediate, family.gated)
        return LayerGroup(count, attention, mlp=mlp, norm_parameters=norms, bias_parameters=biases)

    full = (group(sizes.layers - windowed, FULL),) if sizes.layers > windowed else ()
    sliding = (group(windowed, Reach("window", window)),) if windowed else ()
    return Shape(
        hidden=sizes.hidden,
        vocab=sizes.vocab,
        groups=full + sliding,
        tied=reader.flag("tie_word_embeddings", family.tied),
        final_norm_parameters=sizes.hidden * (2 if family.norm_bias else 1),
        max_positions=reader.whole("max_position_embeddings", family.max_positions or 0) or None,
    )


def _sizes(reader: ConfigReader, family: Family, sparse: bool, notes: list[str]) -> _Sizes:
    hidden = reader.whole("hidden_size")
    heads = reader.whole("num_attention_heads", family.heads if sparse else None)
    kv_heads = kv_heads_of(reader, heads, family.kv_heads)
    vocab = reader.whole("vocab_size", family.vocab if sparse else None)
    for key, value in (("num_attention_heads", heads), ("num_key_value_heads", kv_heads), ("vocab_size", vocab)):
        if not reader.has(key):
            notes.append(f"{reader.path(key)} is not in the config: {value}, as the model class takes it.")
    return _Sizes(
        layers=reader.whole("num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=_head_dim(reader, family, hidden, heads, notes),
        intermediate=reader.whole("intermediate_size"),
        vocab=vocab,
    )


def _refuse_unread_switches(reader: ConfigReader, family: Family) -> None:
    """Refuse switches that the family's class would ignore although they change the layers."""
    for switch in BIAS_SWITCHES:
        if switch not in READ_SWITCHES[family.bias] and reader.flag(switch, False):
            raise reader.refuse(switch, "is true, which this model_type's class does not build; it is not priced.")
    if not family.gated and reader.text("mlp_type") not in (None, "default"):
        raise reader.refuse("mlp_type", f"is {shown(reader.values['mlp_type'])}; only the plain MLP of this model_type is priced.")
    if family.norm_bias and reader.text("norm_type") not in (None, "layer_norm"):
        raise reader.refuse("norm_type", f"is {shown(reader.values['norm_type'])}; only layer_norm is priced for this model_type.")


def _head_dim(reader: ConfigReader, family: Family, hidden: int, heads: int, notes: list[str]) -> int:
    """An explicit head_dim wins; else the class default; else hidden / heads, which must be whole."""
    if family.free_head_dim and reader.has("head_dim"):
        return reader.whole("head_dim")
    if family.head_dim is not None:
        notes.append(f"{reader.path('head_dim')} is not in the config: {family.head_dim}, as the model class takes it.")
        return family.head_dim
    if hidden % heads:
        raise reader.refuse("hidden_size", f"({hidden}) is not a multiple of num_attention_heads ({heads}) and head_dim is not given.")
    derived = hidden // heads
    if reader.has("head_dim") and reader.whole("head_dim") != derived:
        raise reader.refuse(
            "head_dim", f"is {reader.whole('head_dim')}, but this model_type's class takes hidden_size / heads = {derived}."
        )
    return derived


def _windows(reader: ConfigReader, family: Family, layers: int, notes: list[str]) -> tuple[int | None, int]:
    """The sliding window in positions and the number of layers it applies to (None and 0: every layer is full)."""
    window = _window(reader, family, notes)
    windowed = 0 if window is None else _windowed_layers(reader, family, layers)
    kinds = reader.kinds("layer_types", layers, ATTENTION_LAYERS)
    if kinds is not None:
        listed = kinds.count("sliding_attention")
        if listed and window is None:
            raise reader.refuse("layer_types", "lists sliding_attention layers, but the config gives no window for them.")
        if family.windows in ("none", "every") and listed != windowed:
            raise reader.refuse("layer_types", f"lists {listed} sliding layers, but this model_type's class builds {windowed}.")
        windowed = listed
    return (window, windowed) if windowed else (None, 0)


def _window(reader: ConfigReader, family: Family, notes: list[str]) -> int | None:
    """The window the class uses, None for full attention: an explicit null turns it off, an absent key means the class default."""
    if family.windows == "above" and not reader.flag("use_sliding_window", False):
        return None
    if "sliding_window" in reader.values:
        window = None if reader.values["sliding_window"] is None else reader.whole("sliding_window")
    else:
        window = family.window
        if window is not None:
            notes.append(f"{reader.path('sliding_window')} is not in the config: {window} positions, as the model class takes it.")
    if family.windows == "none" and window is not None:
        if window < reader.whole("max_position_embeddings", 1):
            raise reader.refuse("sliding_window", f"is {window}, but this model_type's class has no windows; name the right model_type.")
        return None
    return window


def _windowed_layers(reader: ConfigReader, family: Family, layers: int) -> int:
    if family.windows == "every":
        return layers
    if family.windows == "alternate":
        return (layers + 1) // 2
    if family.windows == "pattern":
        return layers - layers // reader.whole("sliding_window_pattern", 6)
    # "above": layers from max_window_layers on; the key may be 0, which means every layer.
    first = 0 if reader.values.get("max_window_layers") == 0 else reader.whole("max_window_layers", 28)
    return max(layers - first, 0)


def _norm_parameters(reader: ConfigReader, family: Family, sizes: _Sizes) -> int:
    """Norm vectors of one layer: those of width hidden, and the query and key norms where the class has them."""
    count = family.block_norms
    if family.norm_bias and reader.flag("use_parallel_residual", False):
        count -= 1
    block = count * sizes.hidden * (2 if family.norm_bias else 1)
    return block + _qk_norm_parameters(reader, family, sizes)


def _qk_norm_parameters(reader: ConfigReader, family: Family, sizes: _Sizes) -> int:
    if family.qk_norm == "per_head_dim":
        return 2 * sizes.head_dim
    whole = (sizes.heads + sizes.kv_heads) * sizes.head_dim
    if family.qk_norm == "whole":
        return whole
    if family.qk_norm == "never":
        return 0
    return whole if reader.flag(family.qk_norm, False) else 0


def _bias_parameters(reader: ConfigReader, family: Family, sizes: _Sizes) -> int:
    """Bias vectors of one layer, by the family's rule."""
    qkv = (sizes.heads + 2 * sizes.kv_heads) * sizes.head_dim
    if family.bias == "qkv":
        return qkv
    if family.bias == "qkv_by_attention_bias":
        return qkv if reader.flag("attention_bias", True) else 0
    if family.bias == "use_qkv_bias":
        return qkv if reader.flag("use_qkv_bias", False) else 0
    if family.bias == "use_bias":
        return qkv + sizes.hidden + sizes.intermediate + sizes.hidden if reader.flag("use_bias", True) else 0
    attention = qkv + sizes.hidden if family.bias != "never" and reader.flag("attention_bias", False) else 0
    mlp = 2 * sizes.intermediate + sizes.hidden if family.bias == "attention_and_mlp_bias" and reader.flag("mlp_bias", False) else 0
    return attention + mlp
