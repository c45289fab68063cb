"""Cache sizes by hand, and configs that say no more than their attention."""

import pytest

from app.domain.cache_size import cache_size
from app.domain.configs.cache import cache_layers
from app.domain.errors import UnsupportedModel
from tests.domain.subjects import LLAMA_8B, SPARSE_LATENT, WINDOWED

GROUPED = {"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 16}
LATENT = {
    "num_hidden_layers": 3, "num_attention_heads": 4, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 12,
}  # fmt: skip


def test_grouped_attention_by_hand() -> None:
    # 4 layers of 2 * 2 * 16 elements, two bytes each
    found = cache_size(cache_layers(GROUPED).groups, 100, 2)
    assert (found.layers, found.bytes_per_token, found.total_bytes) == (4, 512, 51_200)
    assert (found.unwindowed_factor, found.expanded_bytes_per_token, found.expanded_factor, found.flags) == (1.0, None, None, ())


def test_windows_keep_at_most_their_window() -> None:
    kinds = ["full_attention"] + ["sliding_attention"] * 3
    for config in (GROUPED | {"sliding_window": 10, "layer_types": kinds}, GROUPED | {"sliding_window": 10, "sliding_window_pattern": 4}):
        found = cache_size(cache_layers(config).groups, 100, 2)
        assert found.total_bytes == 128 * (100 + 3 * 10)
        assert found.unwindowed_factor == pytest.approx(400 / 130)
    assert cache_size(cache_layers(GROUPED | {"sliding_window": 10, "use_sliding_window": False}).groups, 100, 2).unwindowed_factor == 1


def test_latent_attention_by_hand() -> None:
    # 3 layers of 32 + 8 elements; expanded 4 heads of 16 + 8 + 12
    found = cache_size(cache_layers(LATENT).groups, 10, 2)
    assert (found.bytes_per_token, found.expanded_bytes_per_token) == (240, 864)
    assert found.expanded_factor == pytest.approx(3.6)


@pytest.mark.parametrize("model", [LLAMA_8B, WINDOWED, SPARSE_LATENT], ids=lambda model: model.name)
def test_sizes_are_those_of_the_architecture(model: object) -> None:
    found = cache_size(model.groups, 5000, 1)  # type: ignore[attr-defined]
    assert found.bytes_per_token == model.kv_bytes_per_token(1)  # type: ignore[attr-defined]
    assert found.total_bytes == model.kv_cache_bytes(5000, 1)  # type: ignore[attr-defined]


def test_a_size_round_in_gib_alone_is_pointed_out() -> None:
    groups = cache_layers({"num_hidden_layers": 32, "num_key_value_heads": 8, "head_dim": 128}).groups
    (flag,) = cache_size(groups, 2048, 2).flags  # 131,072 bytes a token: a quarter of a GiB
    assert (flag.flag, flag.figures["gib"]) == ("unit_mismatch", 0.25)
    assert flag.figures["gb"] == pytest.approx(0.268435456)
    assert cache_size(groups, 2000, 2).flags == ()


def test_the_language_model_wins_and_what_is_left_out_is_said() -> None:
    beside = {"num_hidden_layers": 9, "hidden_size": 64, "vision_config": {"num_hidden_layers": 2}}
    for key in ("text_config", "language_config", "llm_config"):
        found = cache_layers(beside | {key: GROUPED})
        assert cache_size(found.groups, 1, 2).layers == 4
        assert f"Read from {key}; num_hidden_layers, hidden_size, vision_config beside it are left out." in found.notes


def test_a_priced_model_type_is_read_by_its_class() -> None:
    with pytest.raises(UnsupportedModel, match="not priced yet"):
        cache_layers(GROUPED | {"model_type": "brand_new"})
    with pytest.raises(UnsupportedModel, match="hidden_size is missing"):
        cache_layers(GROUPED | {"model_type": "llama"})


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({}, "num_hidden_layers"),
        ({"num_hidden_layers": 4, "head_dim": 8}, "num_attention_heads"),
        ({"num_hidden_layers": 4, "num_attention_heads": 8}, "hidden_size"),
        (GROUPED | {"sliding_window": 10}, "sliding_window"),
        (GROUPED | {"layer_types": ["sliding_attention"] * 4}, "sliding_window"),
        (GROUPED | {"layer_types": ["linear_attention"] * 4}, "layer_types"),
        (GROUPED | {"mamba_d_state": 16}, "mamba_d_state"),
        ({"text_config": GROUPED | {"num_kv_shared_layers": 2}}, "text_config.num_kv_shared_layers"),
        (GROUPED | {"head_dim": "wide"}, "head_dim"),
        ({key: value for key, value in LATENT.items() if key != "v_head_dim"}, "v_head_dim"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_key(config: dict[str, object], field: str) -> None:
    with pytest.raises(UnsupportedModel) as caught:
        cache_layers(config)
    assert caught.value.field == field


def test_experts_do_not_change_a_cache() -> None:
    plain, mixed = (cache_layers(config).groups for config in (GROUPED, GROUPED | {"num_local_experts": 8, "num_experts_per_tok": 2}))
    assert plain == mixed
