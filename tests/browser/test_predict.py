"""/predict: each preset is one click, with the two phases side by side."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.window import Window

pytestmark = pytest.mark.browser


def test_each_preset_is_one_click(window: Window) -> None:
    window.go("/predict")
    for title, query, figures in (
        ("32 k prompt", "prompt_tokens=32000", "1.22 s + 299 × 4.78 ms"),
        ("100 k prompt, 50 tokens", "prompt_tokens=100000&output_tokens=50", "3.81 s + 49 × 4.78 ms"),
        ("Batch of 32", "batch=32", "2.44 s + 299 × 4.78 ms"),
        ("Half the bytes", "weight_dtype=int8", "76.2 ms + 299 × 2.39 ms"),
        ("Two cards", "tp=2", "38.1 ms + 299 × 2.39 ms"),
        ("Founding case", "", "76.2 ms + 299 × 4.78 ms"),
    ):
        window.page.get_by_role("link", name=title, exact=True).click()
        window.sees(figures)
        assert window.page.url == f"{window.site.url}/predict{f'?{query}' if query else ''}"
        table = window.page.get_by_role("region", name="The two phases side by side")
        expect(table.locator("tbody tr")).to_have_count(15)
    window.drawn()
    for title in ("Shape of the pass", "Work per byte", "Limited by", "Makes", "Gains from batching", "Levers"):
        expect(table.get_by_role("rowheader", name=title)).to_be_visible()


def test_the_roofline_and_its_table_say_the_same(window: Window) -> None:
    window.go("/predict")
    plot = window.drawn().first
    drawn = plot.inner_text()
    window.page.get_by_text("The same as a table").first.click()
    twin = window.words("details.twin[open]")
    for word, row in (("prefill 420", "2,000 420 TFLOP/s"), ("decode 3.35", "1.00 3.35 TFLOP/s"), ("ridge 125", "Ridge, achieved 125")):
        assert word in " ".join(drawn.split())
        assert row in twin


def test_serving_questions_are_live_too(window: Window) -> None:
    window.go("/predict")
    window.page.get_by_label("Model").select_option("llama-3-1-8b")
    window.page.get_by_label("Hardware").select_option("h100-sxm5-80gb")
    window.page.locator("select[name=calibration]").select_option("default")
    window.page.get_by_label("Clients").fill("16")
    window.sees("Other requests", "it fits", "requests of this size")
    expect(window.page).to_have_url(re.compile(r"model=llama-3-1-8b&hardware=h100-sxm5-80gb&concurrency=16&calibration=default"))
    window.page.locator("select[name=weight_dtype]").select_option("fp32")
    # 8.03 billion parameters at 4 bytes
    window.sees("Weights 32.1 GB")
    window.drawn()


def test_what_does_not_fit_is_said(window: Window) -> None:
    """70.6 billion parameters at 2 bytes are 141 GB; the card has 85.5, as its driver says."""
    window.go("/predict?model=llama-3-1-70b&hardware=h100-sxm5-80gb&calibration=default")
    window.sees("This does not fit on 1 × NVIDIA H100 SXM5 80GB.", "85.5 GB: it does not fit")
