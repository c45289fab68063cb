"""Latent attention (MLA) with mixtures: DeepSeek V2 to V3.2, Kimi K2, GLM-4.7-Flash and GLM-5.

Layouts are those of the modeling classes of transformers 5.24.0. Heads that predict further tokens are known and not counted.
"""

from app.domain.configs.mixture import first_dense, shared_and_routed
from app.domain.configs.reader import ConfigReader
from app.domain.configs.shape import Shape, positions_of
from app.domain.layers import Latent, LayerGroup, Mlp


def read_deepseek(reader: ConfigReader, notes: list[str]) -> Shape:
    """DeepSeek V2 and V3 and those that took their layout."""
    return _latent(reader, sparse=False, experts_alone=False)


def read_kimi(reader: ConfigReader, notes: list[str]) -> Shape:
    """Kimi K2: the layout of DeepSeek V3; its 4-bit checkpoints quantise the experts only."""
    return _latent(reader, sparse=False, experts_alone=True)


def read_sparse_latent(reader: ConfigReader, notes: list[str]) -> Shape:
    """DeepSeek V3.2 and GLM-5: a token attends to its best positions, chosen by an indexer that some layers share."""
    return _latent(reader, sparse=True, experts_alone=False)


def _latent(reader: ConfigReader, sparse: bool, experts_alone: bool) -> Shape:
    reader.ignore("num_key_value_heads", "qk_head_dim", "head_dim", "ep_size", "moe_router_dtype", "router_aux_loss_coef")
    reader.ignore("indexer_rope_interleave", "index_share_for_mtp_iteration", "index_topk_freq", "index_skip_topk_offset")
    hidden, heads, layers = (reader.whole(key) for key in ("hidden_size", "num_attention_heads", "num_hidden_layers"))
    plain = Latent(
        heads=heads,
        query_rank=reader.whole("q_lora_rank", 0),
        kv_rank=reader.whole("kv_lora_rank"),
        nope_dim=reader.whole("qk_nope_head_dim"),
        rope_dim=reader.whole("qk_rope_head_dim"),
        value_dim=reader.whole("v_head_dim"),
    )
    parts = first_dense(reader, layers, Mlp(reader.whole("intermediate_size")), shared_and_routed(reader))
    mixers = _indexed(reader, plain, layers) if sparse else [plain] * layers
    biases = plain.query_rank + plain.cached + hidden if reader.flag("attention_bias", False) else 0
    groups = []
    for latent, (mlp, experts) in zip(mixers, parts, strict=True):
        norms = 2 * hidden + latent.query_rank + latent.kv_rank + (2 * latent.index_dim if latent.index_heads else 0)
        groups.append(LayerGroup(1, latent=latent, mlp=mlp, experts=experts, norm_parameters=norms, bias_parameters=biases))
    return Shape(
        hidden,
        reader.whole("vocab_size"),
        tuple(groups),
        reader.flag("tie_word_embeddings", False),
        hidden,
        positions_of(reader),
        extra_prediction_layers=reader.count("num_nextn_predict_layers"),
        experts_alone_quantised=experts_alone,
    )


def _indexed(reader: ConfigReader, plain: Latent, layers: int) -> list[Latent]:
    """Each layer with its own indexer, or with the choice of the layer before where `indexer_types` says shared."""
    reader.only("index_topk_pattern")
    top, heads, size = reader.whole("index_topk"), reader.whole("index_n_heads"), reader.whole("index_head_dim")
    kinds = reader.kinds("indexer_types", layers, ("full", "shared"))
    if kinds is None:
        reader.only("index_topk_freq", 1)
        kinds = ["full"] * layers
    sizes = (plain.heads, plain.query_rank, plain.kv_rank, plain.nope_dim, plain.rope_dim, plain.value_dim)
    full, shared = Latent(*sizes, top, heads, size), Latent(*sizes, top)
    return [full if kind == "full" else shared for kind in kinds]
