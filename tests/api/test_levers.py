"""GET /runs/{id}/levers."""

import pytest
from fastapi.testclient import TestClient

from app.domain.diagnosis.vocabulary import LEVERS
from tests.answers import API, ok, problem
from tests.result_files import data_of, served


def stored(client: TestClient, **fields: str) -> int:
    sent = client.post(f"{API}/runs", content=data_of(served()), params=fields)
    number: int = ok(sent, sent.status_code)["runs"][0]["id"]
    return number


def test_the_largest_effect_comes_first_in_the_order_asked_for(api: TestClient) -> None:
    number = stored(api, model="llama-3-1-8b", hardware="h100-sxm5-80gb", tp="1", weight_dtype="bf16")
    for sort, key in (("total", "total_s"), ("prefill", "ttft_s"), ("decode", "itl_s")):
        found = ok(api.get(f"{API}/runs/{number}/levers", params={"sort": sort}))
        assert found["sort"] == sort
        assert {each["lever"] for each in found["levers"]} == set(LEVERS)
        priced = [each["expected"] for each in found["levers"] if each["expected"] and not each["expected"]["bound"]]
        ratios = [each[key][1] / each[key][0] for each in priced]
        assert ratios == sorted(ratios)
        assert all(each["expected"] or each["why_not"] for each in found["levers"])


def test_a_run_without_a_prediction_says_why_it_has_no_levers(api: TestClient) -> None:
    found = ok(api.get(f"{API}/runs/{stored(api, model='nobody-knows', hardware='some-device')}/levers"))
    assert found["levers"] == []
    assert "choose one under Edit" in found["reason"]


@pytest.mark.parametrize(("address", "status"), [("999999/levers", 404), ("1/levers?sort=speed", 422)])
def test_what_cannot_be_answered(api: TestClient, address: str, status: int) -> None:
    stored(api)
    problem(api.get(f"{API}/runs/{address}"), status)
