"""State-space and linear-attention models, and hybrids of their layers with attention.

Layouts are those of the modeling classes of transformers 5.24.0.
"""

from app.domain.configs.mixture import experts_of, feed_forward_by_step
from app.domain.configs.reader import ConfigReader, shown
from app.domain.configs.recurrent import delta_net, lightning, mamba, mamba2, mixer_width, step_rank
from app.domain.configs.shape import Shape, head_dim_of, head_norms, kv_heads_of, positions_of, qkv_biases
from app.domain.layers import Attention, Experts, LayerGroup, Mlp

_LINEAR_OR_FULL = ("linear_attention", "full_attention")


def read_mamba(reader: ConfigReader, notes: list[str]) -> Shape:
    """Mamba: nothing but mixers of the first kind. An explicit intermediate_size wins over `expand`."""
    hidden, state, kernel = reader.whole("hidden_size"), reader.whole("state_size", 16), reader.whole("conv_kernel", 4)
    inner = reader.whole("intermediate_size") if reader.has("intermediate_size") else mixer_width(reader, "expand", hidden)
    biases = 2 * inner + hidden if reader.flag("use_bias", False) else 0
    mixer = mamba(hidden, inner, state, kernel, step_rank(reader, "time_step_rank", hidden), biases, reader.flag("use_conv_bias", True))
    reader.ignore("expand", "use_mambapy", "use_falcon_mambapy")
    layer = LayerGroup(reader.whole("num_hidden_layers"), recurrent=mixer, norm_parameters=hidden)
    return Shape(hidden, reader.whole("vocab_size"), (layer,), reader.flag("tie_word_embeddings", True), hidden, None)


def read_mamba2(reader: ConfigReader, notes: list[str]) -> Shape:
    """Mamba-2: nothing but mixers of the second kind."""
    hidden, heads, head_dim = reader.whole("hidden_size"), reader.whole("num_heads"), reader.whole("head_dim", 64)
    inner, state = mixer_width(reader, "expand", hidden), reader.whole("state_size", 128)
    if inner != heads * head_dim:
        raise reader.refuse("num_heads", f"is {heads} of {head_dim}, but expand x hidden_size is {inner}; they must agree.")
    biases = inner + 2 * reader.whole("n_groups", 8) * state + inner + heads + hidden if reader.flag("use_bias", False) else 0
    mixer = mamba2(
        heads,
        head_dim,
        state,
        reader.whole("n_groups", 8),
        reader.whole("conv_kernel", 4),
        biases,
        reader.flag("use_conv_bias", True),
    )
    layer = LayerGroup(reader.whole("num_hidden_layers"), recurrent=mixer, norm_parameters=hidden)
    return Shape(hidden, reader.whole("vocab_size"), (layer,), reader.flag("tie_word_embeddings", False), hidden, None)


