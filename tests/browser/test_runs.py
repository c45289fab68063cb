"""The list of runs, live and without scripts; and one run corrected and deleted."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.window import Site, Window
from tests.result_files import served_file

pytestmark = pytest.mark.browser

TABLE = "table.runs"


def shares(window: Window, number: int) -> list[float]:
    """The percentages of a column, in order; runs where it is not known come last and are left out."""
    cells = window.column(TABLE, number)
    known = [text for text in cells if text != "not known"]
    assert cells[: len(known)] == known
    return [float(text.removesuffix("%")) for text in known]


def test_the_list_follows_its_filters_and_chips_take_them_off(window: Window, samples: dict[str, int]) -> None:
    window.go("/runs?tag=sample")
    expect(window.page.locator(f"{TABLE} tbody tr")).to_have_count(6)
    window.page.get_by_label("Search").press_sequentially("bf16 weights", delay=5)
    expect(window.page.locator(f"{TABLE} tbody tr")).to_have_count(1)
    expect(window.page).to_have_url(re.compile(r"q=bf16\+weights"))
    window.page.get_by_label("Search").fill("")
    window.page.get_by_label("Hardware").select_option("geforce-rtx-4090")
    expect(window.page.locator(f"{TABLE} tbody tr")).to_have_count(1)
    window.sees("hardware: geforce-rtx-4090", inside=".chips")
    window.page.get_by_label("Search").fill("nothing is called so")
    window.sees("No run passes these filters")
    for name in ("q nothing is called so", "hardware geforce-rtx-4090"):
        window.page.get_by_role("link", name=f"Remove filter: {name}").click()
    expect(window.page.locator(f"{TABLE} tbody tr")).to_have_count(6)
    expect(window.page.locator(".chips a.chip")).to_have_count(1)
    assert samples.keys() <= {text.split(" ", 1)[1] for text in window.page.locator(f"{TABLE} tbody th a:not(.tag)").all_inner_texts()}


def test_back_goes_through_the_filters(window: Window, samples: dict[str, int]) -> None:
    window.go("/runs?tag=sample")
    window.page.get_by_label("Engine").select_option("llama.cpp")
    expect(window.page.locator(f"{TABLE} tbody tr")).to_have_count(1)
    expect(window.page).to_have_url(re.compile("engine=llama.cpp"))
    window.page.go_back()
    expect(window.page.locator(f"{TABLE} tbody tr")).to_have_count(len(samples))
    expect(window.page.get_by_label("Engine")).to_have_value("")


@pytest.mark.parametrize(("title", "number"), [("Of decode floor", 9), ("Of prefill peak", 10)])
def test_runs_sort_by_their_share_of_the_limit(window: Window, samples: dict[str, int], title: str, number: int) -> None:
    window.go("/runs?tag=sample")
    window.page.get_by_role("link", name=title).click()
    expect(window.page.get_by_role("columnheader", name=title)).to_have_attribute("aria-sort", "descending")
    falling = shares(window, number)
    assert len(falling) >= 5
    assert falling == sorted(falling, reverse=True)
    window.page.get_by_role("link", name=title).click()
    expect(window.page.get_by_role("columnheader", name=title)).to_have_attribute("aria-sort", "ascending")
    assert shares(window, number) == falling[::-1]


def test_a_share_that_is_not_known_says_why(window: Window, server: Site) -> None:
    number = server.add_run(served_file(101, model_id="acme/unheard-of"), label="no model")
    window.go("/runs?q=unheard-of")
    row = window.page.locator(f"{TABLE} tbody tr", has=window.page.locator(f'input[value="{number}"]'))
    unknown = row.locator("td").get_by_text("not known", exact=True)
    assert unknown.count() >= 2
    assert all(cell.get_attribute("title") for cell in unknown.all())


def test_two_ticks_fill_the_tray_and_lead_to_the_comparison(window: Window, samples: dict[str, int]) -> None:
    window.go("/runs?tag=sample")
    tray = window.page.locator(".tray")
    expect(tray).to_be_hidden()
    boxes = [window.page.get_by_label(f"Select run {samples[name]}", exact=True) for name in ("int4 weights", "bf16 weights")]
    boxes[0].check()
    expect(tray).to_contain_text("1 run ticked")
    expect(tray).to_contain_text("tick another to compare")
    expect(tray.get_by_role("button", name="Compare")).to_be_disabled()
    boxes[1].check()
    expect(tray).to_contain_text("2 runs ticked")
    tray.get_by_role("button", name="Clear").click()
    expect(tray).to_be_hidden()
    for box in boxes:
        box.check()
    tray.get_by_role("button", name="Compare").click()
    window.sees("Prefill got 2.6× slower, decode 31.9 % faster")


def test_it_all_works_without_scripts(plain_window: Window, samples: dict[str, int]) -> None:
    plain_window.go("/runs")
    plain_window.page.get_by_label("Tag").select_option("sample")
    plain_window.page.get_by_label("Search").fill("weights")
    plain_window.page.get_by_role("button", name="Filter").click()
    expect(plain_window.page.locator(f"{TABLE} tbody tr")).to_have_count(2)
    plain_window.page.get_by_role("link", name="ITL mean").click()
    assert plain_window.column(TABLE, 7) == ["7.52 ms", "5.12 ms"]
    for name in ("bf16 weights", "int4 weights"):
        plain_window.page.get_by_label(f"Select run {samples[name]}", exact=True).check()
    plain_window.page.get_by_role("button", name="Compare").click()
    plain_window.sees("Prefill got 2.6× slower, decode 31.9 % faster")


def test_a_run_is_corrected_and_deleted(window: Window, server: Site) -> None:
    number = server.add_run(served_file(102, model_id="acme/in-house"))
    window.go(f"/runs/{number}")
    window.sees("No prediction to split it by", "the model “acme/in-house” has no entry here")
    window.page.get_by_role("link", name="Name model and hardware").click()
    typed = {"Label": "corrected", "Model": "llama-3-1-8b", "Hardware": "h100-sxm5-80gb", "Devices": "1", "Tensor parallel": "1"}
    for name, value in {**typed, "Weights": "bf16", "Tags, comma-separated": "mine, nightly", "Notes": "Cold start.\nSecond line."}.items():
        window.page.get_by_label(name, exact=True).fill(value)
    window.page.get_by_role("button", name="Save").click()
    expect(window.page).to_have_url(re.compile(rf"/runs/{number}$"))
    # 15.0 GB of weights and KV cache at 3.35 TB/s are 4.5 ms of the 10 ms measured
    window.sees("Decode runs at 4", "of the bandwidth (MBU)", f"#{number} corrected", "Cold start.")
    assert window.page.locator(".notes").inner_text() == "Cold start.\nSecond line."
    window.drawn()
    window.page.get_by_role("link", name="nightly").click()
    expect(window.page.locator(f"{TABLE} tbody tr")).to_have_count(1)
    window.page.get_by_role("link", name=f"#{number} corrected").click()
    window.page.get_by_text("Delete this run").click()
    window.page.get_by_role("button", name=f"Delete run {number}").click()
    expect(window.page).to_have_url(re.compile(r"/runs$"))
    assert number not in [run["id"] for run in server.json("/api/v1/runs?limit=500")["items"]]
