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
