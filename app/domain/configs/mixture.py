"""Mixtures of experts on grouped-query attention: which layers mix, how many experts a token goes through, what is shared.

Layouts are those of the modeling classes of transformers 5.24.0; `hunyuan` is remote code with the layout of hunyuan_v1_moe.
"""

from app.domain.configs.reader import ConfigReader, shown
from app.domain.configs.shape import Shape, head_dim_of, head_norms, kv_heads_of, positions_of, qkv_biases
from app.domain.layers import FULL, Attention, Experts, LayerGroup, Mlp, Reach

_SPARSE_OR_DENSE = ("dense", "sparse")
_NEUTRAL = ("router_aux_loss_coef", "moe_routed_scaling_factor", "moe_apply_router_weight_on_input", "moe_router_logit_softcapping")


def experts_of(
    reader: ConfigReader,
    field: str,
    count: int,
    chosen: int,
    intermediate: int,
    *,
    shared: int = 0,
    gated: bool = True,
    width: int | None = None,
    expert_vectors: int = 0,
    vectors: int = 0,
) -> Experts:
    """The mixture, refused where a token would go through more experts than there are. `field` is the key of the count of experts."""
    if chosen > count:
        raise reader.refuse(field, f"is {count}, fewer than the {chosen} experts a token goes through; check the config.json.")
    return Experts(count, chosen, intermediate, gated, shared, width, expert_vectors, vectors)


def read_mixtral(reader: ConfigReader, notes: list[str]) -> Shape:
    """Mixtral: every layer mixes."""
    reader.ignore(*_NEUTRAL)
    hidden, heads = reader.whole("hidden_size"), reader.whole("num_attention_heads")
    window = reader.whole("sliding_window", 0) or None
    reach = FULL if window is None else Reach("window", window)
    attention = Attention(heads, kv_heads_of(reader, heads, 8), head_dim_of(reader, hidden, heads, notes), reach=reach)
    experts = experts_of(
        reader,
        "num_local_experts",
        reader.whole("num_local_experts"),
        reader.whole("num_experts_per_tok"),
        reader.whole("intermediate_size"),
    )
    layer = LayerGroup(reader.whole("num_hidden_layers"), attention, experts=experts, norm_parameters=2 * hidden)
    tied = reader.flag("tie_word_embeddings", False)
    return Shape(hidden, reader.whole("vocab_size"), (layer,), tied, hidden, positions_of(reader))


def feed_forward_by_step(reader: ConfigReader, layers: int, shared: bool, hidden: int) -> list[tuple[Mlp | None, Experts | None]]:
    """The rule of the Qwen mixtures: every `decoder_sparse_step`-th layer mixes, save `mlp_only_layers`; the others have a dense MLP."""
    reader.ignore(*_NEUTRAL)
    step, only = reader.whole("decoder_sparse_step", 1), reader.places("mlp_only_layers", layers)
    width = reader.whole("shared_expert_intermediate_size") if shared else 0
    experts = experts_of(
        reader,
        "num_experts",
        reader.whole("num_experts"),
        reader.whole("num_experts_per_tok"),
        reader.whole("moe_intermediate_size"),
        shared=width,
        vectors=hidden if shared else 0,
    )
    mixing = [place not in only and (place + 1) % step == 0 for place in range(layers)]
    mlp = None if all(mixing) else Mlp(reader.whole("intermediate_size"))
    return [(None, experts) if mixes else (mlp, None) for mixes in mixing]


def read_qwen2_moe(reader: ConfigReader, notes: list[str]) -> Shape:
    """Qwen1.5 and Qwen2 mixtures: QKV biases, a gated shared expert."""
    return _qwen_moe(reader, notes, shared=True)


def read_qwen3_moe(reader: ConfigReader, notes: list[str]) -> Shape:
    """Qwen3 mixtures: norms on queries and keys, no shared expert."""
    return _qwen_moe(reader, notes, shared=False)


