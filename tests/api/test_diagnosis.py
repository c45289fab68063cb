"""GET /runs/{id}/diagnosis: is a stored run good, and what bounds it; and the reasons of a stored comparison."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.comparison_shapes import DiagnosisShape
from app.domain.diagnosis.vocabulary import CAUSES, LEVERS, PHASES, VERDICTS
from tests.answers import API, ok, problem
from tests.result_files import data_of, served


def stored(client: TestClient, itl_ms: float, **fields: str) -> dict[str, Any]:
    """The diagnosis of a run of an 8-billion-parameter model on an H100 at one client: 4,000 prompt tokens in 250 ms, 51 output tokens."""
    whole = 250 + 50 * itl_ms
    changes = {"mean_ttft_ms": 250.0, "median_ttft_ms": 250.0, "mean_tpot_ms": itl_ms, "median_tpot_ms": itl_ms, "mean_itl_ms": itl_ms}
    seconds = 20 * whole / 1e3
    rates = {"request_throughput": 20 / seconds, "output_throughput": 1020 / seconds, "total_token_throughput": 81020 / seconds}
    whole_request = {"mean_e2el_ms": whole, "median_e2el_ms": whole, "duration": seconds, "total_input_tokens": 80000}
    body = data_of(served(**changes, **rates, **whole_request, median_itl_ms=itl_ms))
    told = {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "tp": "1", "weight_dtype": "bf16", **fields}
    sent = client.post(f"{API}/runs", content=body, params=told)
    number = ok(sent, sent.status_code)["runs"][0]["id"]
    answer: dict[str, Any] = ok(client.get(f"{API}/runs/{number}/diagnosis"))
    return answer


def test_a_step_is_judged_by_the_bytes_it_reads(api: TestClient) -> None:
    found = stored(api, 7.0)
    DiagnosisShape.model_validate(found)
    seen = found["observables"]
    # Both denominators: the achieved bandwidth is below the specified one, so the share of it is larger.
    assert seen["share_of_specified"] == pytest.approx(seen["step_bytes"] / 0.007 / seen["bandwidth_bytes_per_s"])
    assert seen["share_of_specified"] < seen["share_of_floor"] < 1
    assert found["verdicts"]["decode"] in ("good", "ordinary", "at_roofline")
    assert found["phase"] in PHASES
    assert found["sentence"].startswith("Decode is ")


def test_a_step_at_its_floor_names_levers_and_their_size(api: TestClient) -> None:
    found = stored(api, 5.6)
    assert found["verdicts"]["decode"] in ("good", "at_roofline")
    levers = {lever["lever"]: lever for each in found["findings"] for lever in each["levers"]}
    half = levers["fewer_bytes"]["expected"]
    assert half["itl_s"][1] < 0.75 * half["itl_s"][0]
    assert half["decode_unmoved"] is None
    fast = levers["more_bandwidth"]["expected"]
    assert fast["itl_s"][1] < 0.75 * fast["itl_s"][0]
    assert fast["ttft_s"][1] > 0.9 * fast["ttft_s"][0]
    cache = levers["fp8_kv"]["expected"]
    assert cache["prefill_unmoved"].startswith("it waits for its arithmetic")
    drafts = levers["speculative_decoding"]["expected"]
    assert "3 drafted tokens" in drafts["what"]
    assert drafts["itl_s"][1] < drafts["itl_s"][0]


def test_a_step_far_from_its_floor_is_not_called_good(api: TestClient) -> None:
    found = stored(api, 60.0)
    assert found["verdict"] == "far_below"
    assert found["findings"][0]["cause"] == "wrong_device_or_offload"


def test_a_run_without_a_device_has_no_verdict(api: TestClient) -> None:
    found = stored(api, 8.0, hardware="a device that nobody knows")
    assert found["verdict"] is None
    assert found["sentence"]


def test_words_are_those_of_the_vocabulary(api: TestClient) -> None:
    found = stored(api, 5.5)
    assert found["verdict"] in VERDICTS
    assert {each["cause"] for each in found["findings"]} <= {*CAUSES, None}
    assert {lever["lever"] for each in found["findings"] for lever in each["levers"]} <= set(LEVERS)


def test_runs_of_one_deployment_are_read_as_a_curve(api: TestClient) -> None:
    # 51 tokens in 10 ms each; from 8 clients on 8 run at a time: 800 tokens/s, and the others wait.
    numbers = []
    for clients, ttft, rate in ((1, 50.0, 100.0), (8, 60.0, 795.0), (64, 3500.0, 800.0)):
        whole, seconds = ttft + 500, 640 * 51 / rate
        times = {
            f"{stat}_{name}_ms": value
            for name, value in (("ttft", ttft), ("tpot", 10.0), ("itl", 10.0), ("e2el", whole))
            for stat in ("mean", "median")
        }
        counts = {
            "completed": 640,
            "num_prompts": 640,
            "total_input_tokens": 64000,
            "total_output_tokens": 32640,
            "max_concurrency": clients,
        }
        rates = {
            "request_throughput": 640 / seconds,
            "output_throughput": rate,
            "total_token_throughput": 96640 / seconds,
            "duration": seconds,
        }
        sent = api.post(f"{API}/runs", content=data_of(served(**times, **counts, **rates)))
        numbers.append(ok(sent, sent.status_code)["runs"][0]["id"])
    found = ok(api.get(f"{API}/runs/{numbers[0]}/diagnosis", params={"with": numbers[1:]}))
    assert found["findings"][0]["cause"] == "running_sequence_cap"
    assert found["phase"] == "queue"
    assert found["observables"]["running"] == pytest.approx(8)
    assert [level["at"] for level in found["levels"]] == [1, 8, 64]
    problem(api.get(f"{API}/runs/{numbers[0]}/diagnosis", params={"with": [999999]}), 404)


def test_an_unknown_run(api: TestClient) -> None:
    problem(api.get(f"{API}/runs/999999/diagnosis"), 404)
