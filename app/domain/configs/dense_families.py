"""The dense families that are priced: what each Hugging Face model class builds from its config, and what it takes where a key is absent.

Defaults and layouts are those of the configuration and modeling classes of transformers 5.24.0. A key that would change
the layers in a way no row here describes is refused by name: a wrong price is worse than none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Windows = Literal["none", "every", "alternate", "pattern", "above"]
Bias = Literal["never", "qkv", "qkv_by_attention_bias", "attention_bias", "attention_and_mlp_bias", "use_bias", "use_qkv_bias"]
QkNorm = Literal["never", "per_head_dim", "whole", "use_qk_norm", "qk_layernorm"]


@dataclass(frozen=True)
class Family:
    """One model_type: its layer layout and its class defaults.

    `block_norms` counts the norms of width hidden_size in a layer; `norm_bias` says whether a norm has a bias vector.
    `kv_heads` None: as many as heads. `head_dim` None: hidden_size / heads. `free_head_dim` False: the class ignores the key.
    `windows`: which layers slide (every layer; alternate from the first; all but each `pattern`-th; layers from max_window_layers on).
    """

    tied: bool = False
    gated: bool = True
    block_norms: int = 2
    norm_bias: bool = False
    bias: Bias = "never"
    qk_norm: QkNorm = "never"
    windows: Windows = "none"
    window: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    free_head_dim: bool = True
    vocab: int | None = None
    heads: int | None = None
    max_positions: int | None = None


_GEMMA3 = Family(
    tied=True,
    block_norms=4,
    bias="attention_bias",
    qk_norm="per_head_dim",
    windows="pattern",
    window=4096,
    kv_heads=4,
    head_dim=256,
    vocab=262_208,
    heads=8,
    max_positions=131_072,
)

FAMILIES: Mapping[str, Family] = {
    "llama": Family(bias="attention_and_mlp_bias"),
    "mistral": Family(windows="every", window=4096, kv_heads=8),
    "qwen2": Family(bias="qkv", windows="above", window=4096, kv_heads=32),
    "qwen3": Family(bias="attention_bias", qk_norm="per_head_dim", windows="above", window=4096, kv_heads=32, head_dim=128),
    "gemma": Family(tied=True, bias="attention_bias", kv_heads=16, head_dim=256),
    "gemma2": Family(tied=True, block_norms=4, bias="attention_bias", windows="alternate", window=4096, kv_heads=4, head_dim=256),
    "gemma3_text": _GEMMA3,
    "phi3": Family(windows="every"),
    "olmo2": Family(bias="attention_bias", qk_norm="whole"),
    "cohere": Family(tied=True, block_norms=1, bias="attention_bias", qk_norm="use_qk_norm"),
    "starcoder2": Family(tied=True, gated=False, norm_bias=True, bias="use_bias", windows="every", kv_heads=2),
    "granite": Family(bias="attention_and_mlp_bias"),
    "glm": Family(bias="qkv_by_attention_bias", kv_heads=2, head_dim=128),
    "glm4": Family(block_norms=4, bias="qkv_by_attention_bias", kv_heads=2, head_dim=128),
    "ministral3": Family(windows="every", kv_heads=8, head_dim=128, vocab=131_072, heads=32, max_positions=262_144),
    "qwen3_vl_text": Family(bias="attention_bias", qk_norm="per_head_dim", kv_heads=32, head_dim=128),
    "stablelm": Family(norm_bias=True, bias="use_qkv_bias", qk_norm="qk_layernorm", kv_heads=32, free_head_dim=False),
}

# Switches that turn on vectors or layouts a family's class does not have; true is refused unless the family's bias rule reads the key.
BIAS_SWITCHES = ("attention_bias", "mlp_bias", "lm_head_bias", "use_bias", "use_qkv_bias", "qkv_bias", "bias")
READ_SWITCHES: Mapping[Bias, tuple[str, ...]] = {
    "never": (),
    "qkv": ("attention_bias", "qkv_bias", "use_qkv_bias"),
    "qkv_by_attention_bias": ("attention_bias",),
    "attention_bias": ("attention_bias",),
    "attention_and_mlp_bias": ("attention_bias", "mlp_bias"),
    "use_bias": ("use_bias",),
    "use_qkv_bias": ("use_qkv_bias",),
}
