"""GET and POST /predict: the founding figures exactly, every key of the contract, grids, and refusals that name the field."""

from itertools import product
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.shapes import PredictionShape, SweepShape
from tests.answers import API, ok, problem

PREDICT = f"{API}/predict"
FOUNDING = {"model": "textbook-8b", "hardware": "textbook-h100", "calibration": "textbook"}
LLAMA = {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "calibration": "default"}
PASS_KEYS = {
    "time_s", "floor_s", "attainable_s", "compute_s", "memory_s", "comm_s", "overhead_s", "bound", "flops", "bytes",
    "intensity_flops_per_byte", "terms",
}  # fmt: skip


def test_the_founding_figures_through_get_and_post(api: TestClient) -> None:
    """8e9 parameters, 2 bytes each, 4.2e14 FLOP/s, 3.35e12 bytes/s, 2,000 tokens in and 300 out."""
    asked = ok(api.get(PREDICT))
    assert ok(api.get(PREDICT, params=FOUNDING)) == asked
    assert ok(api.post(PREDICT, json=FOUNDING)) == asked
    prefill, decode = asked["prefill"], asked["decode"]
    # 2 x 8e9 x 2,000 = 3.2e13 FLOP and 1.6e10 bytes; 3.2e13 / 4.2e14 and 1.6e10 / 3.35e12.
    assert (prefill["flops"], prefill["bytes"]) == (3.2e13, 1.6e10)
    assert prefill["time_s"] == prefill["compute_s"] == prefill["attainable_s"] == pytest.approx(0.0761905, rel=1e-6)
    assert prefill["memory_s"] == pytest.approx(0.00477612, rel=1e-6)
    assert prefill["compute_s"] / prefill["memory_s"] == pytest.approx(15.95, abs=0.005)
    assert (prefill["bound"], prefill["intensity_flops_per_byte"]) == ("compute", 2000)
    # At the specified 9.89e14.
    assert prefill["floor_s"] == pytest.approx(3.2e13 / 9.89e14)
    # 1.6e10 FLOP a token: 38.1 microseconds against 4.78 ms.
    assert decode["flops"] == 1.6e10
    assert decode["compute_s"] == pytest.approx(3.8095e-5, rel=1e-4)
    assert decode["time_s"] == decode["first_step_s"] == decode["last_step_s"] == pytest.approx(0.00477612, rel=1e-6)
    assert decode["memory_s"] / decode["compute_s"] == pytest.approx(125.4, abs=0.05)
    assert (decode["bound"], decode["intensity_flops_per_byte"]) == ("memory", 1)
    assert asked["ttft_s"] == pytest.approx(0.07619, abs=5e-6)
    assert asked["itl_s"] == pytest.approx(0.004776, abs=5e-7)
    # 0.07619 + 299 x 0.004776, of which prefill is 5.07 %.
    assert asked["total_s"] == pytest.approx(1.5043, abs=1e-4)
    assert asked["prefill_share"] == pytest.approx(0.0507, abs=5e-5)
    assert asked["ridge_flops_per_byte"] == {"peak": pytest.approx(295.2, abs=0.05), "achieved": pytest.approx(125.4, abs=0.05)}
    assert asked["tokens_per_s"] == {"request": pytest.approx(209.4, abs=0.05), "aggregate": pytest.approx(209.4, abs=0.05)}


def test_every_key_of_the_contract_is_there(api: TestClient) -> None:
    for question in (FOUNDING, LLAMA):
        answer = ok(api.post(PREDICT, json=question))
        PredictionShape.model_validate(answer)
        assert set(answer["prefill"]) == PASS_KEYS
        assert set(answer["decode"]) == PASS_KEYS | {"first_step_s", "last_step_s"}
        assert set(answer) >= {
            "ttft_s", "itl_s", "total_s", "prefill_share", "ridge_flops_per_byte", "tokens_per_s", "memory", "range", "assumptions",
            "model_version",
        }  # fmt: skip
        assert set(answer["memory"]) == {
            "weight_bytes", "kv_bytes_per_token", "kv_bytes", "activation_bytes", "capacity_bytes", "fits", "max_batch",
        }  # fmt: skip
        assert set(answer["range"]) == {"ttft_s", "itl_s"}
        assert all(sentence.endswith(".") for sentence in answer["assumptions"])
        for term in (*answer["prefill"]["terms"], *answer["decode"]["terms"]):
            assert {"name", "time_s", "flops", "bytes", "bound"} <= set(term)


