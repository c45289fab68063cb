"""A dense transformer's shapes, read from a Hugging Face `config.json` treated as plain data.

Counts are exact: every weight matrix, bias and norm vector the model class builds, tied tables once. Per layer

    q: H·hD    k, v: 2·H·kD    o: hD·H    MLP: 3·H·I gated, 2·H·I plain    + biases + norms

with H hidden, h heads, k KV heads, D head_dim, I intermediate; around the layers an input table V·H, an output matrix V·H
unless it is the same table, and a final norm. The layouts per model_type stand in `config_families`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.domain.config_families import (
    BIAS_SWITCHES,
    FAMILIES,
    FOREIGN_CLASS_PARTS,
    FOREIGN_KEY_PARTS,
    NESTED,
    READ_SWITCHES,
    Family,
)
from app.domain.config_reader import ConfigReader, shown
from app.domain.errors import UnsupportedModel

NATIVE_DTYPES: Mapping[str, str] = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float16": "fp16",
    "fp16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "fp32": "fp32",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}
ATTENTION_LAYERS = ("full_attention", "sliding_attention")


@dataclass(frozen=True)
class ModelArchitecture:
    """The shapes that decide what a pass costs. Counts are per model unless the name says otherwise.

    `windowed_layers` of `layers` attend to at most `sliding_window` positions (0 and None when every layer is full).
    `norm_parameters_per_layer` and `bias_parameters_per_layer` are small but counted, so that totals are exact.
    `declared_parameters` overrides the count derived from shapes where a text states a round figure (textbook-8b).
    """

    name: str
    model_type: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    gated_mlp: bool = True
    tied_embeddings: bool = False
    sliding_window: int | None = None
    windowed_layers: int = 0
    norm_parameters_per_layer: int = 0
    bias_parameters_per_layer: int = 0
    final_norm_parameters: int = 0
    max_positions: int | None = None
    native_dtype: str = "bf16"
    declared_parameters: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def full_layers(self) -> int:
        """Layers whose attention sees every position."""
        return self.layers - self.windowed_layers

    @property
    def query_size(self) -> int:
        """Width of the query projection, heads x head_dim (not always hidden)."""
        return self.heads * self.head_dim

    @property
    def kv_size(self) -> int:
        """Width of the key projection, KV heads x head_dim; the value projection is as wide."""
        return self.kv_heads * self.head_dim

    @property
    def mlp_matrices(self) -> int:
        """Matrices of hidden x intermediate in a layer: gate, up and down, or up and down."""
        return 3 if self.gated_mlp else 2

    @property
    def layer_parameters(self) -> int:
        """All parameters of one layer, norms and biases included."""
        attention = self.hidden * (2 * self.query_size + 2 * self.kv_size)
        mlp = self.mlp_matrices * self.hidden * self.intermediate
        return attention + mlp + self.norm_parameters_per_layer + self.bias_parameters_per_layer

    @property
    def embedding_parameters(self) -> int:
        """The input table, vocab x hidden; the output matrix is the same table when tied, another of this size when not."""
        return self.vocab * self.hidden

    @property
    def shape_parameters(self) -> int:
        """The exact count that follows from the shapes, tied tables once, whatever `declared_parameters` says."""
        tables = 1 if self.tied_embeddings else 2
        return self.layers * self.layer_parameters + tables * self.embedding_parameters + self.final_norm_parameters

    @property
    def parameters(self) -> int:
        """Total parameters of the text model: the declared figure where there is one, else the exact count."""
        return self.shape_parameters if self.declared_parameters is None else self.declared_parameters

    @property
    def decode_weight_parameters(self) -> int:
        """Parameters one pass reads: all but an untied input table, which is looked up. A declared figure is taken as it stands."""
        if self.declared_parameters is not None:
            return self.declared_parameters
        return self.shape_parameters - (0 if self.tied_embeddings else self.embedding_parameters)

    def kv_bytes_per_token(self, kv_bytes: float = 2.0) -> float:
        """Bytes of KV cache one more position takes over all layers, at `kv_bytes` per element, no window reached."""
        return 2 * self.layers * self.kv_size * kv_bytes

    def kv_cache_bytes(self, positions: float, kv_bytes: float = 2.0) -> float:
        """Bytes of KV cache of one sequence of `positions`; a windowed layer keeps at most its window."""
        kept = positions if self.sliding_window is None else min(positions, self.sliding_window)
        return 2 * self.kv_size * kv_bytes * (self.full_layers * positions + self.windowed_layers * kept)


def from_config(config: Mapping[str, object], name: str = "") -> ModelArchitecture:
    """The architecture of a dense model from its parsed `config.json`.

    Raises UnsupportedModel, whose `.field` is the config key, for a model_type or key without a price and for values that are
    missing, not whole numbers, absurd or inconsistent.
    """
    if not isinstance(config, Mapping):
        raise UnsupportedModel("config.json", "config.json is not a JSON object; give the model's own config.json.")
    reader, model_type, tied = _text_part(config)
    family = FAMILIES[model_type]
    top = ConfigReader(config)
    _refuse_foreign_keys(top)
    _refuse_foreign_keys(reader)
    _refuse_unread_switches(reader, family)
    _refuse_foreign_class(top)
    notes: list[str] = []
    shapes = _Shapes.read(reader, family, sparse=bool(reader.prefix), notes=notes)
    window, windowed = _windows(reader, family, shapes.layers, notes)
    return ModelArchitecture(
        name=name or model_type,
        model_type=str(config["model_type"]),
        layers=shapes.layers,
        hidden=shapes.hidden,
        heads=shapes.heads,
        kv_heads=shapes.kv_heads,
        head_dim=shapes.head_dim,
        intermediate=shapes.intermediate,
        vocab=shapes.vocab,
        gated_mlp=family.gated,
        tied_embeddings=family.tied if tied is None else tied,
        sliding_window=window,
        windowed_layers=windowed,
        norm_parameters_per_layer=_norm_parameters(reader, family, shapes),
        bias_parameters_per_layer=_bias_parameters(reader, family, shapes),
        final_norm_parameters=shapes.hidden * (2 if family.norm_bias else 1),
        max_positions=reader.whole("max_position_embeddings", family.max_positions or 0) or None,
        native_dtype=_native_dtype(top, reader, notes),
        notes=(*notes, *_other_notes(top, reader)),
    )


@dataclass(frozen=True)
class _Shapes:
    """The sizes that every formula below needs, checked against each other."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int

    @classmethod
    def read(cls, reader: ConfigReader, family: Family, sparse: bool, notes: list[str]) -> "_Shapes":
        """Sizes from the config; a nested text_config is saved as a difference from class defaults, so its gaps are filled."""
        hidden = reader.whole("hidden_size")
        heads = reader.whole("num_attention_heads", family.heads if sparse else None)
        kv_heads = reader.whole("num_key_value_heads", family.kv_heads or heads)
        vocab = reader.whole("vocab_size", family.vocab if sparse else None)
        for key, value in (("num_attention_heads", heads), ("num_key_value_heads", kv_heads), ("vocab_size", vocab)):
            if not reader.has(key):
                notes.append(f"{reader.path(key)} is not in the config: {value}, as the model class takes it.")
        if kv_heads > heads or heads % kv_heads:
            raise reader.refuse("num_key_value_heads", f"is {kv_heads}, which does not divide num_attention_heads ({heads}).")
        return cls(
            layers=reader.whole("num_hidden_layers"),
            hidden=hidden,
            heads=heads,
            kv_heads=kv_heads,
            head_dim=_head_dim(reader, family, hidden, heads, notes),
            intermediate=reader.whole("intermediate_size"),
            vocab=vocab,
        )


