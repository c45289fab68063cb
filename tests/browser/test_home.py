"""The first screen: the founding case before any script, live as its fields change."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.window import Window

pytestmark = pytest.mark.browser

FOUNDING = (
    "76.2 ms",
    "32.0 TFLOP ÷ 420 TFLOP/s",
    "4.78 ms",
    "16.0 GB ÷ 3.35 TB/s",
    "The whole request takes 1.50 s",
    "209 tokens/s per request",
)


def test_the_founding_case_is_there_without_scripts(plain_window: Window) -> None:
    plain_window.go("/")
    shown = plain_window.words()
    assert [figure for figure in FOUNDING if figure not in shown] == []
    bar = plain_window.page.locator("svg.split")
    expect(bar).to_be_visible()
    box = bar.bounding_box()
    assert box is not None
    assert box["width"] > 500
    assert bar.locator("rect").count() >= 2
    plain_window.page.get_by_text("The same as a table").first.click()
    plain_window.sees("Ridge, achieved 125")
    assert plain_window.page.locator(".js-plotly-plot").count() == 0


def test_figures_follow_the_fields_and_the_address_follows_them(window: Window) -> None:
    window.go("/predict").go("/")
    window.sees(*FOUNDING)
    window.drawn()
    window.page.get_by_label("Prompt, tokens").fill("4,000")
    # Twice the tokens, twice the arithmetic: 2 x 76.19 = 152 ms
    window.sees("152 ms", "64.0 TFLOP ÷ 420 TFLOP/s")
    expect(window.page).to_have_url(re.compile(r"/\?prompt_tokens=4000$"))
    window.page.get_by_label("Weights").select_option("int8")
    window.sees("2.39 ms", "8.00 GB ÷ 3.35 TB/s")
    expect(window.page).to_have_url(re.compile(r"/\?prompt_tokens=4000&weight_dtype=int8$"))
    window.drawn()
    window.page.get_by_label("Prompt, tokens").fill("2000")
    window.page.get_by_label("Weights").select_option("bf16")
    expect(window.page).to_have_url(re.compile(r":\d+/$"))
    window.page.go_back()
    expect(window.page).to_have_url(re.compile(r"/predict$"))
    window.page.go_forward()
    window.sees(*FOUNDING)


def test_a_half_typed_number_says_what_is_missing_and_spoils_nothing(window: Window) -> None:
    window.go("/")
    field = window.page.get_by_label("Output, tokens")
    field.fill("3oo")
    window.sees("This cannot be priced.", "output_tokens must be a whole number")
    expect(window.page).to_have_url(re.compile(r":\d+/$"))
    field.fill("600")
    window.sees("The whole request takes 2.94 s")
    expect(field).to_be_focused()


def test_an_address_with_a_wrong_number_can_be_mended(window: Window) -> None:
    window.allow("the server responded with a status of 422")
    window.go("/predict?tp=3&batch=2")
    window.sees("tp is 3: it does not divide the 32 attention heads")
    field = window.page.get_by_label(re.compile("^Tensor parallel"))
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("2")
    field.press("Enter")
    window.sees("÷ 2 devices")
    expect(window.page.locator("[aria-invalid]")).to_have_count(0)


def test_it_works_without_scripts_by_its_button(plain_window: Window) -> None:
    plain_window.go("/")
    plain_window.page.get_by_label("Prompt, tokens").fill("4000")
    plain_window.page.get_by_role("button", name="Predict", exact=True).click()
    plain_window.sees("152 ms")
    assert "prompt_tokens=4000" in plain_window.page.url


def test_one_thing_changed_leads_to_its_whole_answer(window: Window) -> None:
    window.go("/")
    window.page.get_by_role("link", name="Batch of 32").click()
    expect(window.page).to_have_url(re.compile(r"/predict\?batch=32$"))
    window.sees("2.44 s + 299 × 4.78 ms", "6,700 tokens/s aggregate")
