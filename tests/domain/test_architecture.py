"""Counting parameters from a config.json: exact for what is priced, a refusal by key for everything else."""

import json
import re
from pathlib import Path

import pytest

from app.domain.configs import from_config
from app.domain.errors import UnsupportedModel
from app.domain.layers import FULL, Reach
from tests.domain.subjects import LLAMA_8B, TEXTBOOK_8B, TINY, WINDOWED


def small(model_type: str = "llama", **changes: object) -> dict[str, object]:
    """A config of two layers, hidden 8, 4 heads of 2, 2 KV heads, intermediate 16, vocabulary 32."""
    config: dict[str, object] = {
        "model_type": model_type,
        "num_hidden_layers": 2,
        "hidden_size": 8,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 16,
        "vocab_size": 32,
        "max_position_embeddings": 128,
        "head_dim": 2,
    }
    config.update(changes)
    return {key: value for key, value in config.items() if value is not ...}


# One layer of `small`: q 8*8 + k,v 2*8*4 + o 8*8 = 192; gated MLP 3*8*16 = 384, plain 2*8*16 = 256. A table is 32*8 = 256.
COUNTS = [
    # llama: 2*(192 + 384 + two norms of 8) + two tables + a final norm of 8
    ("llama", {}, 2 * (576 + 16) + 512 + 8),
    ("llama", {"tie_word_embeddings": True}, 2 * (576 + 16) + 256 + 8),
    # attention_bias: q 8, k 4, v 4, o 8 = 24; mlp_bias: gate 16, up 16, down 8 = 40
    ("llama", {"attention_bias": True}, 2 * (576 + 16 + 24) + 512 + 8),
    ("llama", {"mlp_bias": True}, 2 * (576 + 16 + 40) + 512 + 8),
    # no num_key_value_heads means as many as heads: k and v 2*8*8 = 128 instead of 64
    ("llama", {"num_key_value_heads": ...}, 2 * (576 + 64 + 16) + 512 + 8),
    # MQA: k and v 2*8*2 = 32 instead of 64
    ("llama", {"num_key_value_heads": 1}, 2 * (576 - 32 + 16) + 512 + 8),
    # explicit head_dim 4: q and o 8*16, k and v 8*8: 384 instead of 192
    ("llama", {"head_dim": 4}, 2 * (576 + 192 + 16) + 512 + 8),
    ("mistral", {}, 2 * (576 + 16) + 512 + 8),
    # qwen2: q, k, v biases always, none on o: 8 + 4 + 4 = 16
    ("qwen2", {}, 2 * (576 + 16 + 16) + 512 + 8),
    # qwen3: norms of head_dim on q and k: 4
    ("qwen3", {}, 2 * (576 + 16 + 4) + 512 + 8),
    ("gemma", {}, 2 * (576 + 16) + 256 + 8),
    # gemma2: four norms
    ("gemma2", {}, 2 * (576 + 32) + 256 + 8),
    ("gemma3_text", {}, 2 * (576 + 32 + 4) + 256 + 8),
    ("phi3", {}, 2 * (576 + 16) + 512 + 8),
    # olmo2: q norm over all heads 8, k norm over all KV heads 4
    ("olmo2", {}, 2 * (576 + 16 + 12) + 512 + 8),
    # cohere: one norm; use_qk_norm adds a vector per head
    ("cohere", {}, 2 * (576 + 8) + 256 + 8),
    ("cohere", {"use_qk_norm": True}, 2 * (576 + 8 + 12) + 256 + 8),
    # starcoder2: plain MLP, norms with bias (16 each), biases q 8 k 4 v 4 o 8 up 16 down 8 = 48
    ("starcoder2", {}, 2 * (448 + 32 + 48) + 256 + 16),
    ("starcoder2", {"use_bias": False}, 2 * (448 + 32) + 256 + 16),
    # stablelm: norms with bias; parallel residual drops one; qk_layernorm 12; use_qkv_bias 16
    ("stablelm", {}, 2 * (576 + 32) + 512 + 16),
    ("stablelm", {"use_parallel_residual": True, "qk_layernorm": True, "use_qkv_bias": True}, 2 * (576 + 16 + 12 + 16) + 512 + 16),
]


