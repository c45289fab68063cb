"""Series over time over HTTP: the index with verdicts, points and levels, annotations, CSV."""

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.api.trends import AnnotationList, IndexShape, TrendsShape
from tests.answers import API, ok, problem
from tests.result_files import data_of, served

SERIES = f"{API}/trends/series"
NOISE = np.random.default_rng(4).normal(1, 0.01, 20)


def stored(api: TestClient, number: int, ttft_ms: float, itl_ms: float, **fields: str) -> int:
    times = {"mean_ttft_ms": ttft_ms, "mean_tpot_ms": itl_ms, "mean_itl_ms": itl_ms, "mean_e2el_ms": ttft_ms + 50 * itl_ms}
    data = data_of(served(tokenizer_id=f"t{number}", **times, vllm_version="0.9.1" if number < 10 else "0.9.2"))
    sent = api.post(f"{API}/runs", files={"file": (f"{number}.json", data)}, data={"hardware": "l40s", "project": "trends", **fields})
    found: int = ok(sent, 201)["runs"][0]["id"]
    return found


@pytest.fixture(scope="module")
def nightly(api: TestClient) -> list[int]:
    """Twenty runs; decode is 10 % slower from the eleventh on, prefill stays."""
    return [stored(api, number, 50.0 * NOISE[number], 10.0 * NOISE[-1 - number] * (1.1 if number >= 10 else 1)) for number in range(20)]


@pytest.fixture(scope="module")
def query(api: TestClient, nightly: list[int]) -> dict[str, Any]:
    """The query of that series, from the index."""
    (entry,) = [entry for entry in ok(api.get(f"{API}/trends", params={"project": "trends"}))["items"] if entry["runs"] == 20]
    return {key: value for key, value in entry["series"].items() if value is not None}


def test_the_index_names_every_series(api: TestClient, nightly: list[int], query: dict[str, Any]) -> None:
    answer = ok(api.get(f"{API}/trends", params={"project": "trends"}))
    IndexShape.model_validate(answer)
    (entry,) = answer["items"]
    assert (entry["newest_run"], entry["verdict"], entry["baseline"]) == (nightly[-1], "never compared", None)
    assert entry["title"] == "llama-3-1-8b on l40s, vllm, 100 → 51 tokens, 1 client"
    made = ok(api.post(f"{API}/baselines", json={"run": nightly[2], "name": "first"}), 201)
    (entry,) = ok(api.get(f"{API}/trends", params={"project": "trends"}))["items"]
    assert (entry["verdict"], entry["phase"], entry["baseline"]["run"]) == ("regressed", "decode", nightly[2])
    api.delete(f"{API}/baselines/{made['id']}")
    assert ok(api.get(f"{API}/trends", params={"project": "nobody's"})) == {"items": [], "next": None, "total": 0, "unplaced_runs": 0}


def test_a_series_has_both_phases_and_says_where_they_changed(api: TestClient, nightly: list[int], query: dict[str, Any]) -> None:
    answer = ok(api.get(SERIES, params=query))
    TrendsShape.model_validate(answer)
    prefill, decode, whole = answer["trends"]
    assert [(each["key"], each["stat"]) for each in answer["trends"]] == [("ttft_s", "mean"), ("itl_s", "mean"), ("e2e_s", "mean")]
    assert prefill["changes"] == []
    (change,) = decode["changes"]
    assert (change["before_run"], change["run"], change["verdict"]) == (nightly[9], nightly[10], "regressed")
    assert change["change"] == pytest.approx(0.1, abs=0.02)
    assert [level["runs"] for level in decode["levels"]] == [10, 10]
    assert [point["run"] for point in whole["points"]] == nightly
    assert [(each["run"], each["key"]) for each in answer["changed"]] == [(nightly[10], "engine_version")]


