"""GET /runs: filters, search, order, pages, CSV."""

import base64
import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.shapes import RunList
from tests.answers import API, ok, problem, strict
from tests.applications import served_from
from tests.result_files import served_file

RUNS = f"{API}/runs"
# Label, what its uploader says, and what the file says.
STORED: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("alpha", {"hardware": "h100-sxm5-80gb", "tags": "nightly,eu", "project": "team"}, {"max_concurrency": 1}),
    ("Beta", {"hardware": "l4", "tags": "nightly"}, {"max_concurrency": 2, "mean_e2el_ms": 1050.0, "mean_tpot_ms": 20.0}),
    ("gamma", {"hardware": "GPU of ours", "engine": "sglang"}, {"max_concurrency": 4, "model_id": "acme/tiny"}),
    ("delta", {"tags": "EU"}, {"max_concurrency": 8, "model_id": "acme/tiny"}),
    ("50%_off", {"hardware": "h100-sxm5-80gb"}, {"max_concurrency": 16}),
]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Five runs, stored in the order of STORED."""
    with served_from(tmp_path_factory.mktemp("list")) as client:
        for number, (label, fields, changes) in enumerate(STORED):
            ok(client.post(RUNS, params={"label": label, "name": f"{label}.json", **fields}, content=served_file(number, **changes)), 201)
        yield client


def labels(client: TestClient, **query: Any) -> list[str]:
    return [run["label"] for run in ok(client.get(RUNS, params=query))["items"]]


def test_an_item_is_the_run_summary(stored: TestClient) -> None:
    answer = ok(stored.get(RUNS))
    RunList.model_validate(answer)
    assert answer["next"] is None
    for item in answer["items"]:
        alone = ok(stored.get(f"{RUNS}/{item['id']}"))
        assert item == {key: value for key, value in alone.items() if key != "suggestions"}, "only those are left out of a list"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"alpha", "Beta", "gamma", "delta", "50%_off"}),
        ({"model": "llama-3-1-8b"}, {"alpha", "Beta", "50%_off"}),
        ({"model": "meta-llama/Llama-3.1-8B"}, {"alpha", "Beta", "50%_off"}),
        ({"model": "ACME/tiny"}, {"gamma", "delta"}),
        ({"hardware": "h100-sxm5-80gb"}, {"alpha", "50%_off"}),
        ({"hardware": "gpu of ours"}, {"gamma"}),
        ({"engine": "SGLang"}, {"gamma"}),
        ({"format": "vllm_bench_serve"}, {"alpha", "Beta", "gamma", "delta", "50%_off"}),
        ({"format": "llama_bench"}, set()),
        ({"tag": "nightly"}, {"alpha", "Beta"}),
        ({"tag": "eu"}, {"alpha"}),
        ({"project": "team"}, {"alpha"}),
        ({"project": "default", "tag": "nightly"}, {"Beta"}),
        ({"q": "tiny GAMMA"}, {"gamma"}),
        ({"q": "nightly l4"}, {"Beta"}),
        ({"q": "delta.json"}, {"delta"}),
        ({"q": "50%"}, {"50%_off"}),
        ({"q": "_"}, {"50%_off"}),
        ({"q": "h100", "model": "llama-3-1-8b", "hardware": "l4"}, set()),
    ],
)
def test_filters(stored: TestClient, query: dict[str, str], found: set[str]) -> None:
    assert set(labels(stored, **query)) == found


def test_a_day_bounds_the_list(stored: TestClient) -> None:
    """These files do not say when they were measured, so they count from when they came: now."""
    everything = {label for label, *_ in STORED}
    assert set(labels(stored, since="2000-01-01")) == everything
    assert labels(stored, until="2000-01-01") == []
    assert set(labels(stored, until="9999-12-31")) == everything
    assert labels(stored, since="9999-12-31") == []


@pytest.mark.parametrize(
    ("query", "inside"),
    [
        ({"since": "2026-03-02T01:15:14Z"}, True),
        ({"since": "2026-03-02T01:15:15Z"}, False),
        ({"until": "2026-03-02T01:15:15Z"}, True),
        ({"until": "2026-03-02T01:15:14Z"}, False),
        ({"since": "2026-03-02"}, True),
        ({"until": "2026-03-02"}, False),
        ({"since": "2026-03-02", "until": "2026-03-03"}, True),
        ({"since": "2026-03-02T03:15:14+02:00"}, True),
        ({"since": "2026-03-02T03:15:15+02:00"}, False),
    ],
)
def test_a_moment_bounds_the_list_to_the_second(api: TestClient, query: dict[str, str], inside: bool) -> None:
    """`since` is inclusive, `until` exclusive, of the time in the file: 2026-03-02T01:15:14Z."""
    pair = (Path(__file__).parents[1] / "data/llama_bench/2026-03_pair.json").read_bytes()
    run = strict(api.post(RUNS, content=pair))["runs"][0]
    assert run["started_at"] == "2026-03-02T01:15:14Z"
    assert bool(labels(api, **query)) == inside


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("id", ["alpha", "Beta", "gamma", "delta", "50%_off"]),
        ("-id", ["50%_off", "delta", "gamma", "Beta", "alpha"]),
        ("label", ["50%_off", "alpha", "Beta", "delta", "gamma"]),
        ("-label", ["gamma", "delta", "Beta", "alpha", "50%_off"]),
        ("concurrency", ["alpha", "Beta", "gamma", "delta", "50%_off"]),
        ("-concurrency", ["50%_off", "delta", "gamma", "Beta", "alpha"]),
    ],
)
def test_order(stored: TestClient, sort: str, order: list[str]) -> None:
    assert labels(stored, sort=sort) == order


@pytest.mark.parametrize("sort", ["mbu", "-mbu", "mfu", "-mfu"])
def test_runs_without_a_share_of_the_limit_come_last_in_either_order(stored: TestClient, sort: str) -> None:
    shares = [run.get("efficiency", {}).get(sort.removeprefix("-")) for run in ok(stored.get(RUNS, params={"sort": sort}))["items"]]
    known = [share for share in shares if share is not None]
    assert shares == [*known, *[None] * (5 - len(known))]
    assert known == sorted(known, reverse=sort.startswith("-"))
    assert known


def test_an_order_that_is_not_there_lists_those_that_are(stored: TestClient) -> None:
    body = problem(stored.get(RUNS, params={"sort": "colour"}), 422, "happened_at", "mbu", "leading minus")
    assert body["field"] == "sort"


@pytest.mark.parametrize("sort", ["-happened_at", "label", "-mbu", "concurrency"])
@pytest.mark.parametrize("limit", [1, 2, 4])
def test_pages_together_are_the_whole_list(stored: TestClient, sort: str, limit: int) -> None:
    whole = labels(stored, sort=sort)
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(6):
        query = {"sort": sort, "limit": limit, **({"cursor": cursor} if cursor else {})}
        answer = ok(stored.get(RUNS, params=query))
        seen += [run["label"] for run in answer["items"]]
        cursor = answer["next"]
        if cursor is None:
            break
        assert len(answer["items"]) == limit
    assert seen == whole


def test_a_page_after_the_last_run_is_none(stored: TestClient) -> None:
    assert ok(stored.get(RUNS, params={"limit": 5}))["next"] is None


def cursor_of(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode()


@pytest.mark.parametrize(
    "cursor",
    [
        "nonsense",
        "",
        "x" * 400,
        cursor_of("label", "x", 1),
        cursor_of("-happened_at", "x", 1),
        cursor_of("-happened_at", "0001-01-01T00:00:00+14:00", 1),
        cursor_of("-happened_at", "2026-01-01T00:00:00+00:00", 2**64),
        cursor_of("-happened_at", "2026-01-01T00:00:00+00:00", -1),
        cursor_of("-happened_at", float("nan"), 1),
        cursor_of("-happened_at", {"a": 1}, 1),
        cursor_of("-happened_at"),
        base64.urlsafe_b64encode(b"[" * 300).decode(),
    ],
)
def test_a_cursor_of_another_list_is_refused(stored: TestClient, cursor: str) -> None:
    assert problem(stored.get(RUNS, params={"cursor": cursor}), 422, "start again without it")["field"] == "cursor"


@pytest.mark.parametrize("limit", [0, -1, 501, "many"])
def test_a_limit_is_1_to_500(stored: TestClient, limit: Any) -> None:
    problem(stored.get(RUNS, params={"limit": limit}), 422, "query.limit")


def test_a_search_of_too_many_words_is_refused(stored: TestClient) -> None:
    problem(stored.get(RUNS, params={"q": " ".join("abcdefghijklm")}), 422, "at most 12 words")
    problem(stored.get(RUNS, params={"q": "x" * 201}), 422, "query.q")


@pytest.mark.parametrize("how", [{"params": {"as": "csv"}}, {"headers": {"accept": "text/csv"}}])
def test_the_same_list_as_csv(stored: TestClient, how: dict[str, Any]) -> None:
    answer = stored.get(RUNS, **how)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="runs.csv"'
    assert answer.headers["x-content-type-options"] == "nosniff"
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    listed = ok(stored.get(RUNS))["items"]
    assert [row["label"] for row in rows] == [run["label"] for run in listed]
    for row, run in zip(rows, listed, strict=True):
        assert int(row["id"]) == run["id"]
        assert float(row["ttft_mean_s"]) == run["metrics"]["ttft_s"]["mean"]
        assert row["hardware_slug"] == (run["hardware_slug"] or "")
        mbu = run.get("efficiency", {}).get("mbu")
        assert row["mbu"] == ("" if mbu is None else repr(mbu))


def test_json_can_be_asked_for_against_the_header(stored: TestClient) -> None:
    assert ok(stored.get(RUNS, params={"as": "json"}, headers={"accept": "text/csv"}))["items"]