def test_the_three_times_keep_their_order_and_the_parts_add_up(api: TestClient) -> None:
    for changes in ({}, {"batch": 32}, {"tp": 2}, {"weight_dtype": "int4"}, {"prompt_tokens": 32_000}, {"concurrency": 16}):
        answer = ok(api.post(PREDICT, json={**LLAMA, **changes}))
        for phase in (answer["prefill"], answer["decode"]):
            assert 0 < phase["floor_s"] <= phase["attainable_s"] <= phase["time_s"]
            assert sum(term["flops"] for term in phase["terms"]) == pytest.approx(phase["flops"])
            assert sum(term["bytes"] for term in phase["terms"]) == pytest.approx(phase["bytes"])
            assert sum(term["time_s"] for term in phase["terms"]) == pytest.approx(phase["time_s"])
        output = 300
        assert answer["ttft_s"] + (output - 1) * answer["itl_s"] == pytest.approx(answer["total_s"])
        assert answer["range"]["ttft_s"][0] <= answer["ttft_s"] <= answer["range"]["ttft_s"][1]
        assert answer["range"]["itl_s"][0] <= answer["itl_s"] <= answer["range"]["itl_s"][1]


def test_a_query_takes_every_key_of_the_request(api: TestClient) -> None:
    question = {
        **LLAMA, "prompt_tokens": 4000, "output_tokens": 100, "batch": 4, "cached_prefix_tokens": 1000, "tp": 2, "pp": 1, "ep": 1,
        "weight_dtype": "fp8", "activation_dtype": "fp8", "kv_dtype": "fp8", "engine": "vllm",
    }  # fmt: skip
    assert ok(api.get(PREDICT, params=question)) == ok(api.post(PREDICT, json=question))
    served = {**LLAMA, "concurrency": 8}
    assert ok(api.get(PREDICT, params=served)) == ok(api.post(PREDICT, json=served))


def test_post_without_keys_is_the_founding_request_in_default_mode(api: TestClient) -> None:
    assert ok(api.post(PREDICT, json={})) == ok(api.post(PREDICT, json={**FOUNDING, "calibration": "default"}))


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"model": "llama-3-1-9b"}, ("No model is called “llama-3-1-9b”", "llama-3-1-8b")),
        ({"hardware": "h100"}, ("No device is called “h100”", "h100-sxm5-80gb")),
        ({"engine": "vlm"}, ("No engine is called “vlm”", "vllm")),
        ({"model": "Llama-3.1-8B-Instrct"}, ("llama-3-1-8b",)),
    ],
)
def test_an_unknown_name_gives_near_ones(api: TestClient, question: dict[str, str], words: tuple[str, ...]) -> None:
    body = problem(api.post(PREDICT, json=question), 422, *words, "Did you mean")
    assert 0 < len(body["near"]) <= 3
    assert body["detail"] == problem(api.get(PREDICT, params=question), 422)["detail"]


def test_a_name_like_nothing_says_where_to_look(api: TestClient) -> None:
    assert problem(api.post(PREDICT, json={"model": "zzzzzzzz"}), 422, "/models page")["near"] == []


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ({"calibration": "guess"}, "calibration"),
        ({"weight_dtype": "fp99"}, "weight_dtype"),
        ({"kv_dtype": "q4_k_m"}, "kv_dtype"),
        ({"cached_prefix_tokens": 2000}, "cached_prefix_tokens"),
        ({"batch": 2, "concurrency": 2}, "batch"),
        ({"ep": 2}, "ep"),
        ({"tp": 3}, "tp"),
    ],
)
def test_a_request_that_cannot_be_priced_names_the_field(api: TestClient, question: dict[str, Any], field: str) -> None:
    assert problem(api.post(PREDICT, json={**LLAMA, **question}), 422, field)["field"] == field


@pytest.mark.parametrize(
    "question",
    [
        {"prompt_tokens": 0}, {"prompt_tokens": 10_000_001}, {"output_tokens": 0}, {"batch": 0}, {"concurrency": 0},
        {"cached_prefix_tokens": -1}, {"tp": 0}, {"prompt_tokens": 1.5}, {"prompt_tokens": None}, {"model": ""}, {"model": "x" * 201},
    ],
)  # fmt: skip
def test_a_value_out_of_range_names_its_place(api: TestClient, question: dict[str, Any]) -> None:
    problem(api.post(PREDICT, json=question), 422, f"body.{next(iter(question))}")


def test_an_empty_query_value_is_no_default(api: TestClient) -> None:
    problem(api.get(f"{PREDICT}?model="), 422, "query.model")
    problem(api.get(f"{PREDICT}?prompt_tokens="), 422, "query.prompt_tokens")


