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


def test_a_rate_finds_the_requests_in_flight(api: TestClient) -> None:
    found = ask(api, request_rate_per_s=5.0)
    served = found["served"]
    assert served["clients"] is None
    # Little's law over the decode of 50 tokens.
    assert served["in_flight"] == pytest.approx(5.0 * 49 * found["itl_s"], abs=1)
    assert any("5 come a second" in sentence for sentence in found["assumptions"])
    given = ask(api, concurrency=served["in_flight"], open_loop=True)
    assert (given["ttft_s"], given["itl_s"]) == (found["ttft_s"], found["itl_s"])
    # The same by query parameters, and beside a simulation of arrivals at that rate.
    query = {**LOADED, "concurrency": served["in_flight"], "open_loop": "true", "calibration": "default"}
    assert ok(api.get(PREDICT, params=query))["ttft_s"] == found["ttft_s"]
    beside = ask(api, arrivals={"request_rate_per_s": 5.0, "requests": 300})
    assert beside["ttft_s"] == found["ttft_s"]
    assert beside["served"]["ttft_s"]["mean"] == pytest.approx(found["ttft_s"], rel=0.2)
    assert ask(api, request_rate_per_s=5.0, simulate=True)["served"]["ttft_s"] == beside["served"]["ttft_s"]


@pytest.mark.parametrize("more", [{"batch": 4}, {"prefill_replicas": 1}, {"calibration": "textbook"}])
def test_arrivals_are_simulated_also_where_a_rate_has_no_closed_form(api: TestClient, more: dict[str, Any]) -> None:
    found = ask(api, arrivals={"request_rate_per_s": 5.0, "requests": 20}, **more)
    assert found["served"]["requests"] == 20
    if "calibration" not in more:
        assert found["served"]["in_flight"] is None
        assert found["ttft_s"] == ask(api, **more)["ttft_s"]


def test_more_requests_than_are_answered_are_said_to_queue(api: TestClient) -> None:
    found = ask(api, request_rate_per_s=10_000)
    assert "the queue grows for as long as they come" in found["assumptions"][0]


def test_a_load_at_a_rate_changes_at_that_rate(api: TestClient) -> None:
    query = {**LOADED, "request_rate_per_s": 5, "calibration": "default", "bandwidth_log2": 1}
    found = ok(api.get(f"{PREDICT}/change", params=query))
    flight = [found[side]["served"]["in_flight"] for side in ("before", "after")]
    assert flight[1] < flight[0]  # faster steps have fewer in flight
    twice = next(lever for lever in found["levers"] if lever["lever"] == "batch")
    assert twice["aggregate_tokens_per_s_ratio"] == pytest.approx(2.0, rel=0.15)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"simulate": True}, "simulate"),
        ({"target": {"ttft_s": 1.0}}, "simulate"),
        ({"concurrency": 4, "arrivals": {"request_rate_per_s": 1.0}}, "arrivals"),
        ({"arrivals": {"sent_s": [2.0, 1.0]}}, "sent_s"),
        ({"concurrency": 100_000, "simulate": True}, "requests"),
        ({"open_loop": True}, "open_loop"),
        ({"open_loop": 1}, None),
        ({"request_rate_per_s": 2, "concurrency": 4}, "request_rate_per_s"),
        ({"request_rate_per_s": 2, "sweep": {"tp": [1, 2]}}, "request_rate_per_s"),
        ({"request_rate_per_s": 2, "prefill_replicas": 1}, "open_loop"),
        ({"request_rate_per_s": 0}, None),
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
