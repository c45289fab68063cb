"""Which spellings find which entry, and which find nothing."""

import string
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog import Kind, load, normalise_device_name, normalise_engine_name, normalise_model_name
from app.catalog.names import LONGEST_NAME, MODEL_SUFFIXES
from app.domain.layers import FULL, Reach

DEVICE_SPELLINGS = {
    "NVIDIA H100 80GB HBM3": "h100-sxm5-80gb",
    "nvidia h100 sxm5 80gb": "h100-sxm5-80gb",
    "NVIDIA H100 PCIe": "h100-pcie-80gb",
    "NVIDIA H100 NVL": "h100-nvl-94gb",
    "NVIDIA A100-SXM4-80GB": "a100-sxm4-80gb",
    "NVIDIA A100-SXM4-40GB": "a100-sxm4-40gb",
    "NVIDIA A100 80GB PCIe": "a100-pcie-80gb",
    "NVIDIA H200": "h200-sxm-141gb",
    "h200": "h200-sxm-141gb",
    "NVIDIA B200": "b200-sxm-180gb",
    "NVIDIA_B300_SXM6_AC": "b300-sxm-288gb",
    "NVIDIA GB200": "gb200-192gb",
    "NVIDIA GH200 480GB": "gh200-96gb",
    "Tesla V100-SXM2-32GB": "v100-sxm2-32gb",
    "Tesla T4": "t4",
    "NVIDIA GeForce RTX 3090 Ti": "geforce-rtx-3090-ti",
    "RTX 4090": "geforce-rtx-4090",
    "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada",
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000-blackwell-server",
    "AMD Instinct MI300X": "instinct-mi300x-192gb",
    "AMD_Instinct_MI325_OAM": "instinct-mi325x-256gb",
    "mi355x": "instinct-mi355x-288gb",
    "AMD Radeon RX 7900 XTX": "radeon-rx-7900-xtx",
    "AMD Radeon RX 7900 XTX (RADV NAVI31)": "radeon-rx-7900-xtx",
    "Radeon 8060S Graphics": "radeon-8060s-strix-halo-ryzen-ai-max-395",
    "Radeon 8060S Graphics (RADV STRIX_HALO)": "radeon-8060s-strix-halo-ryzen-ai-max-395",
    "Intel(R) Arc(TM) B580 Graphics": "arc-b580-12gb",
    "Intel(R) Arc(tm) Pro B60 Graphics (BMG G21) (Intel open-source Mesa driver)": "arc-pro-b60-24gb",
    "AMD Ryzen 9 7950X 16-Core Processor": "cpu-ryzen-9-7950x",
    "CPU: Intel Xeon Platinum 8480+ (1 socket)": "cpu-xeon-platinum-8480-1-socket",
    "Apple M2 Max (38-core GPU)": "m2-max-38-core-gpu",
    "textbook-h100": "textbook-h100",
}
# Several devices at once, or a name that more than one device answers to, or a device that is not listed.
NO_DEVICE = (
    "AMD Radeon RX 7900 XTX, AMD Ryzen 9 7950X 16-Core Processor (RADV RAPHAEL_MENDOCINO)",
    "NVIDIA GeForce RTX 3090, NVIDIA GeForce RTX 3090",
    "NVIDIA H100",
    "NVIDIA A100",
    "NVIDIA GeForce RTX 3060",
    "NVIDIA GeForce RTX 4090 Laptop GPU",
    "NVIDIA GeForce RTX 4090 D",
    "NVIDIA H20-3e",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
    "AMD Instinct MI250X",
    "AMD Radeon Graphics",
    "Apple M1 Max",
    "Intel(R) Arc(TM) Graphics",
    "NVIDIA",
    "GPU",
    "",
    " - ",
)
MODEL_SPELLINGS = {
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-r1",
    "Qwen/Qwen3-235B-A22B-FP8": "qwen3-235b-a22b",
    "gpt-oss-120b": "gpt-oss-120b",
    "mistralai/Mixtral-8x7B-Instruct-v0.1": "mixtral-8x7b-v0-1",
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3-1-8b",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "llama-3-1-8b",
    "META-LLAMA/meta-llama-3.1-8b": "llama-3-1-8b",
    "meta-llama/Meta-Llama-3-8B": "llama-3-1-8b",
    "meta-llama/Llama-3.3-70B-Instruct": "llama-3-1-70b",
    "/models/Llama-3.1-8B-Instruct/": "llama-3-1-8b",
    "Llama-3.2-1B-Instruct-Q4_K_M.gguf": "llama-3-2-1b-instruct",
    r"C:\models\Qwen3-8B-UD-Q4_K_XL-00001-of-00002.gguf": "qwen3-8b",
    "meta-llama/Llama-2-7b-chat-hf": "llama-2-7b-hf",
    "lmsys/vicuna-7b-v1.5": "llama-2-7b-hf",
    "google/gemma-2b": "gemma-2b-it",
    "google/gemma-2-2b-it": "gemma-2-2b-it",
    "Qwen/Qwen2.5-7B": "qwen2-5-7b-instruct",
    "nvidia/Qwen3-32B-NVFP4": "qwen3-32b",
    "deepseek-ai/DeepSeek-R1-Distill-Qwen-14B": "qwen2-5-14b",
    "mistralai/Mistral-7B-Instruct-v0.1": "mistral-7b-v0-1",
    "mistralai/Mistral-7B-Instruct-v0.2": "mistral-7b-instruct-v0-2",
    "microsoft/phi-4": "phi-4",
}
# Mixtures of experts, other families, other sizes: near in letters, far in shapes.
NO_MODEL = (
    "Qwen/Qwen3-30B-A3B-Thinking-Mini",
    "deepseek-ai/DeepSeek-R1-Distill-Unknown-3B",
    "Qwen/Qwen2.5-VL-7B-Instruct",
    "Qwen/Qwen2.5-1.5B-Instruct",
    "meta-llama/Llama-3.1-8B-Instruct-edit",
    "google/gemma-3-4b-it",
    "/models/ggml-model-q4_0.gguf",
    "llama 7B mostly Q4_0",
    "Instruct",
    "-it",
    "/",
    "",
)
ENGINE_SPELLINGS = {
    "vllm": "vllm",
    "vLLM": "vllm",
    "SGLang": "sglang",
    "llama.cpp": "llama-cpp",
    "llama-cpp": "llama-cpp",
    "TensorRT-LLM": "tensorrt-llm",
    "trtllm": "tensorrt-llm",
    "gpt-fast (PyTorch)": "gpt-fast",
    "transformers (optimum-benchmark)": "transformers",
    "ExLlamaV2": "exllamav2",
    "MLC-LLM": "mlc-llm",
}
NO_ENGINE = ("vLLM TPU", "vLLM Gaudi", "LMDeploy TurboMind", "MLPerf: vLLM 0.9.0", "CTranslate2", "openai", "", "…")


