"""The same journey on SQLite and on PostgreSQL: upload, list, correct, look, compare, clone, delete."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.services.delivering import deliver_due
from tests.answers import API, ok, problem
from tests.applications import context_of, row_counts, served_from
from tests.measured_loads import ENGINE, GRID, report
from tests.postgres import own_database
from tests.result_files import data_of, served, served_file, served_in_detail

RUNS = f"{API}/runs"
KNOWN = {"hardware": "h100-sxm5-80gb", "model": "llama-3-1-8b", "weight_dtype": "bf16"}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)], scope="module")
def on(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An application on each kind of database."""
    folder = tmp_path_factory.mktemp("both")
    if request.param == "sqlite":
        with served_from(folder) as client:
            yield client
        return
    with own_database(request.getfixturevalue("postgres_server")) as url, served_from(folder, database_url=url) as client:
        yield client


def test_the_server_is_ready(on: TestClient) -> None:
    assert ok(on.get("/readyz"))["status"] == "ready"


def test_a_run_from_upload_to_deletion(on: TestClient) -> None:
    before = row_counts(on)
    fields = {**KNOWN, "tags": "Nightly,eu", "label": "ünïcode ✓ 中文"}
    run = ok(on.post(RUNS, files={"file": ("d.json", data_of(served_in_detail()))}, data=fields), 201)["runs"][0]
    number = run["id"]
    assert ok(on.get(f"{RUNS}/{number}")) == run
    assert on.get(f"{RUNS}/{number}/original").content == data_of(served_in_detail())
    assert [row["ttft_s"] for row in ok(on.get(f"{RUNS}/{number}/requests"))["items"]] == [0.1, 0.2, 0.3, None, 0.4]
    for query in ({"tag": "Nightly"}, {"q": "ÜNÏCODE nightly"}, {"hardware": "H100-SXM5-80GB"}, {"sort": "-mbu"}, {"sort": "label"}):
        assert number in [item["id"] for item in ok(on.get(RUNS, params=query))["items"]], query
    assert ok(on.post(RUNS, content=data_of(served_in_detail())), 200)["runs"][0]["id"] == number
    changed = ok(on.patch(f"{RUNS}/{number}", json={"tp": 2, "tags": ["x"], "notes": "a\nb", "label": None}))
    assert (changed["tp"], changed["tags"], changed["notes"], changed["label"]) == (2, ["x"], "a\nb", None)
    assert changed["efficiency"]["mbu"] < run["efficiency"]["mbu"]
    for part in ("decomposition", "roofline"):
        ok(on.get(f"{RUNS}/{number}/{part}"))
    assert on.delete(f"{RUNS}/{number}").status_code == 204
    problem(on.get(f"{RUNS}/{number}"), 404)
    assert row_counts(on) == before


def test_two_runs_are_compared(on: TestClient) -> None:
    base = ok(on.post(RUNS, content=data_of(served())), 201)["runs"][0]["id"]
    other = ok(on.post(RUNS, content=data_of(served(mean_ttft_ms=100.0, mean_e2el_ms=600.0))), 201)["runs"][0]["id"]
    answer = ok(on.get(f"{API}/compare", params={"base": base, "other": other}))
    assert (answer["phase"], answer["attribution"]["total_s"]) == ("prefill", pytest.approx(0.05))


def test_pages_of_a_list_in_any_order(on: TestClient) -> None:
    for number in range(5):
        label = ["b", "A", "c", "ä", "_"][number]
        sent = on.post(RUNS, params={"label": label, "project": "pages"}, content=served_file(100 + number, max_concurrency=number + 1))
        ok(sent, 201)
    for sort in ("label", "-label", "concurrency", "-concurrency", "-happened_at", "mbu"):
        whole = [item["id"] for item in ok(on.get(RUNS, params={"project": "pages", "sort": sort}))["items"]]
        assert len(whole) == 5
        seen: list[int] = []
        cursor: dict[str, str] = {}
        while len(seen) < 5:
            page: dict[str, Any] = ok(on.get(RUNS, params={"project": "pages", "sort": sort, "limit": 2, **cursor}))
            seen += [item["id"] for item in page["items"]]
            cursor = {"cursor": page["next"]} if page["next"] else {}
        assert seen == whole, sort


