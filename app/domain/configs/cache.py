"""The layers that keep a KV cache, from a config that may say nothing else: pieces of a config.json, or one without a model_type.

A config whose model_type is priced is read by its class's rules. One without a model_type is read by its attention keys alone: layers,
heads or a latent rank, windows. The sizes of the language model win over those beside it, and a key that tells of layers of another
kind refuses the config.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.domain.configs import from_config
from app.domain.configs.foreign import refuse_foreign_keys
from app.domain.configs.reader import ConfigReader
from app.domain.configs.shape import head_dim_of
from app.domain.errors import UnsupportedModel
from app.domain.layers import FULL, Attention, Latent, LayerGroup, Reach

# Where configs of several senses keep the language model.
LANGUAGE_PARTS = ("text_config", "language_config", "llm_config")
_SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim")
_KINDS = ("full_attention", "sliding_attention")
# Words in keys that say nothing about the cache: what stands after the attention.
_NO_CACHE = ("expert", "moe", "router", "first_k_dense", "decoder_sparse_step", "mlp_only_layers", "nextn", "mtp")


@dataclass(frozen=True)
class CacheLayers:
    """Groups of equal layers with what mixes positions in them, and what a reader should know."""

    groups: tuple[LayerGroup, ...]
    notes: tuple[str, ...]


def cache_layers(config: Mapping[str, object]) -> CacheLayers:
    """The layers of a config that decide its cache. Raises UnsupportedModel, whose `.field` is the key, for what cannot be read."""
    if not isinstance(config, Mapping):
        raise UnsupportedModel("config", "config is not a JSON object; give the model's own config.json, or its attention keys.")
    if config.get("model_type") is not None:
        model = from_config(config)
        return CacheLayers(model.groups, model.notes)
    notes = ["No model_type: read by its attention keys alone."]
    reader = _language_part(ConfigReader(config), notes)
    layers = reader.whole("num_hidden_layers")
    groups = _latent(reader, layers) if reader.has("kv_lora_rank") else _grouped(reader, layers, notes)
    reader.ignore(*(key for key in reader.values if any(word in key.lower() for word in _NO_CACHE)))
    refuse_foreign_keys(reader)
    return CacheLayers(groups, tuple(notes))


def _language_part(top: ConfigReader, notes: list[str]) -> ConfigReader:
    """The object with the language model's sizes; what stands beside it is left out and said."""
    key = next((key for key in LANGUAGE_PARTS if top.has(key)), None)
    if key is None:
        return top
    beside = [name for name in (*_SIZES, "vision_config", "audio_config") if top.has(name)]
    if beside:
        notes.append(f"Read from {key}; {', '.join(beside)} beside it {'is' if len(beside) == 1 else 'are'} left out.")
    return top.inner(key)


def _latent(reader: ConfigReader, layers: int) -> tuple[LayerGroup, ...]:
    reader.ignore("num_key_value_heads", "head_dim", "qk_head_dim")
    part = Latent(
        heads=reader.whole("num_attention_heads"),
        query_rank=reader.count("q_lora_rank"),
        kv_rank=reader.whole("kv_lora_rank"),
        nope_dim=reader.whole("qk_nope_head_dim"),
        rope_dim=reader.whole("qk_rope_head_dim"),
        value_dim=reader.whole("v_head_dim"),
    )
    return (LayerGroup(layers, latent=part),)


def _grouped(reader: ConfigReader, layers: int, notes: list[str]) -> tuple[LayerGroup, ...]:
    stated = reader.whole("num_key_value_heads") if reader.has("num_key_value_heads") else None
    heads = reader.whole("num_attention_heads", stated)
    if stated is None:
        notes.append("num_key_value_heads is not in the config: every head has keys and values of its own.")
    size = reader.whole("head_dim") if reader.has("head_dim") else head_dim_of(reader, reader.whole("hidden_size"), heads, notes)
    windowed = _windowed(reader, layers)
    reach = Reach("window", reader.whole("sliding_window")) if windowed else FULL
    counts = ((layers - windowed, FULL), (windowed, reach))
    return tuple(LayerGroup(count, Attention(heads, stated or heads, size, reach=one)) for count, one in counts if count)


def _windowed(reader: ConfigReader, layers: int) -> int:
    """Layers with a window. One that is stated without the layers it is for has no one meaning, so it refuses the config."""
    kinds = reader.kinds("layer_types", layers, _KINDS)
    if not reader.has("sliding_window"):
        if kinds is not None and "sliding_attention" in kinds:
            raise reader.refuse("sliding_window", "is missing, but layer_types lists sliding layers; give the window.")
        return 0
    if kinds is not None:
        return kinds.count("sliding_attention")
    if reader.has("sliding_window_pattern"):
        return layers - layers // reader.whole("sliding_window_pattern")
    if reader.values.get("use_sliding_window") is False:
        return 0
    raise reader.refuse("sliding_window", "is given without layer_types or sliding_window_pattern, so its layers are not known.")
