"""GET /predict/change and /predict/map: the levers and the maps of a question, and refusals that name the key."""

import pytest
from fastapi.testclient import TestClient

from app.api.shapes import ChangeShape, MapShape
from tests.answers import API, ok, problem

LLAMA = {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "calibration": "default"}


def test_a_change_answers_before_after_and_each_lever_alone(api: TestClient) -> None:
    asked = ok(api.get(f"{API}/predict/change", params={"bandwidth_log2": 1, "flops_log2": -1}))
    ChangeShape.model_validate(asked)
    plain = ok(api.get(f"{API}/predict"))
    del plain["nearest"]
    assert asked["before"] == plain
    # Half the arithmetic doubles prefill, twice the bandwidth halves a step.
    assert asked["after"]["ttft_s"] == pytest.approx(2 * asked["before"]["ttft_s"])
    assert asked["after"]["itl_s"] == pytest.approx(asked["before"]["itl_s"] / 2)
    levers = {item["lever"]: item for item in asked["levers"]}
    assert set(levers) == {"bandwidth", "flops", "weight_bytes", "batch", "tp"}
    assert levers["bandwidth"]["prefill_unmoved"].startswith("it waits for its arithmetic")
    assert levers["bandwidth"]["decode_unmoved"] is None
    assert levers["batch"]["aggregate_tokens_per_s_ratio"] == pytest.approx(2)


def test_a_change_that_cannot_be_priced_keeps_the_question(api: TestClient) -> None:
    asked = ok(api.get(f"{API}/predict/change", params={**LLAMA, "weight_dtype": "fp32", "weight_bytes_log2": 1}))
    assert asked["after"] is None
    assert "No format has 8 bytes per weight" in asked["refused"]
    assert asked["before"]["itl_s"] > 0


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"bandwidth_log2": 0.1}, "bandwidth_log2"),
        ({"bandwidth_log2": 9}, "bandwidth_log2"),
        ({"tp_log2": "x"}, "tp_log2"),
        ({"tp": 3}, "tp"),
    ],
)
def test_a_wrong_lever_is_refused_by_its_key(api: TestClient, query: dict[str, str | float], named: str) -> None:
    assert named in problem(api.get(f"{API}/predict/change", params={**LLAMA, **query}), 422)["detail"]


@pytest.mark.parametrize("over", ["prompt", "context", "tp"])
def test_a_map_has_a_row_a_batch_and_its_drawing(api: TestClient, over: str) -> None:
    query = {**LLAMA, "over": over, "show": "throughput"}
    found = ok(api.get(f"{API}/predict/map", params=query))
    MapShape.model_validate(found)
    rows, columns = len(found["y"]["values"]), len(found["x"]["values"])
    assert [len(row) for row in found["values"]] == [columns] * rows
    assert found["metric"] == {"key": "throughput", "unit": "tokens/s", "phase": "decode"}
    drawn = ok(api.get(f"{API}/predict/map", params={**query, "figure": "plotly"}))
    assert drawn["data"][0]["type"] == "heatmap"


def test_a_map_of_an_unknown_kind_is_refused(api: TestClient) -> None:
    assert "over" in problem(api.get(f"{API}/predict/map", params={"over": "depth"}), 422)["detail"]


def test_rates_of_a_deployment_rise_to_the_most_it_answers(api: TestClient) -> None:
    asked = {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "engine": "vllm", "calibration": "default", "prompt_tokens": 1000}
    asked |= {"output_tokens": 100, "concurrency": 7, "tp": 2}
    found = ok(api.get(f"{API}/predict/rates", params=asked))
    assert found["devices"] == 2
    assert found["within_target"] is None
    columns = [[row[key] for row in found["rows"]] for key in ("requests_per_s", "in_flight", "output_tokens_per_s")]
    columns += [[row[key]["mean"] for row in found["rows"]] for key in ("ttft_s", "itl_s")]
    assert all(column == sorted(column) for column in columns)
    most = found["at_most_requests_per_s"]
    assert [row["requests_per_s"] / most for row in found["rows"]] == pytest.approx([0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95])
    # A row is the prediction at its rate.
    row = found["rows"][2]
    at_rate = {**{key: value for key, value in asked.items() if key != "concurrency"}, "request_rate_per_s": row["requests_per_s"]}
    one = ok(api.get(f"{API}/predict", params=at_rate))
    assert one["ttft_s"] == pytest.approx(row["ttft_s"]["mean"], rel=0.05)
    # Half-way in the target, and one that nothing keeps.
    within = ok(api.get(f"{API}/predict/rates", params={**asked, "tpot_s": row["itl_s"]["mean"]}))["within_target"]
    assert (within["ttft_s"], within["tpot_s"], within["share"]) == (None, row["itl_s"]["mean"], None)
    assert within["requests_per_s"] == pytest.approx(row["requests_per_s"])
    assert ok(api.get(f"{API}/predict/rates", params={**asked, "ttft_s": 1e-6}))["within_target"]["requests_per_s"] is None
    assert problem(api.get(f"{API}/predict/rates", params={**asked, "prefill_replicas": 1}), 422)["field"] == "open_loop"
    assert problem(api.get(f"{API}/predict/rates", params={**asked, "ttft_s": 0}), 422)


def test_a_share_of_the_requests_keeps_a_target_up_to_a_lower_rate(api: TestClient) -> None:
    asked = {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "engine": "vllm", "calibration": "default", "prompt_tokens": 500}
    asked |= {"output_tokens": 50}
    target = {"ttft_s": 0.15, "tpot_s": 0.02}

    def most(share: float, **bounds: float) -> float | None:
        found = ok(api.get(f"{API}/predict/rates", params={**asked, **target, **bounds, "share": share}))["within_target"]
        assert found["share"] == share
        rate: float | None = found["share_requests_per_s"]
        return rate

    half, nearly_all = most(0.5), most(0.99)
    assert half is not None
    assert nearly_all is not None
    assert 0 < nearly_all < half
    # At that rate so many keep it, a tenth above no longer.
    for rate, keeps in ((nearly_all, True), (1.1 * nearly_all, False)):
        body = {**asked, "arrivals": {"request_rate_per_s": rate, "requests": 500}, "target": target}
        assert (ok(api.post(f"{API}/predict", json=body))["served"]["goodput"]["share"] >= 0.99) == keeps
    assert most(0.99, ttft_s=1e-6) is None
    assert problem(api.get(f"{API}/predict/rates", params={**asked, "share": 1.5}), 422)
    # What is too long to simulate is refused by the key that asks for it; the means have no such bound.
    endless = {**asked, **target, "output_tokens": 60_000}
    assert problem(api.get(f"{API}/predict/rates", params={**endless, "share": 0.99}), 422)["field"] == "share"
    assert ok(api.get(f"{API}/predict/rates", params=endless))["within_target"]["share"] is None