@pytest.mark.parametrize(("model_type", "changes", "expected"), COUNTS)
def test_parameters_are_those_the_model_class_builds(model_type: str, changes: dict[str, object], expected: int) -> None:
    assert from_config(small(model_type, **changes)).parameters == expected


def test_hand_counted_subjects() -> None:
    assert TINY.parameters == 1704  # 2*592 + 512 + 8
    assert TINY.embedding_parameters == 256
    assert TINY.decode_weight_parameters == 1704 - 256
    assert from_config(small(), "tiny") == from_config(small(), "tiny")
    assert LLAMA_8B.parameters == 8_030_261_248
    assert LLAMA_8B.decode_weight_parameters == 7_504_924_672
    assert WINDOWED.decode_weight_parameters == WINDOWED.parameters  # tied: the table is read at the logits


def test_a_declared_count_stands_for_every_use() -> None:
    assert TEXTBOOK_8B.parameters == TEXTBOOK_8B.decode_weight_parameters == 8_000_000_000
    assert TEXTBOOK_8B.shape_parameters == 8_030_261_248


def test_kv_bytes() -> None:
    # 2 * 32 layers * 8 heads * 128 * 2 bytes
    assert LLAMA_8B.kv_bytes_per_token(2) == 131072
    assert LLAMA_8B.kv_cache_bytes(1024) == 134_217_728
    # head_dim given: 2*36*8*128*2, not hidden/heads = 80
    qwen3_4b = from_config(
        small("qwen3", num_hidden_layers=36, hidden_size=2560, num_attention_heads=32, num_key_value_heads=8, head_dim=128)
    )
    assert qwen3_4b.kv_bytes_per_token(2) == 147456


def test_a_window_bounds_the_cache_of_its_layers_only() -> None:
    # 62 layers, 10 of them full, 16 KV heads of 128: 8192 bytes a layer and position; 8192*(10*32768 + 52*1024)
    gemma = from_config(
        small("gemma3_text", num_hidden_layers=62, num_attention_heads=32, num_key_value_heads=16, head_dim=128, sliding_window=1024)
    )
    assert (gemma.layers_that_see("full"), gemma.layers_that_see("window")) == (10, 52)
    assert gemma.kv_cache_bytes(32768) == 3_120_562_176
    assert gemma.kv_cache_bytes(1000) == 62 * 8192 * 1000


WINDOWS = [
    ("llama", {}, None, 0),
    ("mistral", {"sliding_window": 64}, 64, 2),
    ("mistral", {"sliding_window": None}, None, 0),
    ("mistral", {}, 4096, 2),  # absent: the class default, and a note says so
    ("phi3", {}, None, 0),
    ("phi3", {"sliding_window": 64}, 64, 2),
    ("starcoder2", {"sliding_window": 64}, 64, 2),
    ("gemma2", {"num_hidden_layers": 5, "sliding_window": 64}, 64, 3),  # layers 0, 2, 4
    ("gemma3_text", {"num_hidden_layers": 26, "sliding_window": 64}, 64, 22),  # all but 5, 11, 17, 23
    ("gemma3_text", {"num_hidden_layers": 6, "sliding_window": 64, "sliding_window_pattern": 2}, 64, 3),
    ("qwen2", {"sliding_window": 64}, None, 0),  # only with use_sliding_window
    ("qwen2", {"num_hidden_layers": 30, "sliding_window": 64, "use_sliding_window": True}, 64, 2),  # layers 28 and 29
    ("qwen2", {"sliding_window": 64, "use_sliding_window": True, "max_window_layers": 0}, 64, 2),
    ("qwen3", {"sliding_window": 64, "use_sliding_window": True, "layer_types": ["full_attention", "sliding_attention"]}, 64, 1),
    ("llama", {"sliding_window": 4096}, None, 0),  # beyond max_position_embeddings (128): without effect
]


@pytest.mark.parametrize(("model_type", "changes", "window", "layers"), WINDOWS)
def test_which_layers_slide(model_type: str, changes: dict[str, object], window: int | None, layers: int) -> None:
    model = from_config(small(model_type, **changes))
    reaches = [(group.count, group.reach) for group in model.groups if group.reach != FULL]
    assert reaches == ([(layers, Reach("window", window))] if layers else [])