def test_one_figure_and_other_forms(api: TestClient, nightly: list[int], query: dict[str, Any]) -> None:
    (only,) = ok(api.get(SERIES, params={**query, "metric": "ttft.p50"}))["trends"]
    assert (only["key"], only["stat"], len(only["points"])) == ("ttft_s", "p50", 20)
    (rate,) = ok(api.get(SERIES, params={**query, "metric": "output_tokens_per_s"}))["trends"]
    assert rate["stat"] == "value"
    (absent,) = ok(api.get(SERIES, params={**query, "metric": "prefill.p50"}))["trends"]
    assert {point["why"] for point in absent["points"]} == {"the file does not have it"}
    rows = api.get(SERIES, params={**query, "as": "csv"}).text.splitlines()
    assert rows[0] == "key,stat,run,name,at,value,n,why,level_centre,level_low,level_high"
    assert len(rows) == 61
    figure = ok(api.get(SERIES, params={**query, "figure": "plotly"}))
    assert [trace["name"] for trace in figure["data"]][-1] == "runs"
    assert figure["data"][-1]["customdata"] == nightly


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"model": "nobody's"}, 404, "No run is in this series"),
        ({"prompt_tokens": 200}, 404, "No run is in this series"),
        ({"metric": "speed"}, 422, "There is no metric “speed”"),
        ({"metric": "itl"}, 422, "Say which statistic"),
        ({"concurrency": 0}, 422, "concurrency"),
        ({"colour": "red"}, 422, "colour"),
    ],
)
def test_what_is_not_there(api: TestClient, query: dict[str, Any], change: dict[str, Any], status: int, words: str) -> None:
    problem(api.get(SERIES, params={**query, **change}), status, words)


def test_a_length_within_5_percent_is_the_same_series(api: TestClient, query: dict[str, Any]) -> None:
    assert len(ok(api.get(SERIES, params={**query, "prompt_tokens": 104}))["trends"][0]["points"]) == 20


def test_annotations_stand_on_the_trend_and_go_with_their_run(api: TestClient, query: dict[str, Any]) -> None:
    run = stored(api, 99, 50.0, 10.0)
    made = ok(api.post(f"{API}/annotations", json={"run": run, "text": " driver 570\nto 580 "}), 201)
    assert (made["run"], made["text"]) == (run, "driver 570 to 580")
    assert made in ok(api.get(SERIES, params=query))["annotations"]
    listed = ok(api.get(f"{API}/annotations", params={"run": run}))
    AnnotationList.model_validate(listed)
    assert listed["items"] == [made]
    second = ok(api.post(f"{API}/annotations", json={"run": run, "text": "again"}), 201)
    assert [each["id"] for each in ok(api.get(f"{API}/annotations"))["items"]][:2] == [second["id"], made["id"]]
    assert api.delete(f"{API}/annotations/{second['id']}").status_code == 204
    problem(api.delete(f"{API}/annotations/{second['id']}"), 404)
    problem(api.post(f"{API}/annotations", json={"run": 10**6, "text": "x"}), 404)
    problem(api.post(f"{API}/annotations", json={"run": run, "text": " \n"}), 422, "needs words")
    api.delete(f"{API}/runs/{run}")
    assert ok(api.get(f"{API}/annotations", params={"run": run}))["items"] == []


def test_a_withheld_figure_is_no_point(api: TestClient) -> None:
    """All requests have one output token, so no decode time is there; another run of nothing but failures."""
    run = stored(api, 200, 50.0, 10.0, project="withheld")
    failed = data_of(served(completed=0, failed=20, tokenizer_id="failed"))
    ok(api.post(f"{API}/runs", files={"file": ("f.json", failed)}, data={"hardware": "l40s", "project": "withheld"}), 201)
    entries = ok(api.get(f"{API}/trends", params={"project": "withheld"}))["items"]
    for entry in entries:
        asked = {key: value for key, value in entry["series"].items() if value is not None}
        for each in ok(api.get(SERIES, params=asked))["trends"]:
            assert [point["run"] for point in each["points"] if point["value"] is not None] == [run]