def _text_part(config: Mapping[str, object]) -> tuple[ConfigReader, str, bool | None]:
    """The object that describes the language model, its model_type, and tie_word_embeddings where the file states it."""
    top = ConfigReader(config)
    model_type = top.text("model_type")
    if model_type is None:
        raise top.refuse("model_type", "is missing, so the kind of model is not known; give the model's own config.json.")
    if model_type not in FAMILIES and model_type not in NESTED:
        known = ", ".join(sorted((*FAMILIES, *NESTED)))
        raise top.refuse("model_type", f"is {shown(model_type)}, which is not priced yet; priced are {known}.")
    if model_type not in NESTED:
        if top.has("text_config"):
            raise top.refuse("text_config", f"is nested in a config of model_type {model_type}; give the config of the text model.")
        return top, model_type, top.flag("tie_word_embeddings", FAMILIES[model_type].tied)
    inner = config.get("text_config")
    if not isinstance(inner, Mapping):
        raise top.refuse("text_config", "is missing or no object; the language model's sizes are expected there.")
    reader = ConfigReader(inner, "text_config.")
    expected = NESTED[model_type]
    stated = reader.text("model_type")
    if stated not in (None, expected):
        raise reader.refuse("model_type", f"is {shown(stated)} inside a {model_type} config, where {expected} is expected.")
    tied = FAMILIES[expected].tied
    return reader, expected, top.flag("tie_word_embeddings", reader.flag("tie_word_embeddings", tied))


def _refuse_foreign_keys(reader: ConfigReader) -> None:
    """Refuse a config with a key (set to anything but null, false, 0 or empty) that says its layers are not a dense transformer's."""
    for key, value in reader.values.items():
        if not value or not isinstance(key, str):
            continue
        for part, meaning in FOREIGN_KEY_PARTS.items():
            if part in key.lower():
                raise reader.refuse(key, f"is {shown(value)}: {meaning}, which is not priced yet.")


