"""What became of each file stands on the page: read, refused with what was tried, too large, several at once, pasted."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.window import Site, Window
from tests.result_files import data_of, served_file, served_in_detail

pytestmark = pytest.mark.browser


def stored(site: Site) -> int:
    return len(site.json("/api/v1/runs?limit=500")["items"])


def test_a_file_that_no_format_knows_is_refused_with_what_was_tried(window: Window, server: Site) -> None:
    window.allow("the server responded with a status of 422")
    before = stored(server)
    window.go("/runs/new")
    window.choose({"name": "settings.json", "mimeType": "application/json", "buffer": b'{"colour": "blue"}'})
    window.page.get_by_label("Label").fill("typed before")
    window.page.get_by_role("button", name="Read and store").click()
    window.sees("settings.json was refused.", inside="#outcome")
    tried = window.page.locator("#outcome details")
    tried.get_by_text("What was tried").click()
    for name in ("vllm_bench_serve", "vllm_bench_serve_log", "sglang_bench_serving", "llama_bench"):
        row = tried.get_by_role("row", name=re.compile(f"^{name} "))
        expect(row).to_be_visible()
    expect(window.page.get_by_label("Label")).to_have_value("typed before")
    assert stored(server) == before


def test_several_files_come_at_once_and_can_be_compared(window: Window) -> None:
    window.go("/runs/new")
    good = [{"name": f"part-{number}.json", "mimeType": "application/json", "buffer": served_file(200 + number)} for number in (1, 2)]
    window.choose(good[0], {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"nothing measured here"}, good[1])
    window.sees("3 files: part-1.json, notes.txt, part-2.json", inside=".drop")
    window.page.get_by_role("button", name="Read and store").click()
    window.sees("part-1.json, read as vllm_bench_serve.", "part-2.json, read as vllm_bench_serve.", "notes.txt was refused.")
    window.page.get_by_role("link", name="Compare them").click()
    window.sees("Nothing moved beyond the noise", "Comparable.")


def test_a_pasted_result_is_read(window: Window) -> None:
    window.go("/runs/new")
    window.page.get_by_label("Or paste a result").fill(served_file(203).decode())
    window.page.get_by_label("Tags, comma-separated").fill("pasted, by hand")
    window.page.get_by_role("button", name="Read and store").click()
    expect(window.page).to_have_url(re.compile(r"/runs/\d+$"))
    window.sees("50.0 ms to the first token, then 10.0 ms for each further one", "pasted", "by hand")


def test_a_file_over_the_limit_is_refused_on_the_page(window: Window, server: Site) -> None:
    """The server of these tests reads 1 MiB."""
    window.allow("the server responded with a status of 413")
    before = stored(server)
    window.go("/runs/new")
    window.sees("Up to 1 MiB each")
    window.choose({"name": "large.json", "mimeType": "application/json", "buffer": b"[" + b" " * 2**20 + b"]"})
    window.page.get_by_role("button", name="Read and store").click()
    window.sees("Nothing was stored.", "The file is larger than 1 MiB, the most this server reads", inside="#outcome")
    window.choose({"name": "runs.zip", "mimeType": "application/zip", "buffer": b"PK\x03\x04" + bytes(40)})
    window.page.get_by_role("button", name="Read and store").click()
    window.sees("which is not unpacked yet: upload the files inside.", inside="#outcome")
    assert stored(server) == before


def test_the_same_file_again_leads_to_the_same_run(window: Window, server: Site) -> None:
    window.go("/runs/new")
    number = server.add_run(served_file(204), name="again.json")
    before = stored(server)
    window.choose({"name": "again.json", "mimeType": "application/json", "buffer": served_file(204)})
    window.page.get_by_role("button", name="Read and store").click()
    expect(window.page).to_have_url(re.compile(rf"/runs/{number}$"))
    assert stored(server) == before


def test_nothing_chosen_is_said_not_stored(window: Window) -> None:
    window.allow("the server responded with a status of 422")
    window.go("/runs/new")
    window.page.get_by_role("button", name="Read and store").click()
    window.sees("There is no file in this form: choose one, drop one, or paste its text.")


def test_files_are_brought_without_scripts(plain_window: Window) -> None:
    plain_window.go("/")
    plain_window.choose({"name": "plain.json", "mimeType": "application/json", "buffer": data_of(served_in_detail(tokenizer_id="plain"))})
    plain_window.page.get_by_role("button", name="Read them").click()
    plain_window.sees("plain.json", "The drawing needs JavaScript; the table beneath has the same numbers.")
