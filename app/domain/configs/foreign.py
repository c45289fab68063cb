"""Keys and class names that say a config's layers are not those its reader builds: they refuse the config, never pass unseen."""

from collections.abc import Mapping

from app.domain.configs.reader import ConfigReader, shown

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


def refuse_foreign_keys(reader: ConfigReader) -> None:
    """Refuse a config with a key nobody read (set to anything but null, false, 0 or empty) that says its layers are of another kind."""
    for key, value in reader.values.items():
        if not value or key in reader.used:
            continue
        for part, meaning in FOREIGN_KEY_PARTS.items():
            if part in key.lower():
                raise reader.refuse(key, f"is {shown(value)}: {meaning}, which is not priced for this model_type.")


def refuse_foreign_class(reader: ConfigReader) -> None:
    """Refuse a dense model_type whose class names another architecture."""
    names = reader.values.get("architectures")
    for name in names if isinstance(names, list | tuple) else ():
        if isinstance(name, str) and any(part in name.lower() for part in FOREIGN_CLASS_PARTS):
            raise reader.refuse("architectures", f"names {shown(name)}, which is not a dense transformer of this model_type.")