@pytest.mark.parametrize(("words", "slug"), DEVICE_SPELLINGS.items())
def test_a_device_is_found_by_what_engines_print(words: str, slug: str) -> None:
    found = load().find_hardware(words)
    assert found is not None
    assert found.slug == slug


@pytest.mark.parametrize("words", NO_DEVICE)
def test_a_device_that_is_not_meant_surely_is_not_found(words: str) -> None:
    assert load().find_hardware(words) is None


@pytest.mark.parametrize(("words", "slug"), MODEL_SPELLINGS.items())
def test_a_model_is_found_by_other_spellings(words: str, slug: str) -> None:
    found = load().find_model(words)
    assert found is not None
    assert found.slug == slug


@pytest.mark.parametrize("words", NO_MODEL)
def test_a_model_of_other_shapes_is_not_found(words: str) -> None:
    assert load().find_model(words) is None


def test_versions_that_differ_by_their_window_are_kept_apart() -> None:
    first, second = (load().find_model(f"mistralai/Mistral-7B-Instruct-v0.{n}") for n in (1, 2))
    assert first is not None
    assert second is not None
    assert [(group.count, group.reach) for group in first.architecture.groups] == [(32, Reach("window", 4096))]
    assert [(group.count, group.reach) for group in second.architecture.groups] == [(32, FULL)]


