"""Families with key names and layouts of their own: GPT-2, GPT-J, GPT-BigCode, GPT-NeoX, OPT, BLOOM, MPT, Falcon, Phi, the first Qwen.

Layouts are those of the modeling classes of transformers 5.24.0, of remote code where the model ships its own (`phi-msft`, `qwen`).
Their norms have a bias vector unless said otherwise.
"""

from app.domain.configs.reader import ConfigReader
from app.domain.configs.shape import Shape, head_dim_of, kv_heads_of, positions_of
from app.domain.layers import Attention, LayerGroup, Mlp


def read_gpt2(reader: ConfigReader, notes: list[str]) -> Shape:
    """GPT-2: learned positions, all projections with biases."""
    return _gpt(reader, notes, kv_heads=None)


def read_gpt_bigcode(reader: ConfigReader, notes: list[str]) -> Shape:
    """GPT-BigCode (SantaCoder, StarCoder): GPT-2 whose heads share one key and value head."""
    return _gpt(reader, notes, kv_heads=1 if reader.flag("multi_query", True) else None)


def _gpt(reader: ConfigReader, notes: list[str], kv_heads: int | None) -> Shape:
    reader.only("add_cross_attention", False)
    hidden, heads, layers = (reader.first(*keys) for keys in (("n_embd", "hidden_size"), ("n_head", "num_attention_heads"), ("n_layer",)))
    inner = reader.whole("n_inner", 4 * hidden)
    positions = reader.first("n_positions", "max_position_embeddings", default=1024)
    attention = Attention(heads, kv_heads or heads, head_dim_of(reader, hidden, heads, notes))
    biases = attention.query_size + 2 * attention.kv_heads * attention.head_dim + hidden + inner + hidden
    layer = LayerGroup(layers, attention, mlp=Mlp(inner, gated=False), norm_parameters=4 * hidden, bias_parameters=biases)
    tied = reader.flag("tie_word_embeddings", True)
    return Shape(hidden, reader.whole("vocab_size"), (layer,), tied, 2 * hidden, positions, position_parameters=positions * hidden)


def read_gptj(reader: ConfigReader, notes: list[str]) -> Shape:
    """GPT-J: one norm for a parallel block, biases in the MLP and on the output matrix only."""
    hidden, heads = reader.first("n_embd", "hidden_size"), reader.first("n_head", "num_attention_heads")
    inner = reader.whole("n_inner", 4 * hidden)
    attention = Attention(heads, heads, head_dim_of(reader, hidden, heads, notes))
    layer = LayerGroup(
        reader.first("n_layer", "num_hidden_layers"),
        attention,
        mlp=Mlp(inner, gated=False),
        norm_parameters=2 * hidden,
        bias_parameters=inner + hidden,
    )
    vocab, tied = reader.whole("vocab_size"), reader.flag("tie_word_embeddings", False)
    return Shape(hidden, vocab, (layer,), tied, 2 * hidden + vocab, reader.first("n_positions", default=2048))


def read_gpt_neox(reader: ConfigReader, notes: list[str]) -> Shape:
    """GPT-NeoX (Pythia): two norms, biases everywhere but on the output matrix."""
    hidden, heads = reader.whole("hidden_size"), reader.whole("num_attention_heads")
    inner = reader.whole("intermediate_size", 4 * hidden)
    attention = Attention(heads, heads, head_dim_of(reader, hidden, heads, notes))
    biases = (4 * hidden if reader.flag("attention_bias", True) else 0) + inner + hidden
    layer = LayerGroup(
        reader.whole("num_hidden_layers"),
        attention,
        mlp=Mlp(inner, gated=False),
        norm_parameters=4 * hidden,
        bias_parameters=biases,
    )
    tied = reader.flag("tie_word_embeddings", False)
    return Shape(hidden, reader.whole("vocab_size"), (layer,), tied, 2 * hidden, positions_of(reader, 2048))


def read_opt(reader: ConfigReader, notes: list[str]) -> Shape:
    """OPT: learned positions (two more than it states), biases everywhere, no final norm where norms come after the block."""
    hidden, heads = reader.whole("hidden_size"), reader.whole("num_attention_heads")
    if reader.whole("word_embed_proj_dim", hidden) != hidden:
        raise reader.refuse("word_embed_proj_dim", f"is not hidden_size ({hidden}); tables of another width are not priced yet.")
    inner, positions = reader.whole("ffn_dim"), reader.whole("max_position_embeddings", 2048)
    biased = reader.flag("enable_bias", True)
    affine = reader.flag("layer_norm_elementwise_affine", True)
    attention = Attention(heads, heads, head_dim_of(reader, hidden, heads, notes))
    layer = LayerGroup(
        reader.whole("num_hidden_layers"),
        attention,
        mlp=Mlp(inner, gated=False),
        norm_parameters=4 * hidden if affine else 0,
        bias_parameters=5 * hidden + inner if biased else 0,
    )
    final = reader.flag("do_layer_norm_before", True) and not reader.flag("_remove_final_layer_norm", False) and affine
    tied = reader.flag("tie_word_embeddings", True)
    table = (positions + 2) * hidden
    return Shape(hidden, reader.whole("vocab_size"), (layer,), tied, 2 * hidden * final, positions, position_parameters=table)