def _refuse_unread_switches(reader: ConfigReader, family: Family) -> None:
    """Refuse switches that the family's class would ignore although they change the layers."""
    for switch in BIAS_SWITCHES:
        if switch not in READ_SWITCHES[family.bias] and reader.flag(switch, False):
            raise reader.refuse(switch, "is true, which this model_type's class does not build; it is not priced.")
    if not family.gated and reader.text("mlp_type") not in (None, "default"):
        raise reader.refuse("mlp_type", f"is {shown(reader.values['mlp_type'])}; only the plain MLP of this model_type is priced.")
    if family.norm_bias and reader.text("norm_type") not in (None, "layer_norm"):
        raise reader.refuse("norm_type", f"is {shown(reader.values['norm_type'])}; only layer_norm is priced for this model_type.")


def _refuse_foreign_class(reader: ConfigReader) -> None:
    names = reader.values.get("architectures")
    for name in names if isinstance(names, list | tuple) else ():
        if isinstance(name, str) and any(part in name.lower() for part in FOREIGN_CLASS_PARTS):
            raise reader.refuse("architectures", f"names {shown(name)}, which is not a dense transformer of this model_type.")


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
    kinds = _layer_types(reader, layers)
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


def _layer_types(reader: ConfigReader, layers: int) -> list[str] | None:
    """The per-layer list where the config has one: full and sliding attention only, one entry a layer."""
    value = reader.values.get("layer_types")
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise reader.refuse("layer_types", f"is {shown(value)}, not a list.")
    kinds: list[str] = []
    for kind in value:
        if kind not in ATTENTION_LAYERS:
            raise reader.refuse("layer_types", f"lists {shown(kind)}; only full_attention and sliding_attention layers are priced.")
        kinds.append(str(kind))
    if len(kinds) != layers:
        raise reader.refuse("layer_types", f"has {len(kinds)} entries for {layers} layers; check the config.json.")
    return kinds


def _norm_parameters(reader: ConfigReader, family: Family, shapes: _Shapes) -> int:
    """Norm vectors of one layer: those of width hidden, and the query and key norms where the class has them."""
    count = family.block_norms
    if family.norm_bias and reader.flag("use_parallel_residual", False):
        count -= 1
    block = count * shapes.hidden * (2 if family.norm_bias else 1)
    return block + _qk_norm_parameters(reader, family, shapes)


def _qk_norm_parameters(reader: ConfigReader, family: Family, shapes: _Shapes) -> int:
    if family.qk_norm == "per_head_dim":
        return 2 * shapes.head_dim
    whole = (shapes.heads + shapes.kv_heads) * shapes.head_dim
    if family.qk_norm == "whole":
        return whole
    if family.qk_norm == "never":
        return 0
    return whole if reader.flag(family.qk_norm, False) else 0


def _bias_parameters(reader: ConfigReader, family: Family, shapes: _Shapes) -> int:
    """Bias vectors of one layer, by the family's rule."""
    qkv = (shapes.heads + 2 * shapes.kv_heads) * shapes.head_dim
    if family.bias == "qkv":
        return qkv
    if family.bias == "use_qkv_bias":
        return qkv if reader.flag("use_qkv_bias", False) else 0
    if family.bias == "use_bias":
        return qkv + shapes.hidden + shapes.intermediate + shapes.hidden if reader.flag("use_bias", True) else 0
    attention = qkv + shapes.hidden if family.bias != "never" and reader.flag("attention_bias", False) else 0
    mlp = 2 * shapes.intermediate + shapes.hidden if family.bias == "attention_and_mlp_bias" and reader.flag("mlp_bias", False) else 0
    return attention + mlp


def _native_dtype(top: ConfigReader, reader: ConfigReader, notes: list[str]) -> str:
    """The number format the weights were saved in; bf16 where the config does not say or names an unknown one."""
    for source in (reader, top):
        for key in ("dtype", "torch_dtype"):
            stated = source.text(key)
            if stated is None:
                continue
            known = NATIVE_DTYPES.get(stated.removeprefix("torch.").lower())
            if known is None:
                notes.append(f"{source.path(key)} is {shown(stated)}, an unknown format: bf16 is taken.")
            return known or "bf16"
    return "bf16"


def _other_notes(top: ConfigReader, reader: ConfigReader) -> list[str]:
    """What a reader of the result should know: another part left out, a quantised checkpoint."""
    notes = []
    if reader.prefix:
        notes.append("Text part only: the vision tower of the config is left out.")
    for source in (top, reader):
        quantised = source.values.get("quantization_config")
        if isinstance(quantised, Mapping) and quantised:
            method = shown(quantised.get("quant_method", "unnamed"))
            notes.append(f"The checkpoint is quantised ({method}); its weights are priced at the weight format of the request.")
            break
    return notes