def cells(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The points of a grid in row-major order: the last axis runs fastest."""
    keys = [axis["key"] for axis in answer["axes"]]
    return [dict(zip(keys, values, strict=True)) for values in product(*(axis["values"] for axis in answer["axes"]))]


def test_a_grid_is_row_major_and_agrees_with_single_predictions(api: TestClient) -> None:
    sweep = {"weight_dtype": ["bf16", "int4"], "prompt_tokens": [500, 2000], "batch": [1, 8, 32]}
    answer = ok(api.post(PREDICT, json={**LLAMA, "sweep": sweep}))
    SweepShape.model_validate(answer)
    assert answer["axes"] == [{"key": key, "values": values} for key, values in sweep.items()]
    assert answer["refused"] == []
    points = cells(answer)
    assert len(points) == 12
    assert all(len(column) == 12 for column in answer["columns"].values())
    for place, point in enumerate(points):
        single = ok(api.post(PREDICT, json={**LLAMA, **point}))
        for key in ("ttft_s", "itl_s", "total_s"):
            assert answer["columns"][key][place] == pytest.approx(single[key]), point
        assert answer["columns"]["prefill_floor_s"][place] == pytest.approx(single["prefill"]["floor_s"])
        assert answer["columns"]["decode_s"][place] == pytest.approx(single["decode"]["time_s"])
        assert answer["columns"]["aggregate_tokens_per_s"][place] == pytest.approx(single["tokens_per_s"]["aggregate"])


def test_words_may_stand_after_numbers_among_the_axes(api: TestClient) -> None:
    sweep = {"batch": [1, 8], "hardware": ["h100-sxm5-80gb", "l4"], "output_tokens": [10, 20]}
    answer = ok(api.post(PREDICT, json={**LLAMA, "sweep": sweep}))
    for place, point in enumerate(cells(answer)):
        assert answer["columns"]["total_s"][place] == pytest.approx(ok(api.post(PREDICT, json={**LLAMA, **point}))["total_s"]), point


def test_a_cell_that_cannot_be_priced_is_null_with_its_reason(api: TestClient) -> None:
    answer = ok(api.post(PREDICT, json={**LLAMA, "sweep": {"tp": [1, 3], "prompt_tokens": [0, 100]}}))
    # Cells: (1, 0), (1, 100), (3, 0), (3, 100). Only the second is possible: 0 tokens are none, and 3 does not divide 32 heads.
    for column in ("ttft_s", "itl_s", "total_s"):
        assert [value is None for value in answer["columns"][column]] == [True, False, True, True]
    reasons = {(item["at"]["tp"], item["at"]["prompt_tokens"]): item["reason"] for item in answer["refused"]}
    assert set(reasons) == {(1, 0), (3, 0), (3, 100)}
    assert "prompt_tokens" in reasons[1, 0]
    assert "tp" in reasons[3, 100]


def test_a_name_that_is_not_known_blanks_its_part_of_the_grid(api: TestClient) -> None:
    answer = ok(api.post(PREDICT, json={**LLAMA, "sweep": {"hardware": ["l4", "l5"], "batch": [1, 2]}}))
    assert [value is None for value in answer["columns"]["ttft_s"]] == [False, False, True, True]
    (refusal,) = answer["refused"]
    assert refusal["at"] == {"hardware": "l5"}
    assert "No device is called “l5”" in refusal["reason"]


def test_expert_parallel_degrees_are_swept_too(api: TestClient) -> None:
    answer = ok(api.post(PREDICT, json={**LLAMA, "sweep": {"ep": [1, 2]}}))
    assert [value is None for value in answer["columns"]["ttft_s"]] == [False, True]
    assert answer["refused"][0]["at"] == {"ep": 2}


def test_modes_and_engines_are_swept_too(api: TestClient) -> None:
    sweep = {"calibration": ["textbook", "default"], "engine": ["vllm", "llama-cpp"]}
    answer = ok(api.post(PREDICT, json={**LLAMA, "sweep": sweep}))
    assert len(set(answer["columns"]["total_s"])) >= 3


def test_ten_thousand_cells_come_in_one_call(api: TestClient) -> None:
    sweep = {"prompt_tokens": list(range(100, 10_100, 100)), "batch": list(range(1, 101))}
    answer = ok(api.post(PREDICT, json={**LLAMA, "sweep": sweep}))
    assert all(len(column) == 10_000 for column in answer["columns"].values())
    assert None not in answer["columns"]["total_s"]
    # More prompt never takes less time: each column of the grid (same batch) grows.
    assert all(a < b for a, b in zip(answer["columns"]["ttft_s"], answer["columns"]["ttft_s"][100:], strict=False))


def test_every_refused_cell_has_its_reason_however_many(api: TestClient) -> None:
    sweep = {"cached_prefix_tokens": list(range(5000, 5100)), "prompt_tokens": list(range(1, 101))}
    answer = ok(api.post(PREDICT, json={**LLAMA, "sweep": sweep}))
    assert len(answer["refused"]) == answer["columns"]["ttft_s"].count(None) == 10_000


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        ({}, "0 points"),
        ({"prompt_tokens": list(range(1, 102)), "batch": list(range(1, 101))}, "10,100 points; one call prices 1 to 10,000"),
        ({"colour": ["red"]}, "“colour” cannot be swept; known are"),
        ({"prompt_tokens": ["many"]}, "“prompt_tokens” is swept over numbers"),
        ({"model": [8]}, "“model” is swept over names"),
        ({"model": ["nope", "never"]}, "No point of this grid can be priced"),
        ({"batch": []}, "body.sweep.batch"),
        ({key: [1] for key in ("prompt_tokens", "output_tokens", "batch", "tp", "pp")}, "body.sweep"),
    ],
)
def test_a_grid_that_cannot_be_is_refused(api: TestClient, sweep: dict[str, Any], words: str) -> None:
    problem(api.post(PREDICT, json={**LLAMA, "sweep": sweep}), 422, words)
