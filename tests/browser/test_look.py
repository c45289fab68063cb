"""Light, dark, narrow, and by keyboard: what a person's eyes and fingers meet on every page."""

from typing import Any

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.window import Site, Window
from tests.result_files import data_of, served_in_detail

pytestmark = pytest.mark.browser

WIDTHS = (400, 768, 1024, 1440)
PREFILL = {"light": "rgb(200, 105, 10)", "dark": "rgb(238, 146, 56)"}
PAPER = {"light": "rgb(250, 250, 248)", "dark": "rgb(14, 16, 19)"}


def comparison(samples: dict[str, int]) -> str:
    """The address of three runs side by side."""
    return f"/compare?base={samples['bf16 weights']}&other={samples['int4 weights']}&other={samples['bf16, 32 clients']}"


def roof(plot: Locator) -> str:
    """The colour of the arithmetic roof as it is drawn: the thickest line of the roofline in the prefill hue."""
    strokes = plot.locator("path.js-line").evaluate_all("(lines) => lines.map((line) => getComputedStyle(line).stroke)")
    return next((stroke for stroke in strokes if stroke in PREFILL.values()), f"none of {strokes}")


def test_the_theme_button_redraws_charts_and_is_remembered(window: Window) -> None:
    window.go("/")
    plot = window.drawn().first
    assert roof(plot) == PREFILL["light"]
    expect(window.page.locator("html")).to_have_css("background-color", PAPER["light"])
    window.page.get_by_role("button", name="Switch between light and dark").click()
    expect(window.page.locator("html")).to_have_css("background-color", PAPER["dark"])
    expect(plot.locator(f"path.js-line[style*='{PREFILL['dark']}']").first).to_be_attached()
    assert roof(plot) == PREFILL["dark"]
    window.go("/predict")
    assert roof(window.drawn().first) == PREFILL["dark"]
    expect(window.page.locator("html")).to_have_css("background-color", PAPER["dark"])
    window.page.get_by_role("button", name="Switch between light and dark").click()
    expect(window.page.locator("html")).to_have_css("background-color", PAPER["light"])


def test_a_dark_system_gets_dark_pages_and_charts(window: Window) -> None:
    window.page.emulate_media(color_scheme="dark")
    window.go("/")
    expect(window.page.locator("html")).to_have_css("background-color", PAPER["dark"])
    assert roof(window.drawn().first) == PREFILL["dark"]
    window.page.emulate_media(color_scheme="light")
    expect(window.page.locator("html")).to_have_css("background-color", PAPER["light"])
    expect(window.page.locator(f"path.js-line[style*='{PREFILL['light']}']").first).to_be_attached()


def test_no_word_is_written_in_the_colour_of_its_ground(window: Window, samples: dict[str, int]) -> None:
    """Every word of a server-drawn bar takes a colour of the theme; black on the dark paper is a word nobody reads."""
    window.page.emulate_media(color_scheme="dark")
    for address in ("/", "/predict", f"/runs/{samples['bf16, 32 clients']}", comparison(samples)):
        window.go(address)
        fills = window.page.locator("main svg:not(.main-svg) text").evaluate_all(
            "(words) => words.filter((word) => !word.closest('.js-plotly-plot') && !word.matches('.on-p, .on-d'))"
            ".map((word) => getComputedStyle(word).fill)"
        )
        assert fills, address
        assert "rgb(0, 0, 0)" not in fills, address


def test_no_page_is_wider_than_its_window(window: Window, server: Site, samples: dict[str, int]) -> None:
    """Not even with names, tags and settings of 192 characters without a space; what cannot be broken scrolls within its own table."""
    long = "unbroken" * 24
    figures: dict[str, Any] = {"bandwidth_bytes_per_s": 1e12, "peak_flops_per_s": {"bf16": 1e14}}
    device = server.create("hardware", name=long, vendor=long, link_name=long, notes=long, **figures)
    model = server.create("models", name=long, clone_of="llama-3-1-8b", aliases=[f"{long}a"])
    words = {"label": long, "tags": f"{long},b{long}", "notes": long, "engine": long, "hardware": long, "weight_dtype": "bf16"}
    run, other = (
        server.add_run(data_of(served_in_detail(model_id=long, tokenizer_id=long, backend=name, **{long: long})), f"{long}.json", **words)
        for name in (long, f"b{long}")
    )
    too_wide = []
    for address in (
        "/",
        f"/predict?model={model}&hardware={device}&calibration=default&concurrency=8",
        "/runs",
        f"/runs?q={long[:40]}&model={model}",
        "/runs/new",
        f"/runs/{run}",
        f"/runs/{run}/edit",
        f"/compare?base={run}&other={other}&other={samples['bf16, 32 clients']}",
        "/compare",
        "/hardware",
        f"/hardware/{device}",
        f"/hardware/new?clone_of={device}",
        "/models",
        f"/models/{model}",
        "/models/new",
        "/glossary",
    ):
        window.go(address)
        for width in WIDTHS:
            if excess := window.size(width).too_wide():
                too_wide.append((address, width, excess))
    assert too_wide == []


