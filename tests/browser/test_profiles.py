"""Devices and models of one's own, made, copied, changed and deleted in the browser, and used in a prediction."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.window import Window

pytestmark = pytest.mark.browser

CONFIG = {
    "model_type": "qwen2",
    "hidden_size": 2048,
    "num_hidden_layers": 10,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "intermediate_size": 5632,
    "vocab_size": 50000,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": True,
}


def test_a_device_is_added_changed_and_deleted(window: Window) -> None:
    window.go("/hardware")
    window.page.get_by_role("link", name="Add a device").click()
    for name, value in {"Name": "Bench Card", "Vendor": "Bench", "Memory": "48", "Bandwidth": "2,000"}.items():
        window.page.get_by_label(re.compile(f"^{name}")).first.fill(value)
    window.page.get_by_role("button", name="Save").click()
    window.sees("A device needs the specified rate of at least one number format, such as bf16.")
    window.allow("the server responded with a status of 422")
    window.page.get_by_role("group", name="Specified peak, dense").get_by_label(re.compile("^bf16")).fill("200")
    window.page.get_by_role("button", name="Save").click()
    # 200 TFLOP/s over 2 TB/s
    window.sees("Bench Card: above 100 FLOP/byte arithmetic sets the pace", "entered by hand")
    window.page.get_by_role("link", name="Edit").click()
    window.page.get_by_label(re.compile("^Bandwidth")).first.fill("4000")
    window.page.get_by_role("button", name="Save").click()
    window.sees("Bench Card: above 50.0 FLOP/byte arithmetic sets the pace")
    window.go("/hardware").page.get_by_label("Search").fill("bench card")
    expect(window.page.locator("#results tbody tr")).to_have_count(1)
    window.sees("yours", inside="#results")
    window.page.get_by_role("link", name="Bench Card").click()
    window.page.get_by_role("button", name="Delete").click()
    expect(window.page).to_have_url(re.compile(r"/hardware$"))
    window.page.get_by_label("Search").fill("bench card")
    window.sees("No device is called “bench card”")


def test_a_shipped_device_is_copied_and_priced(window: Window) -> None:
    """A copy with half the bandwidth: 16 GB at 1.675 TB/s are 9.55 ms a step; the arithmetic is the same."""
    window.go("/hardware/h100-sxm5-80gb")
    expect(window.page.get_by_role("link", name="Edit")).to_have_count(0)
    window.page.get_by_role("link", name="Clone").click()
    window.page.get_by_label("Name", exact=True).fill("Half a Card")
    window.page.get_by_label(re.compile("^Bandwidth")).first.fill("1675")
    window.page.get_by_role("button", name="Save").click()
    window.sees("Half a Card: above 590 FLOP/byte arithmetic sets the pace")
    window.page.get_by_role("link", name="Predict on it").click()
    expect(window.page.get_by_label("Hardware")).to_have_value("half-a-card")
    window.sees("9.55 ms", "Half a Card")
    window.drawn()


def test_a_model_is_pasted_changed_and_deleted(window: Window) -> None:
    window.go("/models")
    window.page.get_by_role("link", name="Add a model").click()
    window.page.get_by_label("Name", exact=True).fill("Bench Model")
    window.page.get_by_label("config.json").fill(json.dumps({**CONFIG, "num_experts": 64}))
    window.page.get_by_role("button", name="Save").click()
    window.sees("num_experts")
    window.allow("the server responded with a status of 422")
    expect(window.page.get_by_label("config.json")).to_have_attribute("aria-invalid", "true")
    window.page.get_by_label("config.json").fill(json.dumps(CONFIG, indent=2))
    window.page.get_by_role("button", name="Save").click()
    # 2 x 10 layers x 2 heads x 128 x 2 bytes
    window.sees("Bench Model", "10.2 kB of KV cache a token", "shared with the input embedding")
    window.page.get_by_role("link", name="Predict with it").click()
    expect(window.page.get_by_label("Model")).to_have_value("bench-model")
    window.sees("The whole request takes")
    window.go("/models/bench-model").page.get_by_role("link", name="Edit").click()
    window.page.get_by_label("Other spellings, comma-separated").fill("bench/model-10")
    window.page.get_by_role("button", name="Save").click()
    window.sees("Also written bench/model-10.")
    window.page.get_by_role("button", name="Delete").click()
    window.page.get_by_label("Search").fill("bench model")
    window.sees("No model is called “bench model”")


def test_blocks_of_their_own_are_refused_by_their_field(window: Window) -> None:
    window.allow("the server responded with a status of 422")
    window.go("/models/new")
    window.page.get_by_label("Name", exact=True).fill("Sparse")
    config = {**CONFIG, "model_type": "nemotron-nas", "block_configs": [{}]}
    window.page.get_by_label("config.json").fill(json.dumps(config))
    window.page.get_by_role("button", name="Save").click()
    window.sees("block_configs", inside="#error-config")
    assert json.loads(window.page.get_by_label("config.json").input_value()) == config
