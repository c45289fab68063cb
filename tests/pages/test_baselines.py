"""The baseline on the pages of a run and in the list: set by one click, compared by one, in plain words."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.answers import API, ok
from tests.result_files import data_of, served


def stored(client: TestClient, itl_ms: float = 10.0, **fields: str) -> int:
    times = {"mean_tpot_ms": itl_ms, "median_tpot_ms": itl_ms, "mean_itl_ms": itl_ms, "mean_e2el_ms": 50 + 50 * itl_ms}
    sent = client.post(f"{API}/runs", files={"file": ("a.json", data_of(served(**times)))}, data={"hardware": "l40s", **fields})
    number: int = ok(sent, 201)["runs"][0]["id"]
    return number


def verdicts(client: TestClient, address: str = "/runs") -> str:
    return " ".join(client.get(address).text.split())


def test_never_compared_then_the_baseline_then_regressed(client: TestClient) -> None:
    base, slower = stored(client), stored(client, 12.0)
    assert verdicts(client).count("never compared") == 2
    made = client.post(f"/runs/{base}/baseline", data={"name": "release 1"}, follow_redirects=False)
    assert (made.status_code, made.headers["location"]) == (303, f"/runs/{base}#baseline")
    page = verdicts(client)
    assert page.count("is the baseline") == 1
    assert page.count("decode regressed") == 1
    assert "never compared" not in page
    page = verdicts(client, f"/runs/{slower}")
    assert f"/compare?base={base}&amp;other={slower}" in page
    assert "“release 1”" in page
    assert "Make this the baseline" in page
    assert "Take the baseline away" in verdicts(client, f"/runs/{base}")


def test_the_baseline_moves_by_one_click_and_goes_by_one(client: TestClient) -> None:
    first, second = stored(client), stored(client, 10.1)
    for run in (first, second):
        client.post(f"/runs/{run}/baseline")
    (only,) = ok(client.get(f"{API}/baselines"))["items"]
    assert only["run"] == second
    # What was taken away, or moved, meanwhile is told and nothing else is touched.
    assert client.post(f"/runs/{first}/baseline/delete").status_code == 404
    client.post(f"/runs/{second}/baseline/delete")
    assert ok(client.get(f"{API}/baselines"))["items"] == []
    assert verdicts(client).count("never compared") == 2


def test_a_run_that_does_not_say_what_was_measured_is_asked_to(client: TestClient) -> None:
    number: Any = ok(client.post(f"{API}/runs", content=data_of(served())), 201)["runs"][0]["id"]
    page = verdicts(client, f"/runs/{number}")
    assert "name what this run does not say" in page
    assert "Make this the baseline" not in page
    refused = client.post(f"/runs/{number}/baseline")
    assert refused.status_code == 422
    assert "does not say hardware" in refused.text


def test_a_comparison_may_name_the_baseline(client: TestClient) -> None:
    base, other = stored(client), stored(client, 12.0)
    assert client.get("/compare", params={"base": "baseline", "other": other}).status_code == 422
    client.post(f"/runs/{base}/baseline")
    page = client.get("/compare", params={"base": "baseline", "other": other})
    assert page.status_code == 200
    assert f"/api/v1/compare?base={base}&amp;other={other}" in page.text
    assert client.get("/compare", params={"base": "baseline"}).status_code == 422


@pytest.mark.parametrize("number", [0, 10**6])
def test_a_run_that_is_not_there(client: TestClient, number: int) -> None:
    assert client.post(f"/runs/{number}/baseline").status_code in (404, 422)