@pytest.mark.parametrize(("words", "slug"), ENGINE_SPELLINGS.items())
def test_an_engine_is_found_by_what_files_say(words: str, slug: str) -> None:
    found = load().find_engine(words)
    assert found is not None
    assert found.slug == slug


@pytest.mark.parametrize("words", NO_ENGINE)
def test_another_engine_borrows_no_profile(words: str) -> None:
    assert load().find_engine(words) is None


def test_every_spelling_of_every_entry_finds_it() -> None:
    catalog = load()
    for profile in catalog.hardware.values():
        for words in (profile.slug, profile.name, *profile.aliases):
            assert catalog.find_hardware(words) is profile
    for entry in catalog.models.values():
        for words in (entry.slug, entry.name, *entry.aliases):
            assert catalog.find_model(words) is entry
    for engine in catalog.engines.values():
        for words in (engine.slug, engine.name, *engine.aliases):
            assert catalog.find_engine(words) is engine


@given(
    slug=st.sampled_from(sorted(load().models)),
    owner=st.text(string.ascii_letters + string.digits + "-_.", max_size=12),
    suffixes=st.lists(st.sampled_from(MODEL_SUFFIXES), max_size=4),
    upper=st.booleans(),
)
def test_case_owner_and_suffixes_do_not_matter(slug: str, owner: str, suffixes: list[str], upper: bool) -> None:
    name = load().models[slug].name.split("/")[-1] + "".join(suffixes)
    words = f"{owner}/{name.upper() if upper else name.lower()}"
    found = load().find_model(words)
    assert found is not None
    assert found.slug == slug


@given(words=st.text(max_size=400))
def test_no_string_breaks_a_look_up(words: str) -> None:
    catalog = load()
    device, model, engine = catalog.find_hardware(words), catalog.find_model(words), catalog.find_engine(words)
    if device is not None:
        known = (device.slug, device.name, *device.aliases)
        assert normalise_device_name(words) in {normalise_device_name(spelling) for spelling in known}
    if model is not None:
        known = (model.slug, model.name, *model.aliases)
        assert normalise_model_name(words) in {normalise_model_name(spelling) for spelling in known}
    if engine is not None:
        known = (engine.slug, engine.name, *engine.aliases)
        assert normalise_engine_name(words) in {normalise_engine_name(spelling) for spelling in known}


@given(words=st.text(max_size=60), kind=st.sampled_from(get_args(Kind)))
def test_suggestions_are_slugs_of_the_kind_asked_for(words: str, kind: Kind) -> None:
    catalog = load()
    slugs = {"hardware": set(catalog.hardware), "model": set(catalog.models), "engine": set(catalog.engines)}[kind]
    near = catalog.suggest(words, kind)
    assert len(near) <= 3
    assert len(set(near)) == len(near)
    assert set(near) <= slugs


def test_a_name_longer_than_any_is_not_looked_up() -> None:
    assert load().find_hardware("h200" + " " * LONGEST_NAME) is None
    assert load().find_hardware("h200" + " " * (LONGEST_NAME - 4)) is not None


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("h100", {"h100-pcie-80gb", "h100-sxm5-80gb", "h100-nvl-94gb"}),
        ("MI300", {"instinct-mi300x-192gb"}),
        ("rtx 4090 ti", {"geforce-rtx-4090"}),
    ],
)
def test_suggestions_for_a_device_that_is_almost_named(words: str, expected: set[str]) -> None:
    assert load().find_hardware(words) is None
    assert expected <= set(load().suggest(words, "hardware"))


def test_suggestions_over_all_kinds() -> None:
    assert "llama-3-1-8b" in load().suggest("lama-3.1-8b")
    assert load().suggest("") == ()
