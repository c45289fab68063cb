"""GET, PATCH and DELETE of one run: what a person corrects, and what is derived anew from it."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.shapes import StoredRunShape
from tests.answers import API, ok, problem
from tests.applications import row_counts
from tests.result_files import served_file

RUNS = f"{API}/runs"
FIELDS = {"hardware": "h100-sxm5-80gb", "weight_dtype": "bf16", "tp": "1"}
_numbers = iter(range(10**6))


def stored(client: TestClient, **fields: str) -> dict[str, Any]:
    """A run of its own."""
    sent = client.post(RUNS, params={**FIELDS, **fields}, content=served_file(next(_numbers)))
    run: dict[str, Any] = ok(sent, 201)["runs"][0]
    return run


def test_one_run_has_the_documented_shape(api: TestClient) -> None:
    run = stored(api)
    StoredRunShape.model_validate(run)
    assert set(run) >= {
        "id", "url", "format", "engine", "engine_version", "model", "hardware", "devices", "tp", "weight_dtype", "started_at",
        "duration_s", "workload", "requests", "metrics", "flags", "labels", "efficiency", "warnings", "project", "tags", "notes",
    }  # fmt: skip
    assert set(run["metrics"]) >= {"ttft_s", "tpot_s", "itl_s", "chunk_gap_s", "e2e_s", "prefill_s", "queue_s"}
    for value in run["metrics"].values():
        assert value is None or value["from"] in ("samples", "reported", "derived")
        assert value is None or ("scope" in value) == ("value" in value)
    assert set(run["efficiency"]) >= {"decode_floor_s", "mbu", "prefill_floor_s", "mfu", "against"}


def test_the_share_of_the_limit_by_hand(api: TestClient) -> None:
    run = stored(api, model="textbook-8b", hardware="textbook-h100")
    # A model stated by its round size is priced as the text does: 1.6e10 bytes in 10 ms of 3.35e12 bytes/s; the first token of 100
    # prompt tokens took 50 ms, 2 x 8e9 x 100 FLOP of 9.89e14 FLOP/s.
    assert run["efficiency"]["decode_floor_s"] == pytest.approx(1.6e10 / 3.35e12)
    assert run["efficiency"]["mbu"] == pytest.approx(1.6e10 / 0.01 / 3.35e12)
    assert run["efficiency"]["mfu"] == pytest.approx(1.6e12 / 0.05 / 9.89e14)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"label": "after  a\tfix"}, {"label": "after a fix"}),
        ({"label": None}, {"label": None}),
        ({"label": ""}, {"label": None}),
        ({"engine": "sglang"}, {"engine": "sglang"}),
        ({"devices": 2, "tp": 2}, {"devices": 2, "tp": 2}),
        ({"devices": None}, {"devices": None}),
        ({"weight_dtype": "INT8"}, {"weight_dtype": "int8"}),
        ({"kv_dtype": "fp8"}, {"kv_dtype": "fp8"}),
        ({"tags": ["b", "a", "b", " "]}, {"tags": ["a", "b"]}),
        ({"tags": []}, {"tags": []}),
        ({"tags": None}, {"tags": []}),
        ({"notes": "line 1\nline 2"}, {"notes": "line 1\nline 2"}),
        ({"notes": None}, {"notes": ""}),
    ],
)
def test_a_patch_changes_what_it_names(api: TestClient, changes: dict[str, Any], expected: dict[str, Any]) -> None:
    run = stored(api, label="before", tags="old")
    changed = ok(api.patch(f"{RUNS}/{run['id']}", json=changes))
    assert {key: changed[key] for key in expected} == expected
    assert ok(api.get(f"{RUNS}/{run['id']}")) == changed
    derived = {"efficiency", "warnings", "flags", "said", "suggestions"}
    assert {key for key in run if run[key] != changed.get(key) and key not in derived} <= set(expected)


def test_an_empty_patch_changes_nothing(api: TestClient) -> None:
    run = stored(api)
    assert ok(api.patch(f"{RUNS}/{run['id']}", json={})) == run


def test_another_weight_format_derives_the_efficiency_anew(api: TestClient) -> None:
    run = stored(api, model="textbook-8b", hardware="textbook-h100")
    changed = ok(api.patch(f"{RUNS}/{run['id']}", json={"weight_dtype": "int8"}))
    # Half the bytes a step in the same time: half the share of the bandwidth, half the floor.
    assert changed["efficiency"]["mbu"] == pytest.approx(run["efficiency"]["mbu"] / 2, rel=0.05)
    assert changed["efficiency"]["decode_floor_s"] == pytest.approx(run["efficiency"]["decode_floor_s"] / 2, rel=0.05)
    (row,) = [item for item in ok(api.get(RUNS, params={"limit": 500}))["items"] if item["id"] == run["id"]]
    assert row["efficiency"] == changed["efficiency"]


def test_the_list_sorts_by_what_was_derived_anew(api: TestClient) -> None:
    run, beside = stored(api, hardware="nothing known"), stored(api)
    assert "efficiency" not in run
    changed = ok(api.patch(f"{RUNS}/{run['id']}", json={"hardware": "a100-sxm4-80gb"}))
    assert changed["hardware_slug"] == "a100-sxm4-80gb"
    # 2.04 TB/s against the H100's 3.35: the same 10 ms a token is a larger share of its bandwidth.
    listed = [item["id"] for item in ok(api.get(RUNS, params={"sort": "-mbu", "limit": 500}))["items"]]
    assert listed.index(run["id"]) < listed.index(beside["id"])


def test_a_device_too_slow_for_what_was_measured_withholds_the_share_of_its_limit(api: TestClient) -> None:
    # 16 GB of weights at 300 GB/s take 53 ms a token; 10 ms were measured.
    changed = ok(api.patch(f"{RUNS}/{stored(api)['id']}", json={"hardware": "l4"}))
    assert "impossible_above_roofline" in [flag["flag"] for flag in changed["flags"]]
    assert changed["efficiency"]["mbu"] is None


def test_an_unknown_device_takes_the_efficiency_away_and_says_why(api: TestClient) -> None:
    run = stored(api)
    changed = ok(api.patch(f"{RUNS}/{run['id']}", json={"hardware": "a box"}))
    assert "efficiency" not in changed
    assert changed["hardware_slug"] is None
    assert any("“a box” has no entry here" in warning for warning in changed["warnings"])
    back = ok(api.patch(f"{RUNS}/{run['id']}", json={"hardware": "h100-sxm5-80gb"}))
    assert back == run


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"tp": 0}, "body.tp"),
        ({"tp": 4097}, "body.tp"),
        ({"devices": 1.5}, "body.devices"),
        ({"label": "x" * 201}, "body.label"),
        ({"tags": ["x"] * 51}, "body.tags"),
        ({"tags": "a,b"}, "body.tags"),
        ({"notes": "x" * 20_001}, "body.notes"),
        ({"weight_dtype": "fp99"}, "weight_dtype"),
        ({"kv_dtype": "q4_k_m"}, "kv_dtype"),
        ({"id": 7}, "body.id"),
        ({"metrics": {}}, "body.metrics"),
        ({"project": "other"}, "body.project"),
    ],
)
def test_what_cannot_be_changed_is_named_and_nothing_changes(api: TestClient, changes: dict[str, Any], where: str) -> None:
    run = stored(api)
    problem(api.patch(f"{RUNS}/{run['id']}", json=changes), 422, where)
    assert ok(api.get(f"{RUNS}/{run['id']}")) == run


def test_a_run_that_is_not_there_is_404(api: TestClient) -> None:
    for method in ("GET", "PATCH", "DELETE"):
        body = {"json": {"label": "x"}} if method == "PATCH" else {}
        problem(api.request(method, f"{RUNS}/999999", **body), 404, "There is no run 999999")


def test_deleting_a_run_takes_its_file_and_everything_of_it(api: TestClient) -> None:
    before = row_counts(api)
    run = stored(api, tags="a,b")
    answer = api.delete(f"{RUNS}/{run['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert row_counts(api) == before
    problem(api.get(f"{RUNS}/{run['id']}"), 404)
    problem(api.get(f"{RUNS}/{run['id']}/original"), 404)
    problem(api.delete(f"{RUNS}/{run['id']}"), 404)


def test_a_file_stays_while_one_of_its_runs_does(api: TestClient) -> None:
    data = b"\n".join(served_file(10**6 + number) for number in range(2))
    first, second = ok(api.post(RUNS, params={"name": "pair.json"}, content=data), 201)["runs"]
    uploads = row_counts(api)["upload"]
    assert api.delete(f"{RUNS}/{first['id']}").status_code == 204
    assert api.get(f"{RUNS}/{second['id']}/original").content == data
    assert row_counts(api)["upload"] == uploads
    assert api.delete(f"{RUNS}/{second['id']}").status_code == 204
    assert row_counts(api)["upload"] == uploads - 1


def test_deleted_bytes_can_come_again(api: TestClient) -> None:
    data = served_file(10**7)
    first = ok(api.post(RUNS, content=data), 201)["runs"][0]
    api.delete(f"{RUNS}/{first['id']}")
    ok(api.post(RUNS, content=data), 201)
