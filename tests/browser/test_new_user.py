"""A new user's path: bring a file of each format, read its page, compare two; and the sample runs by one click."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.window import Site, Window
from tests.result_files import data_of, served_in_detail

pytestmark = pytest.mark.browser

DATA = Path(__file__).resolve().parents[1] / "data"
OURS = (
    "vllm_bench_serve/2025-09_detailed.json",
    "vllm_bench_serve_log/short_outputs.log",
    "sglang_bench_serving/2026-06_details.jsonl",
    "llama_bench/2026-05_quoted.csv",
)
REAL = (
    "vllm_bench_serve/v0.25.1_opt125m_conc2.json",
    "vllm_bench_serve_log/2026-04_gemma4_gpu_short_rate8.log",
    "sglang_bench_serving/2025-12_qwen25_3b_c8.jsonl",
    "llama_bench/2025_llama32_1b_hip.jsonl",
)


def bring(window: Window, path: Path) -> None:
    """Choose the file on the start page, have it read and go to the page of its (first) run."""
    window.go("/")
    window.choose(path)
    window.page.get_by_role("button", name="Read them").click()
    if not re.search(r"/runs/\d+$", window.page.url):
        window.page.locator("#outcome .callout.good a").first.click()
    expect(window.page).to_have_url(re.compile(r"/runs/\d+$"))


def check_run_page(window: Window, name: str, format: str) -> None:
    """A finding as its title, tiles with their reasons, the file's own name, charts drawn, and the same numbers twice."""
    number = int(window.page.url.rsplit("/", 1)[1])
    run = window.site.json(f"/api/v1/runs/{number}")
    assert (run["format"], run["file"]) == (format, name)
    assert window.page.locator("h1").inner_text().strip()
    assert window.page.locator(".tile").count() >= 2
    assert all(text.strip() for text in window.page.locator(".tile .why").all_inner_texts())
    window.sees(name, f"Read as {format}")
    for plot in window.drawn().all():
        assert plot.get_attribute("aria-label")
    for figure in window.page.locator("figure[data-chart='distribution']").all():
        _twin_says_what_the_chart_says(figure.locator("script").text_content() or "", figure.locator("xpath=..").inner_text())


def _twin_says_what_the_chart_says(figure: str, around: str) -> None:
    """Each percentile that is written into the drawing stands in the table beneath it with the same figure."""
    words = json.dumps(json.loads(figure)["data"]) + json.dumps(json.loads(figure)["layout"].get("annotations", []))
    marked = set(re.findall(r"\bp(?:50|90|95|99) [\d.,]+", re.sub(r"</?b>|&nbsp;|\\u00a0", " ", words)))
    assert marked
    numbers = set(re.findall(r"[\d.,]+\d", around))
    assert {mark.split()[1] for mark in marked} <= numbers


@pytest.mark.parametrize("path", OURS)
def test_a_file_of_each_format_is_read_and_shown(window: Window, path: str) -> None:
    bring(window, DATA / path)
    check_run_page(window, path.split("/")[1], path.split("/")[0])


@pytest.mark.shared
@pytest.mark.parametrize("path", REAL)
def test_a_real_file_of_each_format_is_read_and_shown(window: Window, shared_dir: Path, path: str) -> None:
    bring(window, shared_dir / "samples" / path)
    check_run_page(window, path.split("/")[1], path.split("/")[0])


@pytest.mark.parametrize("address", ["/", "/runs/new"])
def test_a_file_is_dropped_on_the_zone(window: Window, tmp_path: Path, address: str) -> None:
    """While it is dragged the border is solid; the file let go anywhere in the zone is the one that is read."""
    window.go(address)
    zone = window.page.locator(".drop").first
    zone.scroll_into_view_if_needed()
    box = zone.bounding_box()
    assert box is not None
    path = tmp_path / "dropped.json"
    path.write_bytes(data_of(served_in_detail(tokenizer_id=f"dropped on {address}")))
    devtools = window.context.new_cdp_session(window.page)
    at = {"x": box["x"] + 30, "y": box["y"] + 30, "data": {"items": [], "files": [str(path)], "dragOperationsMask": 1}}
    devtools.send("Input.dispatchDragEvent", {"type": "dragEnter", **at})
    devtools.send("Input.dispatchDragEvent", {"type": "dragOver", **at})
    expect(zone).to_have_css("border-top-style", "solid")
    devtools.send("Input.dispatchDragEvent", {"type": "drop", **at})
    expect(zone).to_have_css("border-top-style", "dashed")
    window.sees("1 file: dropped.json", inside=".drop")
    window.page.locator("form:has(.drop) button[type=submit], form.drop button[type=submit]").first.click()
    window.sees("dropped.json", "Read as vllm_bench_serve")


def test_two_runs_are_compared_from_the_page_of_one(window: Window, samples: dict[str, int]) -> None:
    window.go(f"/runs/{samples['bf16 weights']}")
    window.page.get_by_role("link", name="Compare…").click()
    window.sees("Which runs shall be set side by side?")
    expect(window.page.locator("select[name=base]")).to_have_value(str(samples["bf16 weights"]))
    window.page.locator("select[name=other]").select_option(str(samples["int4 weights"]))
    window.page.get_by_role("button", name="Compare").click()
    expect(window.page.locator("h1")).to_have_text("Prefill got 2.6× slower, decode 31.9 % faster; break-even at 54 output tokens")
    window.page.get_by_role("link", name="Swap").click()
    # 204 -> 78.2 ms is 61.7 % less time, 5.12 -> 7.52 ms 46.9 % more
    window.sees("Prefill got 61.7 % faster, decode 46.9 % slower")
    window.page.get_by_role("link", name="Show the tails too").click()
    window.sees("TTFT, p99")


def test_the_sample_runs_come_by_one_click_and_only_once(window: Window, server: Site) -> None:
    for _ in range(2):
        window.go("/")
        window.page.get_by_role("button", name="Load sample runs").click()
        expect(window.page).to_have_url(re.compile(r"/compare\?base=\d+&other=\d+$"))
        window.sees("Prefill got 2.6× slower, decode 31.9 % faster")
        # the steps add up: 2,327 + 126 - 718 = 1,735 ms
        window.sees("+126 ms", "−718 ms", "−592 ms")
        assert len(server.json("/api/v1/runs?tag=sample&limit=500")["items"]) == 6
