"""Configs of every kind: counts worked out by hand, what is refused, and the table of real ones beside the checkout."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.architecture import ModelArchitecture
from app.domain.configs import MODEL_TYPES, NESTED, READERS, from_config
from app.domain.errors import UnsupportedModel
from app.domain.layers import FULL, Reach
from app.domain.work import ElementBytes, operators, pass_numbers

# Two layers of hidden 8 with 4 heads of 2 and 2 KV heads: q 64, k and v 64, o 64 = 192; two norms 16; a table is 32*8 = 256.
BASE: dict[str, object] = {
    "num_hidden_layers": 2,
    "hidden_size": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 2,
    "intermediate_size": 16,
    "vocab_size": 32,
    "max_position_embeddings": 128,
}
DELTA: dict[str, object] = {
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 3,
    "linear_value_head_dim": 4,
    "linear_conv_kernel_dim": 4,
}
LATENT: dict[str, object] = {
    "q_lora_rank": 6,
    "kv_lora_rank": 5,
    "qk_nope_head_dim": 3,
    "qk_rope_head_dim": 2,
    "v_head_dim": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 7,
    "first_k_dense_replace": 1,
}


def small(model_type: str, *more: dict[str, object], **changes: object) -> dict[str, object]:
    merged: dict[str, object] = {"model_type": model_type, **BASE}
    for part in more:
        merged |= part
    return {key: value for key, value in {**merged, **changes}.items() if value is not ...}


# (total, active) of a whole model: layers, two tables of 256 unless tied, a final norm of 8.
MIXTRAL = {"num_local_experts": 4, "num_experts_per_tok": 2}
QWEN_MOE = {"num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 4, "shared_expert_intermediate_size": 6}
# Latent attention: down 8*(6 + 7) = 104, up 6*4*5 + 5*4*7 = 260, o 16*8 = 128; norms 16 + 6 + 5
LATENT_LAYER = 104 + 260 + 128 + 27
# Delta rule: key 3, value 8, channels 14; in 8*(14 + 8 + 4), out 64, convolution 56, decays 4, norm 4
DELTA_LAYER = 208 + 64 + 64
CASES = [
    # router 32, an expert 3*8*16 = 384
    ("mixtral", small("mixtral", MIXTRAL), 2 * (192 + 16 + 32 + 4 * 384) + 520, 2 * (192 + 16 + 32 + 2 * 384) + 520),
    # QKV biases 16; router 32, an expert 96, the shared one 144 and its gate 8
    ("qwen2_moe", small("qwen2_moe", QWEN_MOE), 2 * (224 + 32 + 384 + 152) + 520, 2 * (224 + 32 + 96 + 152) + 520),
    # every second layer mixes, the first has a dense MLP of 384; norms of 2 on queries and keys
    (
        "qwen3_moe",
        small("qwen3_moe", QWEN_MOE, decoder_sparse_step=2, shared_expert_intermediate_size=...),
        2 * 212 + 384 + 32 + 384 + 520,
        2 * 212 + 384 + 32 + 96 + 520,
    ),
    # gpt-oss: biases 16 and 8, a sink a head; router bias 4; an expert 384 with biases 32 + 8
    (
        "gpt_oss",
        small("gpt_oss", MIXTRAL, sliding_window=64),
        2 * (236 + 36 + 4 * 424) + 520,
        2 * (236 + 36 + 2 * 424) + 520,
    ),
    # latent attention, a dense layer first, then router 32, four experts of 168 and a shared one
    (
        "deepseek_v3",
        small("deepseek_v3", LATENT, num_nextn_predict_layers=1),
        2 * LATENT_LAYER + 384 + 32 + 5 * 168 + 520,
        2 * LATENT_LAYER + 384 + 32 + 3 * 168 + 520,
    ),
    # an indexer of 2 heads of 3: 6*6 + 8*(3 + 2), and a norm with bias
    (
        "deepseek_v32",
        small("deepseek_v32", LATENT, index_topk=16, index_n_heads=2, index_head_dim=3),
        2 * (LATENT_LAYER + 76 + 6) + 384 + 32 + 5 * 168 + 520,
        2 * (LATENT_LAYER + 76 + 6) + 384 + 32 + 3 * 168 + 520,
    ),
    # one layer of the delta rule, one of attention with a gate of 64 and norms of 2
    (
        "qwen3_5_text",
        small("qwen3_5_text", DELTA, full_attention_interval=2),
        DELTA_LAYER + 192 + 64 + 4 + 2 * (384 + 16) + 520,
        DELTA_LAYER + 192 + 64 + 4 + 2 * (384 + 16) + 520,
    ),
    # mamba: inner 16, in 8*32, selection 16*(1 + 4), step 16 (and its bias), A 32, D 16, convolution 64 + 16, out 128; a norm; tied
    (
        "mamba",
        small("mamba", {"state_size": 2, "time_step_rank": 1, "intermediate_size": 16}),
        2 * (256 + 80 + 16 + 16 + 32 + 16 + 80 + 128 + 8) + 256 + 8,
        2 * (256 + 80 + 16 + 16 + 32 + 16 + 80 + 128 + 8) + 256 + 8,
    ),
    # a mixer of 4 heads of 2, one attention: in 8*(8 + 12 + 4), convolution 60, decays 12, norm 8, out 64; each layer a norm
    (
        "nemotron_h",
        small(
            "nemotron_h",
            {"mamba_num_heads": 4, "mamba_head_dim": 2, "ssm_state_size": 2, "n_groups": 1, "hybrid_override_pattern": "M*"},
        ),
        192 + 60 + 12 + 8 + 64 + 192 + 2 * 8 + 520,
        192 + 60 + 12 + 8 + 64 + 192 + 2 * 8 + 520,
    ),
]


@pytest.mark.parametrize(("config", "total", "active"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_parameters_are_those_the_model_class_builds(config: dict[str, object], total: int, active: int) -> None:
    model = from_config(config)
    assert (model.parameters, model.active_parameters) == (total, active)
    assert model.active_parameters_without_tables == active - (0 if model.tied_embeddings else 256)


GPT = [
    # learned positions 128*8; qkv 192 + 24, o 64 + 8, MLP 2*8*32 + 32 + 8, norms 32; tied
    ({"model_type": "gpt2", "n_embd": 8, "n_head": 4, "n_layer": 2, "n_positions": 128, "vocab_size": 32}, 2 * 872 + 1024 + 256 + 16),
    # one KV head of 2: 8*(8 + 4) + 12
    (
        {"model_type": "gpt_bigcode", "n_embd": 8, "n_head": 4, "n_layer": 2, "n_positions": 128, "vocab_size": 32},
        2 * (108 + 72 + 552 + 32) + 1024 + 256 + 16,
    ),
    # no attention biases, one norm, a bias on the output matrix, two tables
    ({"model_type": "gptj", "n_embd": 8, "n_head": 4, "n_layer": 2, "vocab_size": 32}, 2 * (256 + 552 + 16) + 512 + 16 + 32),
    # OPT states two positions less than it has
    (
        {"model_type": "opt", "hidden_size": 8, "num_attention_heads": 4, "num_hidden_layers": 2, "ffn_dim": 32, "vocab_size": 32}
        | {"max_position_embeddings": 126},
        2 * 872 + 1024 + 256 + 16,
    ),
    ({"model_type": "mpt", "d_model": 8, "n_heads": 4, "n_layers": 2, "vocab_size": 32}, 2 * (256 + 512 + 16) + 256 + 8),
    ({"model_type": "bloom", "hidden_size": 8, "n_head": 4, "n_layer": 2, "vocab_size": 32}, 2 * (256 + 512 + 72 + 32) + 256 + 32),
    # one KV head, one norm
    (
        {"model_type": "falcon", "hidden_size": 8, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 32},
        2 * (96 + 64 + 512 + 16) + 256 + 16,
    ),
    # the newer layout: two KV heads, two norms
    (
        {"model_type": "falcon", "hidden_size": 8, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 32}
        | {"new_decoder_architecture": True, "num_kv_heads": 2},
        2 * (128 + 64 + 512 + 32) + 256 + 16,
    ),
    # the MLP is half as wide as intermediate_size says, QKV has biases
    (
        {"model_type": "qwen", "hidden_size": 8, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 32}
        | {"vocab_size": 32, "kv_channels": 2, "no_bias": True},
        2 * (256 + 24 + 384 + 16) + 512 + 8,
    ),
]


@pytest.mark.parametrize(("config", "total"), GPT, ids=[f"{case[0]['model_type']}-{place}" for place, case in enumerate(GPT)])
def test_older_families_by_their_own_keys(config: dict[str, object], total: int) -> None:
    assert from_config(config).parameters == total


def reaches(model: ModelArchitecture) -> dict[Reach | None, int]:
    found: dict[Reach | None, int] = {}
    for group in model.groups:
        found[group.reach] = found.get(group.reach, 0) + group.count
    return found


def test_llama_4_sees_chunks_and_mixes_every_second_layer() -> None:
    inner = small(
        "llama4_text", MIXTRAL, num_hidden_layers=8, interleave_moe_layer_step=2, intermediate_size_mlp=20, attention_chunk_size=64
    )
    model = from_config({"model_type": "llama4", "text_config": inner, "vision_config": {"hidden_size": 4}})
    assert reaches(model) == {Reach("chunk", 64): 6, FULL: 2}
    assert model.expert_layers == 4
    assert {group.mlp.intermediate for group in model.groups if group.mlp} == {20}
    assert any("vision tower" in note for note in model.notes)


def test_gemma_4_differs_between_its_layers() -> None:
    inner = small(
        "gemma4_text",
        num_hidden_layers=6,
        num_kv_shared_layers=2,
        global_head_dim=4,
        sliding_window=64,
        layer_types=["sliding_attention"] * 2 + ["full_attention"] + ["sliding_attention"] * 2 + ["full_attention"],
        hidden_size_per_layer_input=3,
        vocab_size_per_layer_input=32,
        use_double_wide_mlp=True,
    )
    model = from_config({"model_type": "gemma4", "text_config": inner})
    assert model.looked_up_parameters == 32 * 6 * 3
    by_reach = {(group.reach, group.attention.own_cache): group for group in model.groups if group.attention}
    full, reader = by_reach[FULL, True], by_reach[FULL, False]
    assert full.attention is not None
    assert full.attention.head_dim == 4
    # a layer that reads another's cache projects no keys and values, keeps nothing and has a wider MLP
    assert reader.mlp is not None
    assert reader.mlp.intermediate == 32
    assert reader.attention is not None
    assert reader.attention.parameters(8) == 8 * (16 + 16)
    own = [group for group in model.groups if group.attention and group.attention.own_cache]
    assert model.kv_bytes_per_token(2) == sum(group.count * 2 * 2 * (4 if group.reach != FULL else 8) for group in own)


def test_states_and_latent_vectors_are_what_is_kept() -> None:
    deepseek = from_config(small("deepseek_v3", LATENT))
    assert deepseek.kv_bytes_per_token(2) == 2 * 7 * 2
    sparse = from_config(small("deepseek_v32", LATENT, index_topk=16, index_n_heads=2, index_head_dim=3))
    assert sparse.kv_bytes_per_token(2) == 2 * (7 * 2 + 3 + 4)
    hybrid = from_config(small("qwen3_5_text", DELTA, full_attention_interval=2))
    assert hybrid.kv_bytes_per_token(2) == 2 * 2 * 2 * 2
    # 2 heads of 3x4 in fp32, three steps of 14 channels in 16 bit
    assert hybrid.state_bytes == 4 * 24 + 2 * 42
    assert hybrid.kv_cache_bytes(100) == 100 * hybrid.kv_bytes_per_token(2)


REFUSED = [
    (small("mixtral", MIXTRAL, num_experts_per_tok=5), "num_local_experts"),
    (small("mixtral", num_experts_per_tok=2), "num_local_experts"),
    (small("mixtral", MIXTRAL, kv_lora_rank=8), "kv_lora_rank"),
    (small("mixtral", MIXTRAL, mamba_num_heads=4), "mamba_num_heads"),
    (small("qwen3_moe", QWEN_MOE, mlp_only_layers=[7]), "mlp_only_layers"),
    (small("qwen2_moe", QWEN_MOE, use_sliding_window=True), "use_sliding_window"),
    (small("gpt_oss", MIXTRAL, layer_types=["full_attention", "linear_attention"]), "layer_types"),
    (small("deepseek_v3", LATENT, moe_layer_freq=2), "moe_layer_freq"),
    (small("deepseek_v3", LATENT, index_topk=16), "index_topk"),
    (small("deepseek_v32", LATENT, index_topk=16, index_n_heads=2), "index_head_dim"),
    (small("glm4_moe", LATENT, mlp_layer_types=["sparse", "sparse"], kv_lora_rank=None), "mlp_layer_types"),
    (small("minimax_m2", MIXTRAL, attn_type_list=[0, 1]), "attn_type_list"),
    (small("minimax", MIXTRAL), "layer_types"),
    (small("nemotron_h", hybrid_override_pattern="M?"), "hybrid_override_pattern"),
    (small("nemotron_h", hybrid_override_pattern="***"), "hybrid_override_pattern"),
    (small("qwen3_5_text", DELTA, attn_output_gate=False), "attn_output_gate"),
    (small("qwen3_5_text", DELTA, linear_num_value_heads=3, linear_num_key_heads=2), "linear_num_value_heads"),
    (small("mamba2", num_heads=3), "num_heads"),
    (small("mamba", {"expand": "two", "intermediate_size": ...}), "expand"),
    (small("gemma4_text", use_bidirectional_attention="all"), "use_bidirectional_attention"),
    (small("gemma4_text", num_kv_shared_layers=2), "num_kv_shared_layers"),
    (small("hunyuan", num_experts=[4, 4, 4], moe_topk=1), "num_experts"),
    (small("hunyuan", num_experts=4, use_cla=True), "use_cla"),
    (small("opt", ffn_dim=32, word_embed_proj_dim=4), "word_embed_proj_dim"),
    (small("mpt", d_model=8, n_heads=4, n_layers=2, no_bias=False), "no_bias"),
    (small("qwen", intermediate_size=33), "intermediate_size"),
    (small("nemotron-nas", block_configs=[{}]), "block_configs"),
    ({"model_type": "llama4", "text_config": small("llama", {})}, "text_config.model_type"),
    ({"model_type": "qwen3_5", "num_experts": 3, "text_config": small("qwen3_5_text", DELTA)}, "num_experts"),
]


@pytest.mark.parametrize(("config", "field"), REFUSED, ids=[f"{case[1]}-{place}" for place, case in enumerate(REFUSED)])
def test_what_would_be_priced_wrongly_is_refused_by_field(config: dict[str, object], field: str) -> None:
    with pytest.raises(UnsupportedModel) as refusal:
        from_config(config)
    assert refusal.value.field == field
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize("model_type", sorted(READERS))
def test_an_empty_config_of_each_family_names_a_field(model_type: str) -> None:
    with pytest.raises(UnsupportedModel) as refusal:
        from_config({"model_type": model_type})
    assert refusal.value.field
    assert refusal.value.field in str(refusal.value)


WHOLE: list[dict[str, Any]] = [dict(config) for config in (*(case[1] for case in CASES), *(case[0] for case in GPT))]
ODD = [
    None,
    0,
    -1,
    1,
    3,
    7,
    2.5,
    "x",
    "",
    [],
    [1],
    [0, 1],
    {},
    {"a": 1},
    True,
    False,
    10**30,
    "auto",
    [None],
    "M*",
    float("nan"),
    float("inf"),
]


def outcome(config: dict[str, Any]) -> tuple[ModelArchitecture | None, UnsupportedModel | None]:
    try:
        return from_config(config), None
    except UnsupportedModel as refusal:
        return None, refusal


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(WHOLE), st.data())
def test_an_odd_value_is_refused_by_field_or_priced_sanely(config: dict[str, Any], data: st.DataObject) -> None:
    odd = dict(config)
    for key in data.draw(st.lists(st.sampled_from(sorted(config)), min_size=1, max_size=2)):
        odd[key] = data.draw(st.sampled_from(ODD))
    model, refusal = outcome(odd)
    if model is None:
        assert refusal is not None
        assert refusal.field
        assert str(refusal).endswith(".")
        return
    assert 0 < model.active_parameters <= model.parameters
    for one in operators(model, pass_numbers(3.0, 5.0), ElementBytes()):
        assert float(one.flops) >= 0
        assert float(one.bytes) >= 0


def test_nested_parts_are_read_by_known_readers() -> None:
    assert {inner for kinds in NESTED.values() for inner in kinds} <= set(MODEL_TYPES)


def readme_rows(folder: Path) -> Iterator[tuple[str, tuple[int, int, int] | None]]:
    """(file, total of the text part, active, active without the input table) of each row of the folder's table."""
    for line in (folder / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().replace(",", "") for cell in line.split("|")]
        if len(cells) > 6 and cells[1].endswith(".json"):
            yield cells[1], (int(cells[2]) - int(cells[3]), int(cells[4]), int(cells[5])) if cells[2].isdigit() else None


@pytest.mark.shared
def test_every_real_config_is_counted_or_refused_by_field(shared_dir: Path) -> None:
    folder = shared_dir / "model_configs"
    counted = 0
    for name, expected in readme_rows(folder):
        config = json.loads((folder / name).read_text(encoding="utf-8"))
        if expected is None:
            with pytest.raises(UnsupportedModel) as refusal:
                from_config(config, name)
            assert refusal.value.field in config, name
            continue
        model = from_config(config, name)
        assert (model.parameters, model.active_parameters, model.active_parameters_without_tables) == expected, name
        counted += 1
    assert counted == len(list(folder.glob("*.json"))) - 1
