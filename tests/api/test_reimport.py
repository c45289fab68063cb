"""Reading files again over HTTP."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.shapes import FileReadingShape, OutdatedFiles
from tests.answers import API, ok, problem
from tests.result_files import data_of, served, served_file
from tests.services.improved import improve, refuse, slower

RUNS = f"{API}/runs"


def stored(api: TestClient, number: int) -> dict[str, Any]:
    run: dict[str, Any] = ok(api.post(RUNS, params={"name": f"{number}.json"}, content=served_file(number)), 201)["runs"][0]
    return run


def test_see_it_do_it_remember_it(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stored(api, 1)
    address = f"{RUNS}/{run['id']}/reimport"
    same = ok(api.get(address))
    FileReadingShape.model_validate(same)
    assert [each["outcome"] for each in same["runs"]] == ["same"]
    version = improve(monkeypatch, slower)
    seen = ok(api.get(address))
    FileReadingShape.model_validate(seen)
    assert (seen["applied"], seen["from_version"], seen["to_version"]) == (False, version - 1, version)
    assert {"part": "metric", "key": "ttft_s.mean", "kind": "changed", "old": 0.05, "new": 0.1} in seen["runs"][0]["changes"]
    assert ok(api.get(f"{RUNS}/{run['id']}"))["outdated"] is True
    done = ok(api.post(address))
    assert (done["applied"], done["runs"][0]["id"], len(done["history"])) == (True, run["id"], 1)
    now = ok(api.get(f"{RUNS}/{run['id']}"))
    assert (now["outdated"], now["metrics"]["ttft_s"]["mean"], now["id"]) == (False, 0.1, run["id"])
    assert ok(api.get(address))["history"] == done["history"]


def test_what_is_due_comes_by_pages_and_as_a_filter(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [stored(api, number)["id"] for number in range(100, 103)]
    improve(monkeypatch, slower)
    found: list[int] = []
    cursor = None
    while True:
        page = ok(api.get(f"{API}/reimports", params={"limit": 2, **({"cursor": cursor} if cursor else {})}))
        OutdatedFiles.model_validate(page)
        found.extend(item["run_id"] for item in page["items"])
        cursor = page["next"]
        if cursor is None:
            break
    assert set(ids) <= set(found)
    listed = ok(api.get(RUNS, params={"outdated": "true", "limit": 500}))["items"]
    assert {item["id"] for item in listed} >= set(ids)
    assert all(item["outdated"] for item in listed)


def test_a_refusal_and_a_missing_run_are_problems(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stored(api, 200)
    improve(monkeypatch, refuse)
    assert ok(api.get(f"{RUNS}/{run['id']}/reimport"))["refused"] == "it is no longer read."
    problem(api.post(f"{RUNS}/{run['id']}/reimport"), 422, "200.json is refused now, so its runs stay as they are")
    problem(api.get(f"{RUNS}/999999/reimport"), 404, "There is no run 999999")
    problem(api.post(f"{RUNS}/999999/reimport"), 404, "There is no run 999999")


def test_runs_that_are_gone_are_removed_when_asked(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = b"\n".join(data_of(served(max_concurrency=each, tokenizer_id="gone")) for each in (1, 2))
    first, second = ok(api.post(RUNS, content=lines), 201)["runs"]
    version = improve(monkeypatch, lambda found: found[1:])
    ok(api.post(f"{RUNS}/{first['id']}/reimport"))
    assert ok(api.get(f"{RUNS}/{first['id']}"))["gone_since"] == version
    ok(api.post(f"{RUNS}/{second['id']}/reimport", params={"remove_gone": "true"}))
    problem(api.get(f"{RUNS}/{first['id']}"), 404)