def read_bloom(reader: ConfigReader, notes: list[str]) -> Shape:
    """BLOOM: positions by bias on the scores, a norm after the table, biases everywhere."""
    hidden, heads = reader.first("hidden_size", "n_embed"), reader.first("n_head", "num_attention_heads")
    reader.only("n_inner", 4 * hidden)
    attention = Attention(heads, heads, head_dim_of(reader, hidden, heads, notes))
    layers = reader.first("n_layer", "num_hidden_layers")
    layer = LayerGroup(layers, attention, mlp=Mlp(4 * hidden, gated=False), norm_parameters=4 * hidden, bias_parameters=9 * hidden)
    return Shape(hidden, reader.whole("vocab_size"), (layer,), reader.flag("tie_word_embeddings", True), 4 * hidden, None)


def read_mpt(reader: ConfigReader, notes: list[str]) -> Shape:
    """MPT: no biases at all, norms without bias."""
    hidden, heads = reader.whole("d_model"), reader.whole("n_heads")
    reader.only("no_bias", True)
    reader.only("expansion_ratio", 4)
    if reader.has("attn_config"):
        reader.inner("attn_config").only("attn_type", "multihead_attention")
    attention = Attention(heads, heads, head_dim_of(reader, hidden, heads, notes))
    layer = LayerGroup(reader.whole("n_layers"), attention, mlp=Mlp(4 * hidden, gated=False), norm_parameters=2 * hidden)
    positions = reader.whole("max_seq_len", 2048)
    return Shape(hidden, reader.whole("vocab_size"), (layer,), reader.flag("tie_word_embeddings", True), hidden, positions)


def read_falcon(reader: ConfigReader, notes: list[str]) -> Shape:
    """Falcon: one KV head (7B), or as many as the newer layout states (40B, 180B); norms by layout."""
    hidden, heads = reader.first("hidden_size", "n_embed"), reader.first("num_attention_heads", "n_head")
    newer, parallel = reader.flag("new_decoder_architecture", False), reader.flag("parallel_attn", True)
    if newer:
        kv_heads = kv_heads_of(reader, heads, key=next((key for key in ("num_kv_heads", "n_head_kv") if reader.has(key)), "num_kv_heads"))
    else:
        reader.ignore("num_kv_heads", "n_head_kv")
        kv_heads = 1 if reader.flag("multi_query", True) else heads
    reader.ignore("multi_query")
    inner = reader.whole("ffn_hidden_size", 4 * hidden)
    norms = reader.whole("num_ln_in_parallel_attn", 2 if newer else 1) if parallel else 2
    attention = Attention(heads, kv_heads, head_dim_of(reader, hidden, heads, notes))
    biases = attention.query_size + 2 * kv_heads * attention.head_dim + hidden + inner + hidden
    layer = LayerGroup(
        reader.first("num_hidden_layers", "n_layer"),
        attention,
        mlp=Mlp(inner, gated=False),
        norm_parameters=2 * norms * hidden,
        bias_parameters=biases if reader.flag("bias", False) else 0,
    )
    tied = reader.flag("tie_word_embeddings", True)
    return Shape(hidden, reader.whole("vocab_size"), (layer,), tied, 2 * hidden, positions_of(reader, 2048))


def read_phi(reader: ConfigReader, notes: list[str]) -> Shape:
    """Phi-1 and Phi-2, also by the keys of their remote code: one norm for a parallel block, biases everywhere, on the output too."""
    hidden, heads = reader.first("hidden_size", "n_embd"), reader.first("num_attention_heads", "n_head")
    kv_heads = kv_heads_of(reader, heads, key="n_head_kv" if reader.has("n_head_kv") else "num_key_value_heads")
    inner = reader.first("intermediate_size", "n_inner", default=4 * hidden)
    reader.only("qk_layernorm", False)
    attention = Attention(heads, kv_heads, head_dim_of(reader, hidden, heads, notes))
    biases = attention.query_size + 2 * kv_heads * attention.head_dim + hidden + inner + hidden
    layers = reader.first("num_hidden_layers", "n_layer")
    layer = LayerGroup(layers, attention, mlp=Mlp(inner, gated=False), norm_parameters=2 * hidden, bias_parameters=biases)
    vocab, tied = reader.whole("vocab_size"), reader.flag("tie_word_embeddings", False)
    positions = reader.first("max_position_embeddings", "n_positions", default=2048)
    return Shape(hidden, vocab, (layer,), tied, 2 * hidden + vocab, positions)


def read_qwen(reader: ConfigReader, notes: list[str]) -> Shape:
    """The first Qwen (remote code): `intermediate_size` is twice the MLP's width; QKV biases whatever no_bias says."""
    hidden, heads = reader.whole("hidden_size"), reader.whole("num_attention_heads")
    doubled = reader.whole("intermediate_size")
    if doubled % 2:
        raise reader.refuse("intermediate_size", f"is {doubled}; this model_type states twice the width of its MLP, so it is even.")
    head_dim = reader.whole("kv_channels", hidden // heads)
    attention = Attention(heads, heads, head_dim)
    notes.append(f"intermediate_size is twice the width of the MLP in this model_type: {doubled // 2} is taken.")
    layer = LayerGroup(
        reader.whole("num_hidden_layers"),
        attention,
        mlp=Mlp(doubled // 2),
        norm_parameters=2 * hidden,
        bias_parameters=3 * attention.query_size,
    )
    positions = reader.first("max_position_embeddings", "seq_length", default=8192)
    return Shape(hidden, reader.whole("vocab_size"), (layer,), reader.flag("tie_word_embeddings", False), hidden, positions)
