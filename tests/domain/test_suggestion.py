"""What words hint at: one meaning gives a value, few give candidates, many or none give nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.identity import IDENTITY, Word
from app.domain.suggestion import Lexicon, Source, Suggestion, lexicon, suggestions

DEVICES = {
    "h200": "h200-sxm", "h200-sxm": "h200-sxm", "h200-nvl": "h200-nvl", "h100-sxm5-80gb": "h100-sxm", "h100-80gb-hbm3": "h100-sxm",
    "h100-pcie-80gb": "h100-pcie", "h100-nvl-94gb": "h100-nvl", "geforce-rtx-4090": "rtx-4090", "rtx-4090": "rtx-4090", "l4": "l4",
    "instinct-mi300x-192gb": "mi300x", "tpu-v4": "tpu-v4", "textbook-h100": "textbook-h100", "rtx-a6000": "rtx-a6000",
    **{f"m1-{kind}": f"m1-{kind}" for kind in ("base", "pro", "max", "ultra", "air", "mini", "studio")},
}  # fmt: skip
MODELS = {"llama-3-3-70b": "llama-70b", "llama-3-1-8b": "llama-8b", "qwen2-5-7b": "qwen-7b", "opt-1-3b": "opt-1-3b", "opt-13b": "opt-13b"}
ENGINES = {"vllm": "vllm", "llamacpp": "llama-cpp", "trtllm": "tensorrt-llm"}


def names() -> Lexicon:
    return lexicon(DEVICES, MODELS, ENGINES)


def hints(*texts: str) -> dict[str, Suggestion]:
    sources = [Source(f"place {number}", text) for number, text in enumerate(texts)]
    return {found.key: found for found in suggestions(sources, names(), IDENTITY)}


def values(*texts: str) -> dict[str, Word | None]:
    return {key: found.value for key, found in hints(*texts).items()}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("h200_llama33_70b_tp4_fp8", {"model": "llama-70b", "hardware": "h200-sxm", "tp": 4, "weight_dtype": "fp8"}),
        ("8xH200-NVL tp8pp2", {"hardware": "h200-nvl", "devices": 8, "tp": 8, "pp": 2}),
        ("h100-sxm5-x8", {"hardware": "h100-sxm"}),
        ("l4x2 Llama-3.1-8B-Instruct", {"model": "llama-8b", "hardware": "l4", "devices": 2}),
        ("NVIDIA H100 80GB HBM3", {"hardware": "h100-sxm"}),
        ("80gb pcie h100", {"hardware": "h100-pcie"}),
        ("rtx4090", {"hardware": "rtx-4090"}),
        ("NVIDIA GeForce RTX 4090, compute capability 8.9", {"hardware": "rtx-4090"}),
        ("a6000", {"hardware": "rtx-a6000"}),
        ("mi300x_4gpus", {"hardware": "mi300x", "devices": 4}),
        ("num_gpus=2 tensor_parallel_size=2 data-parallel 4 ep_size: 8", {"devices": 2, "tp": 2, "dp": 4, "ep": 8}),
        ("trt-llm Qwen2.5-7B awq", {"model": "qwen-7b", "engine": "tensorrt-llm", "weight_dtype": "awq"}),
        ("llama.cpp Q4_K_M", {"engine": "llama-cpp", "weight_dtype": "q4_k_m"}),
        ("bf16 kv-cache-dtype fp8_e4m3", {"weight_dtype": "bf16", "kv_dtype": "fp8"}),
        ("kvfp8 w8a8", {"weight_dtype": "int8_w8a8", "kv_dtype": "fp8"}),
        ("awq fp8-kv", {"weight_dtype": "awq", "kv_dtype": "fp8"}),
    ],
)
def test_one_meaning_is_a_value(text: str, found: dict[str, Word]) -> None:
    assert values(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "", "run_final_v4_b32", "pp512 tg128", "http2 step4 pp 128", "textbook 8b", "4090", "80gb", "the max of float and half",
        "m1_results", "x8", "3x faster", "gpu0", "version 1.8b", "llama-70b", "tp0", "dp 99999", "qwen",
    ],
)  # fmt: skip
def test_words_that_mean_nothing_or_too_much_are_no_hint(text: str) -> None:
    assert values(text) == {}


@pytest.mark.parametrize(
    ("text", "key", "candidates"),
    [
        ("h100_run", "hardware", ("h100-nvl", "h100-pcie", "h100-sxm")),
        ("opt13b", "model", ("opt-1-3b", "opt-13b")),
        ("tp2 tp4", "tp", (2, 4)),
        ("fp8 bf16", "weight_dtype", ("bf16", "fp8")),
        ("h200 or l4", "hardware", ("h200-sxm", "l4")),
    ],
)
def test_words_with_a_few_meanings_give_candidates_and_no_value(text: str, key: str, candidates: tuple[Word, ...]) -> None:
    found = hints(text)[key]
    assert (found.value, found.candidates) == (None, candidates)


def test_places_that_agree_narrow_each_other() -> None:
    found = hints("h100_run", "gpu H100 PCIe")["hardware"]
    assert found.value == "h100-pcie"
    assert found.evidence == ("from place 0: h100", "from place 1: h100 pcie")


def test_places_that_contradict_each_other_are_all_shown() -> None:
    found = hints("h200", "gpu L4")["hardware"]
    assert (found.value, found.candidates) == (None, ("h200-sxm", "l4"))


def test_only_what_is_asked_for_is_answered() -> None:
    (found,) = suggestions([Source("the file name", "h200_tp4")], names(), ("tp", "label"))
    assert found == Suggestion("tp", 4, (4,), ("from the file name: tp4",))


def test_more_candidates_than_one_would_read_are_none() -> None:
    assert "hardware" not in hints("tp2 h200 l4 rtx4090 mi300x a6000 h100")
    assert hints("tp2 h200 l4 rtx4090 mi300x a6000")["hardware"].value is None


@given(st.lists(st.text(max_size=60), max_size=4))
def test_any_text_is_answered_and_a_value_is_its_only_candidate(texts: list[str]) -> None:
    for found in hints(*texts).values():
        assert found.candidates
        assert found.value == (found.candidates[0] if len(found.candidates) == 1 else None)
        assert found.evidence
