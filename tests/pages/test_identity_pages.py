"""What was measured, on the pages: words of file and person, and suggestions that one click without scripts accepts."""

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.applications import served_from
from tests.pages import markup
from tests.pages.conftest import words_of
from tests.result_files import data_of, served


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An application for all of these; each test stores things of its own."""
    with served_from(tmp_path_factory.mktemp("shop")) as client:
        yield client


def add(client: TestClient, name: str, **changes: Any) -> int:
    answer = client.post("/runs/new", files={"file": (name, data_of(served(**changes)))}, follow_redirects=False)
    assert answer.status_code == 303, words_of(answer.text)
    return int(answer.headers["location"].rsplit("/", 1)[1])


def test_the_run_page_says_who_said_what(shop: TestClient) -> None:
    number = add(shop, "plain.json", tp=2, tokenizer_id="who")
    shop.post(f"/runs/{number}/edit", data={"tp": "4"})
    page = shop.get(f"/runs/{number}")
    assert markup.faults(page.text) == []
    words = words_of(page.text)
    assert "Tensor parallel 4 2 4" in words
    assert "Hardware not known nothing nothing" in words


def test_a_suggestion_is_used_by_a_plain_form(shop: TestClient) -> None:
    number = add(shop, "h200_fp8.json", tokenizer_id="used")
    page = shop.get(f"/runs/{number}").text
    assert "from the file name: h200" in words_of(page)
    hidden = [
        (element.attributes["name"], element.attributes["value"])
        for element in markup.read(page).elements
        if element.attributes.get("type") == "hidden"
    ]
    assert hidden == [("hardware", "h200-sxm-141gb"), ("weight_dtype", "fp8")]
    for name, value in hidden:
        assert shop.post(f"/runs/{number}/edit", data={name: value}, follow_redirects=False).status_code == 303
    after = shop.get(f"/runs/{number}").text
    assert "Decode runs at" in words_of(after)
    assert "from the file name" not in words_of(after)


def test_the_form_shows_what_a_person_says_and_hints_at_the_rest(shop: TestClient) -> None:
    number = add(shop, "l4_report.json", tp=2, tokenizer_id="form")
    shop.post(f"/runs/{number}/edit", data={"ep": "8"})
    page = shop.get(f"/runs/{number}/edit").text
    assert markup.faults(page) == []
    fields = markup.read(page).form(f"/runs/{number}/edit")
    assert (fields["ep"], fields["tp"], fields["hardware"]) == ("8", "", "")
    assert "The file says: 2" in words_of(page)
    assert "The file does not say." in words_of(page)
    used = shop.post(f"/runs/{number}/edit", data={**fields, "label": "typed too", "use": "hardware=l4"}, follow_redirects=False)
    assert used.status_code == 303
    run = shop.get(f"/api/v1/runs/{number}").json()
    assert run["said"]["person"] == {"ep": 8, "hardware": "l4", "label": "typed too"}


def test_a_run_from_before_words_were_kept_apart_keeps_them(shop: TestClient) -> None:
    number = add(shop, "old.json", tp=2, tokenizer_id="old")
    with shop.app.state.context.database.write() as session:  # type: ignore[attr-defined]
        session.connection().exec_driver_sql(f"UPDATE run SET said_by_file = NULL, said_by_person = NULL WHERE id = {number}")
    before = shop.get(f"/api/v1/runs/{number}").json()
    fields = markup.read(shop.get(f"/runs/{number}/edit").text).form(f"/runs/{number}/edit")
    assert (fields["tp"], fields["model"]) == ("2", "meta-llama/Llama-3.1-8B")
    shop.post(f"/runs/{number}/edit", data=fields)
    assert shop.get(f"/api/v1/runs/{number}").json() == before
    assert "not noted" in words_of(shop.get(f"/runs/{number}").text)


def test_an_upload_of_several_runs_offers_each_suggestion_once(shop: TestClient) -> None:
    lines = b"\n".join(data_of(served(tokenizer_id=f"many-{number}")) for number in range(3))
    page = shop.post("/runs/new", files={"file": ("h200_tp4.jsonl", lines)})
    assert markup.faults(page.text) == []
    assert "Hardware, from the file name: h200 (3 runs)" in words_of(page.text)
    (first,) = {
        element.attributes["action"]
        for element in markup.read(page.text).elements
        if element.tag == "form" and element.attributes.get("action", "").endswith("/edit")
    }
    shop.post(first, data={"scope": "file", "use": "tp=4"})
    numbers = [int(first.split("/")[2]) + index for index in range(3)]
    assert [shop.get(f"/api/v1/runs/{number}").json()["tp"] for number in numbers] == [4, 4, 4]