def test_figures_are_redrawn_at_their_own_width(window: Window) -> None:
    window.go("/")
    plot = window.drawn().first
    expect(plot.locator("svg.main-svg").first).to_have_attribute("height", "330")
    window.size(400)
    expect(plot.locator("svg.main-svg").first).to_have_attribute("height", "260")
    inside = plot.bounding_box()
    assert inside is not None
    assert inside["width"] < 368


def test_on_a_phone_the_menu_leads_everywhere(window: Window) -> None:
    window.size(400).go("/")
    expect(window.page.get_by_role("navigation", name="Main")).to_be_hidden()
    window.page.locator("details.menu summary").click()
    window.page.locator("details.menu").get_by_role("link", name="Runs").click()
    expect(window.page.locator("details.menu")).not_to_have_attribute("open", "")
    assert window.page.url.endswith("/runs")


def test_the_keyboard_reaches_everything_and_shows_where_it_is(window: Window) -> None:
    window.go("/")
    window.page.keyboard.press("Tab")
    skip = window.page.get_by_role("link", name="Skip to content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    window.page.keyboard.press("Enter")
    expect(window.page.locator("main")).to_be_focused()
    window.page.keyboard.press("Tab")
    expect(window.page.get_by_label("Hardware")).to_be_focused()
    for _ in range(3):
        window.page.keyboard.press("Tab")
    prompt = window.page.get_by_label("Prompt, tokens")
    expect(prompt).to_be_focused()
    expect(prompt).to_have_css("outline-style", "solid")
    expect(prompt).to_have_css("outline-width", "2px")
    window.page.keyboard.press("Control+a")
    window.page.keyboard.type("8000")
    window.page.keyboard.press("Enter")
    window.sees("305 ms")


def test_a_file_is_chosen_by_keyboard(window: Window) -> None:
    window.go("/runs/new")
    field = window.page.locator('.drop input[type="file"]').first
    for _ in range(20):
        window.page.keyboard.press("Tab")
        if field.evaluate("(input) => input === document.activeElement"):
            break
    expect(field).to_be_focused()
    expect(window.page.locator(".drop").first).to_have_css("outline-style", "solid")
    with window.page.expect_file_chooser() as chooser:
        window.page.keyboard.press("Space")
    chooser.value.set_files({"name": "chosen.json", "mimeType": "application/json", "buffer": b"{}"})
    window.sees("1 file: chosen.json", inside=".drop")


def test_targets_are_large_enough(window: Window, samples: dict[str, int]) -> None:
    """24 px at least, links within a sentence apart."""
    window.size(1024)
    small: list[Any] = []
    for address in ("/", "/runs", "/runs/new", comparison(samples)):
        window.go(address)
        controls = "button:not(.modebar-btn), select, input:not([type=hidden], [type=checkbox]), a.button, a.chip, summary"
        found = window.page.locator("main").locator(controls)
        small += [
            (address, item.inner_text()[:20], box)
            for item in found.all()
            if item.is_visible() and (box := item.bounding_box()) is not None and box["height"] < 24
        ]
    assert small == []


def test_print_is_light_and_leaves_the_buttons_out(window: Window, samples: dict[str, int]) -> None:
    window.page.emulate_media(color_scheme="dark")
    window.go(f"/runs/{samples['founding request']}")
    window.drawn()
    window.page.emulate_media(media="print")
    expect(window.page.locator("html")).to_have_css("background-color", "rgb(255, 255, 255)")
    expect(window.page.locator("header.shell")).to_be_hidden()
    expect(window.page.locator(".head .actions")).to_be_hidden()


def test_the_copy_button_copies_the_command(window: Window) -> None:
    window.context.grant_permissions(["clipboard-read", "clipboard-write"])
    window.go("/")
    window.page.get_by_role("button", name="Copy").first.click()
    window.sees("Copied", inside=".code")
    copied = window.page.evaluate("navigator.clipboard.readText()")
    assert copied == f"curl -F file=@result.json {window.site.url}/api/v1/runs"