def _qwen_moe(reader: ConfigReader, notes: list[str], shared: bool) -> Shape:
    reader.only("use_sliding_window", False)
    reader.ignore("sliding_window", "max_window_layers")
    hidden, heads, layers = (reader.whole(key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    attention = Attention(heads, kv_heads_of(reader, heads, None if shared else 4), head_dim_of(reader, hidden, heads, notes))
    if shared:
        biases, norms = qkv_biases(attention) if reader.flag("qkv_bias", True) else 0, 2 * hidden
    else:
        biases = qkv_biases(attention) + hidden if reader.flag("attention_bias", False) else 0
        norms = 2 * hidden + head_norms(attention)
    groups = tuple(
        LayerGroup(1, attention, mlp=mlp, experts=experts, norm_parameters=norms, bias_parameters=biases)
        for mlp, experts in feed_forward_by_step(reader, layers, shared, hidden)
    )
    tied = reader.flag("tie_word_embeddings", False)
    return Shape(hidden, reader.whole("vocab_size"), groups, tied, hidden, positions_of(reader))


def read_minimax_m2(reader: ConfigReader, notes: list[str]) -> Shape:
    """MiniMax-M2: every layer mixes; norms over all queries and all keys; heads for further tokens."""
    reader.only("shared_intermediate_size", 0)
    reader.only("use_qk_norm", True)
    reader.only("qk_norm_type", "per_layer")
    if reader.has("attn_type_list") and set(reader.each("attn_type_list", reader.whole("num_hidden_layers"))) != {1}:
        raise reader.refuse("attn_type_list", "lists layers without softmax attention (1), which this model_type's class does not build.")
    hidden, heads = reader.whole("hidden_size"), reader.whole("num_attention_heads")
    attention = Attention(heads, kv_heads_of(reader, heads, 8), head_dim_of(reader, hidden, heads, notes))
    experts = experts_of(
        reader,
        "num_local_experts",
        reader.whole("num_local_experts"),
        reader.whole("num_experts_per_tok"),
        reader.whole("intermediate_size"),
    )
    norms = 2 * hidden + (heads + attention.kv_heads) * attention.head_dim
    layer = LayerGroup(reader.whole("num_hidden_layers"), attention, experts=experts, norm_parameters=norms)
    extra = reader.count("num_mtp_modules") * reader.count("mtp_transformer_layers", 1) if reader.flag("use_mtp", False) else 0
    reader.ignore("num_mtp_modules", "mtp_transformer_layers")
    tied = reader.flag("tie_word_embeddings", False)
    return Shape(hidden, reader.whole("vocab_size"), (layer,), tied, hidden, positions_of(reader), extra_prediction_layers=extra)


def read_gpt_oss(reader: ConfigReader, notes: list[str]) -> Shape:
    """gpt-oss: every second layer slides, a sink for each head, biases everywhere; experts kept in mxfp4, the rest at 16 bit."""
    reader.ignore("router_aux_loss_coef")
    hidden, heads, layers = (reader.whole(key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    kv_heads, head_dim = kv_heads_of(reader, heads, 8), head_dim_of(reader, hidden, heads, notes, 64)
    inner, window = reader.whole("intermediate_size"), reader.whole("sliding_window", 128)
    count, chosen = reader.first("num_local_experts", "num_experts"), reader.first("num_experts_per_tok", "experts_per_token")
    experts = experts_of(reader, "num_local_experts", count, chosen, inner, expert_vectors=2 * inner + hidden, vectors=count)
    kinds = reader.kinds("layer_types", layers, ("sliding_attention", "full_attention"))
    if kinds is None:
        kinds = ["full_attention" if place % 2 else "sliding_attention" for place in range(layers)]
    biased = reader.flag("attention_bias", True)
    groups = []
    for kind in kinds:
        attention = Attention(heads, kv_heads, head_dim, reach=FULL if kind == "full_attention" else Reach("window", window))
        biases = heads + (qkv_biases(attention) + hidden if biased else 0)
        groups.append(LayerGroup(1, attention, experts=experts, norm_parameters=2 * hidden, bias_parameters=biases))
    return Shape(
        hidden,
        reader.whole("vocab_size"),
        tuple(groups),
        reader.flag("tie_word_embeddings", False),
        hidden,
        positions_of(reader),
        experts_alone_quantised=True,
    )


def first_dense(reader: ConfigReader, layers: int, dense: Mlp, experts: Experts) -> list[tuple[Mlp | None, Experts | None]]:
    """The first `first_k_dense_replace` layers have a dense MLP, the others mix; a list of kinds, where there is one, must say the same."""
    reader.only("moe_layer_freq", 1)
    first = reader.count("first_k_dense_replace", 0)
    kinds = reader.kinds("mlp_layer_types", layers, _SPARSE_OR_DENSE)
    if kinds is None:
        kinds = ["dense" if place < first else "sparse" for place in range(layers)]
    elif reader.has("first_k_dense_replace") and kinds.count("dense") != first:
        raise reader.refuse("mlp_layer_types", f"lists {kinds.count('dense')} dense layers, but first_k_dense_replace is {first}.")
    return [(dense, None) if kind == "dense" else (None, experts) for kind in kinds]


def shared_and_routed(reader: ConfigReader) -> Experts:
    """The mixture of the DeepSeek layout: shared experts stand together as one MLP of their summed width."""
    width, count = reader.whole("moe_intermediate_size"), reader.whole("n_routed_experts")
    chosen, shared = reader.whole("num_experts_per_tok"), reader.count("n_shared_experts", 0)
    return experts_of(reader, "n_routed_experts", count, chosen, width, shared=shared * width)


def read_glm4_moe(reader: ConfigReader, notes: list[str]) -> Shape:
    """GLM-4.5 and 4.6: the first layers dense, shared experts, biases on queries, keys and values."""
    hidden, heads, layers = (reader.whole(key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    attention = Attention(heads, kv_heads_of(reader, heads, 8), head_dim_of(reader, hidden, heads, notes))
    biases = qkv_biases(attention) if reader.flag("attention_bias", False) else 0
    norms = 2 * hidden + (head_norms(attention) if reader.flag("use_qk_norm", False) else 0)
    parts = first_dense(reader, layers, Mlp(reader.whole("intermediate_size")), shared_and_routed(reader))
    groups = tuple(
        LayerGroup(1, attention, mlp=mlp, experts=experts, norm_parameters=norms, bias_parameters=biases) for mlp, experts in parts
    )
    extra, tied = reader.count("num_nextn_predict_layers"), reader.flag("tie_word_embeddings", False)
    return Shape(hidden, reader.whole("vocab_size"), groups, tied, hidden, positions_of(reader), extra_prediction_layers=extra)


def read_hunyuan(reader: ConfigReader, notes: list[str]) -> Shape:
    """Hunyuan mixtures: sizes may be listed layer by layer; a shared MLP in each."""
    for key in ("use_cla", "use_mla", "mlp_bias"):
        reader.only(key, False)
    reader.only("moe_layer_num_skipped", 0)
    reader.only("use_mixed_mlp_moe", True)
    reader.ignore("cla_share_factor", "dense_list", "moe_drop_tokens", "moe_random_routing_dropped_token", "n_group", "kv_lora_rank")
    hidden, heads, layers = (reader.whole(key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    head_dim = reader.first("attention_head_dim", "head_dim", default=hidden // heads)
    attention = Attention(heads, kv_heads_of(reader, heads), head_dim)
    biases = qkv_biases(attention) + hidden if reader.flag("attention_bias", False) else 0
    norms = 2 * hidden + (head_norms(attention) if reader.flag("use_qk_norm", True) else 0)
    inner = reader.whole("intermediate_size")
    counts, chosen = reader.each("num_experts", layers), reader.each("moe_topk", layers, 1)
    widths, shared = reader.each("moe_intermediate_size", layers, inner), reader.each("num_shared_expert", layers, 1)
    groups = []
    for count, top, width, together in zip(counts, chosen, widths, shared, strict=True):
        experts = experts_of(reader, "num_experts", count, top, width, shared=together * inner)
        groups.append(LayerGroup(1, attention, experts=experts, norm_parameters=norms, bias_parameters=biases))
    tied = reader.flag("tie_word_embeddings", False)
    return Shape(hidden, reader.whole("vocab_size"), tuple(groups), tied, hidden, positions_of(reader))


def read_llama4(reader: ConfigReader, notes: list[str]) -> Shape:
    """Llama 4: mixing layers between dense ones, a shared expert; every fourth layer sees all, the others their own chunk."""
    reader.ignore("router_aux_loss_coef", "moe_routed_scaling_factor")
    hidden, heads, layers = (reader.whole(key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    kv_heads, head_dim = kv_heads_of(reader, heads, 8), head_dim_of(reader, hidden, heads, notes)
    inner, step = reader.whole("intermediate_size"), reader.whole("interleave_moe_layer_step", 1)
    listed = reader.places("moe_layers", layers) if reader.has("moe_layers") else frozenset(range(step - 1, layers, step))
    mlp = Mlp(reader.whole("intermediate_size_mlp")) if len(listed) < layers else None
    reader.ignore("intermediate_size_mlp")
    count, chosen = reader.whole("num_local_experts"), reader.whole("num_experts_per_tok", 1)
    experts = experts_of(reader, "num_local_experts", count, chosen, inner, shared=inner)
    groups = []
    for place, reach in enumerate(_llama4_reaches(reader, layers, notes)):
        attention = Attention(heads, kv_heads, head_dim, reach=reach)
        biases = qkv_biases(attention) + hidden if reader.flag("attention_bias", False) else 0
        mixes = place in listed
        groups.append(
            LayerGroup(
                1,
                attention,
                mlp=None if mixes else mlp,
                experts=experts if mixes else None,
                norm_parameters=2 * hidden,
                bias_parameters=biases,
            )
        )
    tied = reader.flag("tie_word_embeddings", False)
    return Shape(hidden, reader.whole("vocab_size"), tuple(groups), tied, hidden, positions_of(reader))


def _llama4_reaches(reader: ConfigReader, layers: int, notes: list[str]) -> list[Reach]:
    """Layers with rotary positions see their own chunk of tokens, those without (every fourth unless listed) all of them."""
    if "attention_chunk_size" in reader.values and reader.values["attention_chunk_size"] is None:
        reader.ignore("attention_chunk_size", "no_rope_layers", "no_rope_layer_interval", "layer_types")
        return [FULL] * layers
    chunk = reader.whole("attention_chunk_size", 8192)
    if not reader.has("attention_chunk_size"):
        notes.append(f"{reader.path('attention_chunk_size')} is not in the config: {chunk} tokens, as the model class takes it.")
    kinds = reader.kinds("layer_types", layers, ("chunked_attention", "full_attention"))
    if kinds is None:
        every = reader.whole("no_rope_layer_interval", 4)
        given = reader.values.get("no_rope_layers")
        rotary = reader.each("no_rope_layers", layers) if given else [int((place + 1) % every != 0) for place in range(layers)]
        reader.ignore("no_rope_layers")
        kinds = ["chunked_attention" if with_rope else "full_attention" for with_rope in rotary]
    return [Reach("chunk", chunk) if kind == "chunked_attention" else FULL for kind in kinds]


def read_laguna(reader: ConfigReader, notes: list[str]) -> Shape:
    """Laguna: query heads differ between full and sliding layers, an output gate, a shared expert, the first layer dense."""
    reader.ignore(*_NEUTRAL)
    hidden, heads, layers = (reader.whole(key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    kv_heads, head_dim = kv_heads_of(reader, heads, 8), head_dim_of(reader, hidden, heads, notes)
    count = reader.whole("num_experts")
    experts = experts_of(
        reader,
        "num_experts",
        count,
        reader.whole("num_experts_per_tok"),
        reader.whole("moe_intermediate_size"),
        shared=reader.whole("shared_expert_intermediate_size"),
        vectors=count,
    )
    kinds = reader.kinds("mlp_layer_types", layers, _SPARSE_OR_DENSE) or ["dense"] + ["sparse"] * (layers - 1)
    reaches = reader.kinds("layer_types", layers, ("full_attention", "sliding_attention")) or ["full_attention"] * layers
    own_heads = reader.each("num_attention_heads_per_layer", layers, heads)
    gate = reader.values.get("gating", True)
    reader.only("gating", True, "per-head", "per-element")
    groups = []
    for kind, see, mine in zip(kinds, reaches, own_heads, strict=True):
        if mine < 1 or mine % kv_heads:
            raise reader.refuse("num_attention_heads_per_layer", f"lists {shown(mine)}, no multiple of {kv_heads} KV heads.")
        reach = FULL if see == "full_attention" else Reach("window", reader.whole("sliding_window"))
        attention = Attention(mine, kv_heads, head_dim, reach=reach, gate=mine * head_dim if gate == "per-element" else mine)
        biases = qkv_biases(attention) - attention.gate + hidden if reader.flag("attention_bias", False) else 0
        mixes = kind == "sparse"
        groups.append(
            LayerGroup(
                1,
                attention,
                mlp=None if mixes else Mlp(reader.whole("intermediate_size")),
                experts=experts if mixes else None,
                norm_parameters=2 * hidden + head_norms(attention),
                bias_parameters=biases,
            )
        )
    tied = reader.flag("tie_word_embeddings", False)
    return Shape(hidden, reader.whole("vocab_size"), tuple(groups), tied, hidden, positions_of(reader))
