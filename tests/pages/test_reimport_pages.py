"""Reading files again on the pages, by plain posts."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from tests.applications import served_from
from tests.pages import markup
from tests.pages.conftest import words_of
from tests.result_files import data_of, served, served_file
from tests.services.improved import improve, refuse, slower


@pytest.fixture
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An application of its own: what is due is due for all."""
    with served_from(tmp_path_factory.mktemp("shop")) as client:
        yield client


def add(client: TestClient, data: bytes, name: str = "report.json") -> int:
    return int(client.post("/api/v1/runs", params={"name": name}, content=data).json()["runs"][0]["id"])


def page(client: TestClient, address: str, status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    assert markup.faults(answer.text) == []
    return words_of(answer.text)


def test_from_the_run_to_the_preview_and_back(shop: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    number = add(shop, served_file(1))
    assert "An older importer" not in page(shop, f"/runs/{number}")
    assert "Nothing changes in this run" in page(shop, f"/runs/{number}/reimport")
    version = improve(monkeypatch, slower)
    assert f"Version {version - 1} did; {version} is here." in page(shop, f"/runs/{number}")
    preview = page(shop, f"/runs/{number}/reimport")
    assert "1 run changes" in preview
    assert "TTFT, mean 50.0 ms 100 ms metric, changed" in preview
    assert "warning nothing read better warning, added" in preview
    done = shop.post(f"/runs/{number}/reimport", follow_redirects=False)
    assert (done.status_code, done.headers["location"]) == (303, f"/runs/{number}")
    after = page(shop, f"/runs/{number}")
    assert "An older importer" not in after
    assert f"version {version - 1} to {version}" in after
    assert "TTFT, mean 50.0 ms 100 ms" in after


def test_the_list_of_what_is_due_and_one_button_for_all(shop: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [add(shop, served_file(each), f"{each}.json") for each in range(3)]
    assert "Every run was read by the importer of now" in page(shop, "/runs/outdated")
    improve(monkeypatch, slower)
    due = page(shop, "/runs/outdated")
    assert "3 files were read by older importers" in due
    assert "2.json" in due
    assert "3 runs" in page(shop, "/runs?outdated=true")
    done = shop.post("/runs/outdated")
    assert "Every run was read by the importer of now" in words_of(done.text)
    assert words_of(done.text).count("1 run changes") == 3
    assert all(shop.get(f"/api/v1/runs/{number}").json()["outdated"] is False for number in numbers)


def test_runs_that_are_gone_are_marked_unless_removed(shop: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    number = add(shop, b"\n".join(data_of(served(max_concurrency=each)) for each in (1, 2)))
    version = improve(monkeypatch, lambda found: found[1:])
    assert "is kept as it is and marked, unless you remove it" in page(shop, f"/runs/{number}/reimport")
    shop.post(f"/runs/{number}/reimport")
    assert f"Version {version} of the importer does not find it in the file" in page(shop, f"/runs/{number}")
    gone = shop.post(f"/runs/{number}/reimport", data={"remove_gone": "true"}, follow_redirects=False)
    assert (gone.status_code, gone.headers["location"]) == (303, "/runs")
    page(shop, f"/runs/{number}", 404)


def test_a_refusal_is_said_and_nothing_changes(shop: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    number = add(shop, served_file(1))
    improve(monkeypatch, refuse)
    assert "The importer of now refuses this file" in page(shop, f"/runs/{number}/reimport")
    answer = shop.post(f"/runs/{number}/reimport")
    assert answer.status_code == 422
    assert "Nothing was changed." in words_of(answer.text)
    assert "is refused now, so its runs stay as they are" in words_of(shop.post("/runs/outdated").text)
