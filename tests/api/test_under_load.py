"""POST /predict with a load: the closed form's parts, the simulation's percentiles and goodput, arrivals of their own, refusals."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.answers import API, ok, problem

PREDICT = f"{API}/predict"
LOADED = {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "engine": "vllm", "prompt_tokens": 1000, "output_tokens": 50}


def ask(api: TestClient, **more: Any) -> Any:
    return ok(api.post(PREDICT, json={**LOADED, **more}))


def test_clients_get_their_queue_and_what_bounds_them(api: TestClient) -> None:
    alone, loaded = ask(api), ask(api, concurrency=16)
    assert alone["served"] is None
    assert alone["queue_s"] == 0
    served = loaded["served"]
    assert served["method"] == "closed_form"
    assert served["ttft_s"]["mean"] == loaded["ttft_s"]
    assert served["front_end_s"] + served["queue_s"] + served["prefill_s"] == pytest.approx(loaded["ttft_s"])
    assert [bound["name"] for bound in served["bounds"]] == ["tokens of a pass", "KV pool", "running cap"]
    # Of drawn lengths the burst at the start weighs less, the longer a run is.
    short, long = (ask(api, concurrency=16, shortest_length=0.8, requests_per_client=each) for each in (5, 40))
    assert long["ttft_s"] < short["ttft_s"]


def test_a_simulation_adds_percentiles_and_goodput(api: TestClient) -> None:
    found = ask(api, concurrency=8, simulate=True, target={"ttft_s": 0.2, "tpot_s": 0.02})
    served = found["served"]
    assert served["method"] == "simulated"
    assert served["requests"] == 80
    assert served["ttft_s"]["p50"] <= served["ttft_s"]["p90"] <= served["ttft_s"]["p99"] <= served["ttft_s"]["max"]
    assert served["front_end_s"] + served["queue_s"] + served["prefill_s"] == pytest.approx(served["ttft_s"]["mean"])
    assert served["in_system"] == pytest.approx(served["requests_per_s"] * served["e2e_s"]["mean"])
    assert served["goodput"]["target"] == {"ttft_s": 0.2, "tpot_s": 0.02, "e2e_s": None}
    assert served["goodput"]["requests_per_s"] == pytest.approx(served["goodput"]["share"] * served["requests_per_s"])
    assert set(served["held_back"]) == {"cap", "pool", "budget"}
    assert found["ttft_s"] == ask(api, concurrency=8)["ttft_s"]  # the closed form stays at the top


def test_arrivals_are_an_open_loop_that_the_seed_decides(api: TestClient) -> None:
    arrivals = {"request_rate_per_s": 5.0, "requests": 40, "seed": 3}
    one, two = ask(api, arrivals=arrivals)["served"], ask(api, arrivals=arrivals)["served"]
    assert one == two
    assert one["clients"] is None
    assert ask(api, arrivals={**arrivals, "seed": 4})["served"]["ttft_s"] != one["ttft_s"]
    trace = ask(api, arrivals={"sent_s": [0.0, 0.0, 10.0]})["served"]
    assert trace["requests"] == 3
    assert trace["duration_s"] > 10


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"simulate": True}, "simulate"),
        ({"target": {"ttft_s": 1.0}}, "simulate"),
        ({"concurrency": 4, "arrivals": {"request_rate_per_s": 1.0}}, "arrivals"),
        ({"arrivals": {"sent_s": [2.0, 1.0]}}, "sent_s"),
        ({"concurrency": 100_000, "simulate": True}, "requests"),
        ({"acceptance": 1.5}, None),
        ({"shortest_length": 0}, None),
        ({"arrivals": {"rate": 1}}, None),
        ({"concurrency": 2, "target": {"ttft_s": -1}}, None),
    ],
)
def test_a_load_that_cannot_be_run_is_refused_by_its_field(api: TestClient, more: dict[str, Any], field: str | None) -> None:
    found = problem(api.post(PREDICT, json={**LOADED, **more}), 422)
    if field is not None:
        assert found["field"] == field


def test_pools_of_their_own_show_which_binds_and_how_to_divide_the_devices(api: TestClient) -> None:
    assert ask(api)["pools"] is None
    found = ask(api, concurrency=64, prefill_replicas=1, decode_replicas=2, transfer_bytes_per_s=2.5e10)
    pools = found["pools"]
    assert pools["devices"] == pools["prefill"]["devices"] + pools["decode"]["devices"] == 3
    assert found["interference_s"] == 0
    assert pools["first_gap_s"] == pytest.approx(pools["admission_s"] + pools["transfer"]["time_s"] + found["decode"]["time_s"])
    assert pools["binds"] in ("prefill", "decode", "transfer", "clients")
    assert pools["per_device"]["output_tokens_per_s_over_decode"] > pools["per_device"]["output_tokens_per_s_over_all"]
    assert pools["best_split"] in pools["splits"]
    asked = {**LOADED, "concurrency": 64, "prefill_replicas": 1, "decode_replicas": 2, "transfer_bytes_per_s": 2.5e10}
    assert ok(api.get(PREDICT, params={**asked, "calibration": "default"})) == found
    swept = ask(api, concurrency=64, prefill_replicas=1, sweep={"prefill_replicas": [1, 2], "decode_replicas": [1, 2]})
    assert len(swept["columns"]["queue_s"]) == 4
    for wrong in ({"prefill_replicas": 0}, {"prefill_replicas": 1, "transfer_bytes_per_s": 0}, {"prefill_replicas": 1, "prefill_tp": 3}):
        problem(api.post(PREDICT, json={**LOADED, **wrong}), 422)


def test_pools_ranks_and_stages_are_simulated(api: TestClient) -> None:
    pooled = ask(api, concurrency=8, prefill_replicas=1, decode_replicas=2, simulate=True, requests_per_client=3)["served"]
    assert pooled["first_gap_s"]["mean"] == pytest.approx(sum(pooled["first_gap_parts"].values()))
    assert 0 < pooled["pool_busy_share"]["prefill"] < pooled["pool_busy_share"]["decode"] < 1
    assert set(pooled["first_gap_parts"]) == {"admission_s", "transfer_s", "step_s"}
    for more in ({"dp": 2}, {"pp": 2}):
        found = ask(api, concurrency=8, simulate=True, requests_per_client=3, **more)["served"]
        assert found["method"] == "simulated"
        assert found["first_gap_s"] is None
        assert found["requests"] == 24
