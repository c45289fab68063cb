"""The dense families that are priced: what each Hugging Face model class builds from its config, and what it takes where a key is absent.

Defaults and layouts are those of the configuration and modeling classes of transformers 5.24.0. A key that would change
the layers in a way no row here describes is refused by name: a wrong price is worse than none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Windows = Literal["none", "every", "alternate", "pattern", "above"]
Bias = Literal["never", "qkv", "attention_bias", "attention_and_mlp_bias", "use_bias", "use_qkv_bias"]
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
    "stablelm": Family(norm_bias=True, bias="use_qkv_bias", qk_norm="qk_layernorm", kv_heads=32, free_head_dim=False),
}

# gemma3 keeps its language model under text_config, saved as the difference from the class defaults.
NESTED: Mapping[str, str] = {"gemma3": "gemma3_text"}

# Parts of key names that only appear in configs of architectures without a price, with the word for the refusal.
FOREIGN_KEY_PARTS: Mapping[str, str] = {
    "expert": "a mixture of experts",
    "moe": "a mixture of experts",
    "first_k_dense": "a mixture of experts",
    "dense_list": "a mixture of experts",
    "decoder_sparse_step": "a mixture of experts",
    "router_aux": "a mixture of experts",
    "mlp_layer_types": "layers that differ in their MLP",
    "mlp_only_layers": "layers that differ in their MLP",
    "lora_rank": "latent attention (MLA)",
    "qk_nope": "latent attention (MLA)",
    "qk_rope": "latent attention (MLA)",
    "v_head_dim": "latent attention (MLA)",
    "use_mla": "latent attention (MLA)",
    "ssm": "state-space layers",
    "mamba": "state-space layers",
    "state_size": "state-space layers",
    "d_state": "state-space layers",
    "conv_kernel": "state-space layers",
    "rwkv": "recurrent layers",
    "lru_width": "recurrent layers",
    "recurrent": "recurrent layers",
    "linear_attn": "linear-attention layers",
    "linear_attention": "linear-attention layers",
    "linear_num": "linear-attention layers",
    "linear_key": "linear-attention layers",
    "linear_value": "linear-attention layers",
    "linear_conv": "linear-attention layers",
    "lightning": "linear-attention layers",
    "full_attention_interval": "linear-attention layers",
    "attn_type_list": "layers that differ in their attention",
    "attn_layer": "layers that differ in their attention",
    "hybrid": "a hybrid of layer kinds",
    "block_configs": "blocks that differ from each other",
    "block_type": "blocks that differ from each other",
    "block_types": "blocks that differ from each other",
    "per_layer": "layers that differ from each other",
    "num_kv_shared": "layers that share their KV cache",
    "cla_share": "layers that share their KV cache",
    "use_cla": "layers that share their KV cache",
    "global_head_dim": "layers that differ in their heads",
    "num_global_key_value_heads": "layers that differ in their heads",
    "attention_k_eq_v": "keys that serve as values",
    "attn_output_gate": "gated attention",
    "index_topk": "sparse attention",
    "index_n_heads": "sparse attention",
    "indexer": "sparse attention",
    "sparse_attention": "sparse attention",
    "blocksparse": "sparse attention",
    "dense_attention_every": "sparse attention",
    "dual_chunk": "sparse attention",
    "attention_chunk": "chunked attention",
    "cross_attention": "cross attention",
    "encoder_layers": "an encoder",
    "is_encoder_decoder": "an encoder",
    "use_bidirectional_attention": "attention that is not causal",
    "nextn": "multi-token-prediction layers",
    "mtp": "multi-token-prediction layers",
    "kv_channels": "the layout of another model class",
    "multi_query": "the layout of another model class",
    "altup": "layers beside the transformer block",
    "laurel": "layers beside the transformer block",
    "hyper_connection": "layers beside the transformer block",
    "activation_sparsity": "layers beside the transformer block",
}

# Words in an architecture's class name that contradict a dense model_type.
FOREIGN_CLASS_PARTS = ("moe", "mixtral", "mamba", "jamba", "hybrid", "deci", "nemotronnas", "deepseek", "rwkv", "encoderdecoder")

# Switches that turn on vectors or layouts a family's class does not have; true is refused unless the family's bias rule reads the key.
BIAS_SWITCHES = ("attention_bias", "mlp_bias", "lm_head_bias", "use_bias", "use_qkv_bias", "qkv_bias", "bias")
READ_SWITCHES: Mapping[Bias, tuple[str, ...]] = {
    "never": (),
    "qkv": ("attention_bias", "qkv_bias", "use_qkv_bias"),
    "attention_bias": ("attention_bias",),
    "attention_and_mlp_bias": ("attention_bias", "mlp_bias"),
    "use_bias": ("use_bias",),
    "use_qkv_bias": ("use_qkv_bias",),
}
