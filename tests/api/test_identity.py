"""The identity over HTTP: words of file and person side by side, suggestions, and what takes a word back."""

from typing import Any

from fastapi.testclient import TestClient

from app.api.shapes import StoredRunShape
from tests.answers import API, ok, problem
from tests.result_files import served_file

RUNS = f"{API}/runs"


def stored(api: TestClient, number: int, name: str = "report.json", **fields: str) -> dict[str, Any]:
    run: dict[str, Any] = ok(api.post(RUNS, params={"name": name, **fields}, content=served_file(number, tp=2)), 201)["runs"][0]
    StoredRunShape.model_validate(run)
    return run


def test_all_degrees_and_formats_are_taken_with_the_file_and_later(api: TestClient) -> None:
    fields = {"pp": 2, "ep": 4, "dp": 8, "kv_dtype": "fp8"}
    first = stored(api, 1, **{key: str(value) for key, value in fields.items()})
    later = ok(api.patch(f"{RUNS}/{stored(api, 2)['id']}", json=fields))
    for run in (first, later):
        assert {key: run[key] for key in fields} == fields
        assert run["said"]["person"] == fields
        assert run["said"]["file"] == {"model": "meta-llama/Llama-3.1-8B", "engine": "vllm", "tp": 2}
    problem(api.patch(f"{RUNS}/{first['id']}", json={"ep": 0}), 422, "body.ep")


def test_null_takes_a_word_back(api: TestClient) -> None:
    run = stored(api, 3, tp="8", hardware="h100-sxm5-80gb")
    assert (run["tp"], run["hardware"], "efficiency" in run) == (8, "h100-sxm5-80gb", True)
    back = ok(api.patch(f"{RUNS}/{run['id']}", json={"tp": None, "hardware": None}))
    assert (back["tp"], back["hardware"], back["said"]["person"]) == (2, None, {})
    assert "efficiency" not in back


def test_suggestions_come_with_one_run_and_not_with_lists(api: TestClient) -> None:
    run = stored(api, 4, name="results/h200/vllm_fp8.json")
    hardware = {
        "key": "hardware", "value": "h200-sxm-141gb", "candidates": ["h200-sxm-141gb"], "evidence": ["from the folder: h200"],
    }  # fmt: skip
    assert run["suggestions"][0] == hardware
    assert ok(api.get(f"{RUNS}/{run['id']}"))["suggestions"] == run["suggestions"]
    assert all("suggestions" not in item for item in ok(api.get(RUNS))["items"])
    accepted = ok(api.patch(f"{RUNS}/{run['id']}", json={"hardware": "h200-sxm-141gb", "weight_dtype": "fp8"}))
    assert accepted["suggestions"] == []
    assert accepted["efficiency"]["mbu"] > 0


def test_the_same_bytes_with_other_words_correct_the_run(api: TestClient) -> None:
    first = stored(api, 5)
    again = ok(api.post(RUNS, params={"ep": "2"}, content=served_file(5, tp=2)))
    assert (again["runs"][0]["id"], again["runs"][0]["ep"]) == (first["id"], 2)