def read_jamba(reader: ConfigReader, notes: list[str]) -> Shape:
    """Jamba: attention in one layer of a period, mixers of the first kind in the others, experts in every second."""
    reader.ignore("router_aux_loss_coef", "use_mamba_kernels")
    hidden, heads, layers = (reader.whole(key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    state, kernel = reader.whole("mamba_d_state", 16), reader.whole("mamba_d_conv", 4)
    inner, rank = mixer_width(reader, "mamba_expand", hidden), step_rank(reader, "mamba_dt_rank", hidden)
    biases = 2 * inner + hidden if reader.flag("mamba_proj_bias", False) else 0
    mixer = mamba(hidden, inner, state, kernel, rank, biases, reader.flag("mamba_conv_bias", True), norms=rank + 2 * state)
    attention = Attention(heads, kv_heads_of(reader, heads), head_dim_of(reader, hidden, heads, notes))
    width, count = reader.whole("intermediate_size"), reader.whole("num_experts", 16)
    experts = experts_of(reader, "num_experts", count, reader.whole("num_experts_per_tok", 2), width) if count > 1 else None
    attends, mixes = _every(reader, "attn_layer", layers, 8, 4), _every(reader, "expert_layer", layers, 2, 1)
    groups = []
    for place in range(layers):
        here = experts if mixes[place] else None
        groups.append(
            LayerGroup(
                1,
                attention if attends[place] else None,
                recurrent=None if attends[place] else mixer,
                mlp=None if here else Mlp(width),
                experts=here,
                norm_parameters=2 * hidden,
            )
        )
    tied = reader.flag("tie_word_embeddings", False)
    return Shape(hidden, reader.whole("vocab_size"), tuple(groups), tied, hidden, positions_of(reader))


def _every(reader: ConfigReader, word: str, layers: int, period: int, offset: int) -> list[bool]:
    """Which layers are those of a `word`: every `word`_period-th from `word`_offset on."""
    step, first = reader.whole(f"{word}_period", period), reader.count(f"{word}_offset", offset)
    return [place % step == first for place in range(layers)]


def read_qwen3_next(reader: ConfigReader, notes: list[str]) -> Shape:
    """Qwen3-Next and the Qwen3.5 mixtures: gated delta rule in three layers of four, gated attention in the fourth, experts in all."""
    layers, hidden = reader.whole("num_hidden_layers"), reader.whole("hidden_size")
    return _delta_hybrid(reader, notes, feed_forward_by_step(reader, layers, True, hidden))


def read_qwen3_5(reader: ConfigReader, notes: list[str]) -> Shape:
    """The dense Qwen3.5 models: the same layers with a dense MLP."""
    reader.ignore("mlp_only_layers")
    mlp = Mlp(reader.whole("intermediate_size"))
    return _delta_hybrid(reader, notes, [(mlp, None)] * reader.whole("num_hidden_layers"))


def _delta_hybrid(reader: ConfigReader, notes: list[str], parts: list[tuple[Mlp | None, Experts | None]]) -> Shape:
    reader.ignore("mamba_ssm_dtype", "mtp_use_dedicated_embeddings")
    reader.only("attn_output_gate", True)
    hidden, heads, layers = reader.whole("hidden_size"), reader.whole("num_attention_heads"), len(parts)
    kv_heads, head_dim = kv_heads_of(reader, heads), head_dim_of(reader, hidden, heads, notes, 256)
    attention = Attention(heads, kv_heads, head_dim, gate=heads * head_dim)
    biases = qkv_biases(attention) + hidden if reader.flag("attention_bias", False) else 0
    mixer, interval = delta_net(reader), reader.whole("full_attention_interval", 4)
    kinds = reader.kinds("layer_types", layers, _LINEAR_OR_FULL)
    if kinds is None:
        kinds = [_LINEAR_OR_FULL[(place + 1) % interval == 0] for place in range(layers)]
    groups = []
    for kind, (mlp, experts) in zip(kinds, parts, strict=True):
        full = kind == "full_attention"
        groups.append(
            LayerGroup(
                1,
                attention if full else None,
                recurrent=None if full else mixer,
                mlp=mlp,
                experts=experts,
                norm_parameters=2 * hidden + (head_norms(attention) if full else 0),
                bias_parameters=biases if full else 0,
            )
        )
    tied, extra = reader.flag("tie_word_embeddings", False), reader.count("mtp_num_hidden_layers")
    return Shape(hidden, reader.whole("vocab_size"), tuple(groups), tied, hidden, positions_of(reader), extra_prediction_layers=extra)


def read_minimax(reader: ConfigReader, notes: list[str]) -> Shape:
    """MiniMax-Text-01 and M1: lightning attention in seven layers of eight, softmax attention in the eighth, experts in all."""
    reader.ignore("router_aux_loss_coef", "linear_attn_alpha_factor", "linear_attn_beta_factor")
    reader.ignore("layernorm_linear_attention_alpha", "layernorm_linear_attention_beta")
    reader.only("shared_intermediate_size", 0)
    hidden, heads, layers = (reader.whole(key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    head_dim = head_dim_of(reader, hidden, heads, notes)
    attention, mixer = Attention(heads, kv_heads_of(reader, heads, 8), head_dim), lightning(heads, head_dim)
    experts = experts_of(
        reader,
        "num_local_experts",
        reader.whole("num_local_experts"),
        reader.whole("num_experts_per_tok"),
        reader.whole("intermediate_size"),
    )
    kinds = reader.kinds("layer_types", layers, _LINEAR_OR_FULL)
    if kinds is None:
        if not reader.has("attn_type_list"):
            raise reader.refuse("layer_types", "is missing; this model_type needs the kind of each layer (layer_types or attn_type_list).")
        kinds = [_LINEAR_OR_FULL[kind] if kind in (0, 1) else "" for kind in reader.each("attn_type_list", layers)]
        if "" in kinds:
            raise reader.refuse("attn_type_list", f"is {shown(reader.values['attn_type_list'])}; 0 (linear) and 1 (softmax) are known.")
    groups = tuple(
        LayerGroup(
            1,
            attention if kind == "full_attention" else None,
            recurrent=None if kind == "full_attention" else mixer,
            experts=experts,
            norm_parameters=2 * hidden,
        )
        for kind in kinds
    )
    tied = reader.flag("tie_word_embeddings", False)
    return Shape(hidden, reader.whole("vocab_size"), groups, tied, hidden, positions_of(reader))


def read_falcon_h1(reader: ConfigReader, notes: list[str]) -> Shape:
    """Falcon-H1: attention and a mixer of the second kind side by side in every layer, and a dense MLP."""
    hidden, heads = reader.whole("hidden_size"), reader.whole("num_attention_heads")
    attention = Attention(heads, kv_heads_of(reader, heads, 8), head_dim_of(reader, hidden, heads, notes))
    inner = reader.whole("mamba_d_ssm") if reader.has("mamba_d_ssm") else mixer_width(reader, "mamba_expand", hidden)
    mixer_heads, state = reader.whole("mamba_n_heads", 128), reader.whole("mamba_d_state", 256)
    groups = reader.whole("mamba_n_groups", 1)
    stated = reader.values.get("mamba_d_head", "auto")
    head_dim = inner // mixer_heads if stated in (None, "auto") else reader.whole("mamba_d_head")
    if mixer_heads * head_dim != inner:
        raise reader.refuse("mamba_n_heads", f"is {mixer_heads} of {head_dim}, but the mixer is {inner} wide; they must agree.")
    biases = 2 * inner + 2 * groups * state + mixer_heads if reader.flag("mamba_proj_bias", False) else 0
    biases += hidden if reader.flag("projectors_bias", False) else 0
    norm, kernel = reader.flag("mamba_rms_norm", False), reader.whole("mamba_d_conv", 4)
    mixer = mamba2(mixer_heads, head_dim, state, groups, kernel, biases, reader.flag("mamba_conv_bias", True), norm)
    reader.ignore("mamba_expand", "mamba_d_head", "mamba_chunk_size", "mamba_norm_before_gate", "ssm_multipliers", "mamba_use_mlp")
    reader.ignore("ssm_in_multiplier", "ssm_out_multiplier")
    width = reader.whole("intermediate_size")
    own = qkv_biases(attention) + hidden if reader.flag("attention_bias", False) else 0
    own += 2 * width + hidden if reader.flag("mlp_bias", False) else 0
    layers = reader.whole("num_hidden_layers")
    layer = LayerGroup(layers, attention, recurrent=mixer, mlp=Mlp(width), norm_parameters=2 * hidden, bias_parameters=own)
    tied = reader.flag("tie_word_embeddings", False)
    return Shape(hidden, reader.whole("vocab_size"), (layer,), tied, hidden, positions_of(reader, 8192))


_NEMOTRON_LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_NEMOTRON_WORDS = {**{word: word for word in _NEMOTRON_LETTERS.values()}, "linear_attention": "mamba", "full_attention": "attention"}


def read_nemotron_h(reader: ConfigReader, notes: list[str]) -> Shape:
    """Nemotron-H and Nemotron 3: each layer is a mixer, an attention, an MLP or a mixture, by the letters of a pattern."""
    reader.ignore("moe_shared_expert_overlap", "mamba_ssm_cache_dtype", "mamba_hidden_act", "use_mamba_kernels", "chunk_size", "expand")
    reader.ignore("mtp_hybrid_override_pattern", "mtp_layers_block_type")
    hidden, heads = reader.whole("hidden_size"), reader.whole("num_attention_heads")
    kinds = _nemotron_layers(reader)
    attention = Attention(heads, kv_heads_of(reader, heads), reader.first("head_dim", "attention_head_dim", default=128))
    biased_mlp, biased = reader.flag("mlp_bias", False), reader.flag("use_bias", False)
    reader.only("attention_bias", False)
    reader.only("mamba_proj_bias", False, biased)
    made: dict[str, LayerGroup] = {"attention": LayerGroup(1, attention, norm_parameters=hidden)}
    if "mamba" in kinds:
        mixer_heads, size = reader.whole("mamba_num_heads"), reader.whole("mamba_head_dim")
        state, parts = reader.first("ssm_state_size", default=128), reader.first("n_groups", "mamba_n_groups", default=8)
        inner = mixer_heads * size
        biases = 2 * inner + 2 * parts * state + mixer_heads + hidden if biased else 0
        kernel = reader.first("conv_kernel", "mamba_d_conv", default=4)
        mixer = mamba2(mixer_heads, size, state, parts, kernel, biases, reader.flag("use_conv_bias", True))
        made["mamba"] = LayerGroup(1, recurrent=mixer, norm_parameters=hidden)
    if "mlp" in kinds:
        width = reader.whole("intermediate_size")
        extra = width + hidden if biased_mlp else 0
        made["mlp"] = LayerGroup(1, mlp=Mlp(width, gated=False), norm_parameters=hidden, bias_parameters=extra)
    if "moe" in kinds:
        if biased_mlp:
            raise reader.refuse("mlp_bias", "is true in a mixture of experts, which is not priced yet.")
        made["moe"] = LayerGroup(1, experts=_nemotron_experts(reader), norm_parameters=hidden)
    reader.ignore("ssm_state_size", "mamba_num_heads", "mamba_head_dim", "conv_kernel", "n_groups", "mamba_n_groups", "n_shared_experts")
    tied, extra_layers = reader.flag("tie_word_embeddings", False), reader.count("num_nextn_predict_layers")
    groups = tuple(made[kind] for kind in kinds)
    return Shape(hidden, reader.whole("vocab_size"), groups, tied, hidden, positions_of(reader), extra_prediction_layers=extra_layers)


def _nemotron_experts(reader: ConfigReader) -> Experts:
    """Plain experts on hidden or on a narrower latent width, and a shared plain MLP on hidden."""
    width = reader.whole("moe_latent_size", 0) or None
    shared = reader.whole("moe_shared_expert_intermediate_size") if reader.count("n_shared_experts", 1) else 0
    count, chosen = reader.whole("n_routed_experts"), reader.whole("num_experts_per_tok")
    inner = reader.whole("moe_intermediate_size")
    return experts_of(reader, "n_routed_experts", count, chosen, inner, shared=shared, gated=False, width=width)


def _nemotron_layers(reader: ConfigReader) -> list[str]:
    """The kind of each layer: from the pattern's letters or from a list of words."""
    key = "hybrid_override_pattern" if reader.has("hybrid_override_pattern") else "layers_block_type"
    if key == "layers_block_type" and not reader.has(key):
        key = "layer_types"
    given = reader.values.get(key)
    table = _NEMOTRON_LETTERS if isinstance(given, str) else _NEMOTRON_WORDS
    if not isinstance(given, str | list | tuple) or not given or any(item not in table for item in given):
        raise reader.refuse(key, f"is {shown(given)}; the kind of each layer is expected: M, *, -, E, or their words.")
    kinds = [table[item] for item in given]
    reader.ignore("hybrid_override_pattern", "layers_block_type", "layer_types")
    if len(kinds) != reader.whole("num_hidden_layers", len(kinds)):
        raise reader.refuse(key, f"has {len(kinds)} layers, but num_hidden_layers is {reader.values['num_hidden_layers']}.")
    return kinds