def test_a_default_of_the_class_is_noted() -> None:
    assert any("sliding_window is not in the config" in note for note in from_config(small("mistral")).notes)
    assert any("head_dim is not in the config: 128" in note for note in from_config(small("qwen3", head_dim=...)).notes)


def test_a_nested_text_config_is_saved_as_a_difference() -> None:
    inner = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34, "sliding_window": 1024}
    model = from_config({"model_type": "gemma3", "text_config": inner, "vision_config": {"hidden_size": 1152}}, "a-4b")
    attention = model.groups[0].attention
    assert attention is not None
    assert (attention.heads, attention.kv_heads, attention.head_dim, model.vocab) == (8, 4, 256, 262208)
    assert (model.name, model.model_type, model.max_positions) == ("a-4b", "gemma3", 131072)
    # layer: q 2560*2048, k,v 2*2560*1024, o 2048*2560, MLP 3*2560*10240, four norms, two of 256; tied table, final norm
    layer = 2 * 2560 * 2048 + 2 * 2560 * 1024 + 3 * 2560 * 10240 + 4 * 2560 + 512
    assert model.parameters == 34 * layer + 262208 * 2560 + 2560
    assert "Text part only: the vision tower of the config is left out." in model.notes


def test_native_dtype_and_quantised_checkpoints() -> None:
    assert from_config(small(torch_dtype="float16")).native_dtype == "fp16"
    assert from_config(small(dtype="float32")).native_dtype == "fp32"
    odd = from_config(small(torch_dtype="posit8"))
    assert odd.native_dtype == "bf16"
    assert any("posit8" in note for note in odd.notes)
    quantised = from_config(small(quantization_config={"quant_method": "fp8"}))
    assert quantised.parameters == 1704
    assert any("quantised ('fp8')" in note for note in quantised.notes)
    methods = {
        "fp8": {"quant_method": "fp8"},
        "fp8_block": {"quant_method": "fp8", "weight_block_size": [128, 128]},
        "mxfp4": {"quant_method": "mxfp4"},
        "nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4"},
        "awq": {"quant_method": "awq", "bits": 4},
        "fp16": {"quant_method": "gptq", "bits": 3},  # not known well enough: what torch_dtype says
    }
    for wanted, method in methods.items():
        assert from_config(small(torch_dtype="float16", quantization_config=method)).native_dtype == wanted