def test_hostile_words_and_numbers_store_alike(on: TestClient) -> None:
    text = "a\x00b\u202e'; DROP TABLE run; --%_\\"
    data = data_of(served(model_id=text, tokenizer_id="hostile")).replace(b'"mean_ttft_ms": 50.0', b'"mean_ttft_ms": NaN')
    run = ok(on.post(RUNS, params={"label": text, "tags": text, "name": text}, content=data), 201)["runs"][0]
    assert run["model"] == run["label"] == "ab'; DROP TABLE run; --%_\\"
    assert run["metrics"]["ttft_s"]["mean"] is None
    assert run["id"] in [item["id"] for item in ok(on.get(RUNS, params={"q": "%_\\"}))["items"]]
    assert ok(on.get(RUNS, params={"q": "\x00"})) is not None
    problem(on.get(f"{RUNS}/{2**63 - 1}"), 404)


def test_profiles(on: TestClient) -> None:
    body = {"clone_of": "h100-sxm5-80gb", "name": "Ours", "notes": "ünï\x00"}
    created = ok(on.post(f"{API}/hardware", json=body), 201)
    assert ok(on.get(f"{API}/hardware/ours")) == created
    problem(on.post(f"{API}/hardware", json=body), 409)
    ok(on.patch(f"{API}/hardware/ours", json={"tdp_w": 500}))
    ok(on.post(f"{API}/models", json={"clone_of": "llama-3-1-8b", "name": "Ours"}), 201)
    problem(on.delete(f"{API}/hardware/h100-sxm5-80gb"), 409)
    for kind in ("hardware", "models"):
        assert on.delete(f"{API}/{kind}/ours").status_code == 204


def test_many_at_once_store_each_file_once(on: TestClient) -> None:
    """Eight clients send four files, each file twice: four runs, each answered twice with the same number."""

    def send(number: int) -> tuple[int, int]:
        answer = on.post(RUNS, params={"project": "race"}, content=served_file(200 + number % 4))
        assert answer.status_code in (200, 201), answer.text
        return number % 4, answer.json()["runs"][0]["id"]

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(send, range(8)))
    assert len(found) == 4
    assert len(ok(on.get(RUNS, params={"project": "race"}))["items"]) == 4


def test_a_calibration_is_fitted_kept_and_deleted(on: TestClient) -> None:
    """Eight runs on a device of its own; the fit is read back from the database to the last digit."""
    for number, (clients, prompt) in enumerate(GRID):
        fields = {"hardware": "h200-sxm-141gb", "weight_dtype": "bf16", "project": "calibration"}
        ok(on.post(RUNS, files={"file": (f"{number}.json", report(clients, prompt))}, data=fields), 201)
    made = ok(on.post(f"{API}/calibrations", json={"hardware": "h200-sxm-141gb", "engine": ENGINE}), 201)
    assert ok(on.get(f"{API}/calibrations/{made['id']}")) == made
    again = ok(on.post(f"{API}/calibrations", json={"hardware": "h200-sxm-141gb", "engine": ENGINE}), 201)
    assert {**again, "id": made["id"], "created_at": made["created_at"]} == made
    assert on.delete(f"{API}/calibrations/{again['id']}").status_code == 204
    assert [item["id"] for item in ok(on.get(f"{API}/calibrations"))["items"]] == [made["id"]]