REFUSED = [
    ({"model_type": "mystery"}, "model_type"),
    ({"model_type": ...}, "model_type"),
    ({"model_type": 7}, "model_type"),
    ({"num_local_experts": 8}, "num_local_experts"),
    ({"num_experts": 8}, "num_experts"),
    ({"n_routed_experts": 64}, "n_routed_experts"),
    ({"moe_intermediate_size": 64}, "moe_intermediate_size"),
    ({"kv_lora_rank": 512}, "kv_lora_rank"),
    ({"block_configs": [{}]}, "block_configs"),
    ({"layer_types": ["full_attention", "linear_attention"]}, "layer_types"),
    ({"layer_types": ["full_attention"]}, "layer_types"),
    ({"layer_types": "full_attention"}, "layer_types"),
    ({"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 64}, "sliding_window"),
    ({"model_type": "mistral", "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 64}, "layer_types"),
    ({"model_type": "qwen2", "layer_types": ["sliding_attention", "full_attention"]}, "layer_types"),
    ({"ssm_state_size": 128}, "ssm_state_size"),
    ({"mamba_num_heads": 8}, "mamba_num_heads"),
    ({"linear_num_value_heads": 8}, "linear_num_value_heads"),
    ({"linear_attn_config": {"a": 1}}, "linear_attn_config"),
    ({"hybrid_override_pattern": "M-M*"}, "hybrid_override_pattern"),
    ({"num_kv_shared_layers": 2}, "num_kv_shared_layers"),
    ({"num_attention_heads_per_layer": [4, 2]}, "num_attention_heads_per_layer"),
    ({"num_nextn_predict_layers": 1}, "num_nextn_predict_layers"),
    ({"architectures": ["DeciLMForCausalLM"]}, "architectures"),
    ({"text_config": {"hidden_size": 8}}, "text_config"),
    ({"sliding_window": 64}, "sliding_window"),
    ({"hidden_size": ...}, "hidden_size"),
    ({"hidden_size": None}, "hidden_size"),
    ({"hidden_size": "4096"}, "hidden_size"),
    ({"hidden_size": 8.0}, "hidden_size"),
    ({"hidden_size": True}, "hidden_size"),
    ({"hidden_size": -8}, "hidden_size"),
    ({"hidden_size": 0}, "hidden_size"),
    ({"hidden_size": 1e30}, "hidden_size"),
    ({"hidden_size": 10**30}, "hidden_size"),
    ({"intermediate_size": [16, 32]}, "intermediate_size"),
    ({"intermediate_size": ...}, "intermediate_size"),
    ({"num_hidden_layers": ...}, "num_hidden_layers"),
    ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
    ({"num_attention_heads": ...}, "num_attention_heads"),
    ({"num_key_value_heads": 3}, "num_key_value_heads"),
    ({"num_key_value_heads": 8}, "num_key_value_heads"),
    ({"vocab_size": ...}, "vocab_size"),
    ({"hidden_size": 10, "head_dim": ...}, "hidden_size"),
    ({"tie_word_embeddings": "yes"}, "tie_word_embeddings"),
    ({"lm_head_bias": True}, "lm_head_bias"),
    ({"model_type": "mistral", "attention_bias": True}, "attention_bias"),
    ({"model_type": "starcoder2", "mlp_type": "gated"}, "mlp_type"),
    ({"model_type": "starcoder2", "norm_type": "rms_norm"}, "norm_type"),
    ({"model_type": "stablelm", "head_dim": 3}, "head_dim"),
    ({"model_type": "gemma", "use_bidirectional_attention": True}, "use_bidirectional_attention"),
    ({"model_type": "gemma3"}, "text_config"),
    ({"model_type": "gemma3", "text_config": {"model_type": "llama"}}, "text_config.model_type"),
    ({"model_type": "gemma3", "text_config": {}}, "text_config.hidden_size"),
    ({"model_type": "gemma3", "text_config": {"num_experts": 4}}, "text_config.num_experts"),
]


@pytest.mark.parametrize(("changes", "field"), REFUSED)
def test_what_is_not_priced_is_refused_by_the_name_of_its_field(changes: dict[str, object], field: str) -> None:
    with pytest.raises(UnsupportedModel, match=re.escape(field)) as refusal:
        from_config(small(**changes))  # type: ignore[arg-type]
    assert refusal.value.field == field
    assert str(refusal.value).endswith(".")


def test_a_list_instead_of_an_object_is_refused() -> None:
    with pytest.raises(UnsupportedModel, match=r"config\.json is not a JSON object"):
        from_config([])  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["num_experts", "num_local_experts", "num_kv_shared_layers", "num_nextn_predict_layers"])
def test_a_key_that_says_none_of_them_is_no_reason_to_refuse(key: str) -> None:
    assert from_config(small(**{key: 0})).parameters == from_config(small(**{key: None})).parameters == 1704


@pytest.mark.shared
def test_no_foreign_model_passes_as_llama(shared_dir: Path) -> None:
    """Renaming the model_type does not make a mixture, a hybrid or a per-block model a dense one."""
    foreign = ("moe", "mixtral", "deepseek", "kimi", "nemotron", "qwen3_5", "qwen3_next", "jamba", "mamba", "llama4", "gpt_oss", "glm_moe")
    tried = 0
    for path in sorted((shared_dir / "model_configs").glob("*.json")):
        config = json.loads(path.read_text())
        if not any(word in config["model_type"] for word in foreign):
            continue
        tried += 1
        disguised = {**(config.get("text_config") or config), "model_type": "llama", "architectures": ["LlamaForCausalLM"]}
        with pytest.raises(UnsupportedModel):
            from_config(disguised)
    assert tried > 30