def test_a_baseline_is_set_found_judged_by_and_goes_with_its_run(on: TestClient) -> None:
    runs = []
    for number, itl in enumerate((10.0, 10.1, 9.9, 12.0)):
        data = served_file(300 + number, mean_e2el_ms=50 + 50 * itl, mean_tpot_ms=itl)
        fields = {"hardware": "l40s", "project": "baselines"}
        runs.append(ok(on.post(RUNS, files={"file": (f"{number}.json", data)}, data=fields), 201)["runs"][0]["id"])
    made = ok(on.post(f"{API}/baselines", json={"run": runs[0], "name": "ünï ✓"}), 201)
    problem(on.post(f"{API}/baselines", json={"run": runs[1]}), 409)
    assert ok(on.get(f"{API}/baselines", params={"project": "baselines"}))["items"] == [made]
    for run, verdict in ((runs[2], "pass"), (runs[3], "fail")):
        assert ok(on.get(f"{API}/gate", params={"base": "baseline", "run": run, "spec": "itl.mean>+5%"}))["verdict"] == verdict
    moved = ok(on.patch(f"{API}/baselines/{made['id']}", json={"run": runs[1]}))
    assert (moved["run"], moved["created_at"]) == (runs[1], made["created_at"])
    page = on.get("/runs", params={"project": "baselines"}).text
    assert (page.count("is the baseline"), page.count("decode regressed")) == (1, 1)
    assert on.delete(f"{RUNS}/{runs[1]}").status_code == 204
    problem(on.get(f"{API}/baselines/{made['id']}"), 404)
    for run in (runs[0], *runs[2:]):
        assert on.delete(f"{RUNS}/{run}").status_code == 204


def _once_tried(on: TestClient, hook: int, within_s: float = 30.0) -> dict[str, Any]:
    """The one delivery of a target, as soon as an attempt's end is noted, or as it is when the time is over."""
    until = time.monotonic() + within_s
    while True:
        (told,) = ok(on.get(f"{API}/webhooks/{hook}/deliveries"))["items"]
        if told["last_problem"] is not None or time.monotonic() > until:
            return dict(told)
        time.sleep(0.05)


def test_a_series_over_time_with_a_remark_and_a_target_that_is_told(on: TestClient) -> None:
    """Nine runs, then one that decodes 20 % slower; the target lies where nothing may be connected to, and that is what is noted."""
    hook = ok(on.post(f"{API}/webhooks", json={"url": "http://169.254.169.254/hook", "name": "ünï ✓"}), 201)
    runs = []
    for number in range(10):
        itl = 12.0 if number == 9 else 10.0 + number / 100
        data = served_file(400 + number, mean_e2el_ms=50 + 50 * itl, mean_tpot_ms=itl)
        sent = on.post(RUNS, files={"file": (f"{number}.json", data)}, data={"hardware": "l40s", "project": "trends"})
        runs.append(ok(sent, 201)["runs"][0]["id"])
        if number == 0:
            ok(on.post(f"{API}/baselines", json={"run": runs[0]}), 201)
    (entry,) = ok(on.get(f"{API}/trends", params={"project": "trends"}))["items"]
    assert (entry["runs"], entry["newest_run"], entry["verdict"], entry["phase"]) == (10, runs[9], "regressed", "decode")
    note = ok(on.post(f"{API}/annotations", json={"run": runs[9], "text": "ünï ✓"}), 201)
    query = {key: value for key, value in entry["series"].items() if value is not None}
    found = ok(on.get(f"{API}/trends/series", params=query))
    assert [point["run"] for point in found["trends"][1]["points"]] == runs
    assert found["annotations"] == [note]
    (told,) = ok(on.get(f"{API}/webhooks/{hook['id']}/deliveries"))["items"]
    assert (told["body"]["run"]["id"], told["body"]["baseline"]["run"]) == (runs[9], runs[0])
    deliver_due(context_of(on), datetime.now(UTC) + timedelta(minutes=1))
    # The application's own loop may have claimed it first: then the attempt is counted before its end is noted.
    told = _once_tried(on, hook["id"])
    assert told["state"] == "waiting"
    assert told["attempts"] >= 1
    assert "link-local" in told["last_problem"]
    assert on.delete(f"{API}/webhooks/{hook['id']}").status_code == 204
    for run in runs:
        assert on.delete(f"{RUNS}/{run}").status_code == 204
    assert ok(on.get(f"{API}/annotations", params={"run": runs[9]}))["items"] == []
