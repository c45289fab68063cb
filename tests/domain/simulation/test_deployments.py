"""Pools, attention ranks and pipelines of real shapes: what must hold of any of them, and how near the closed form is."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.architecture import ModelArchitecture
from app.domain.prediction import Request
from app.domain.schedule import Schedule
from app.domain.serving import predict
from app.domain.simulation import ServedLoad, Simulation, Simulator
from tests.domain.simulation.test_simulator import LOADS, SCHEDULES
from tests.domain.subjects import ENGINE, LLAMA_8B, MIXTURE, SERVER, WINDOWED

DEPLOYMENTS = st.builds(
    Request,
    prefill_replicas=st.sampled_from([None, 1, 3]),
    decode_replicas=st.integers(1, 3),
    dp=st.sampled_from([1, 2, 3]),
    prefill_dp=st.sampled_from([None, 1, 2]),
    pp=st.sampled_from([1, 1, 3]),
    transfer_bytes_per_s=st.sampled_from([None, 1e9]),
    draft_tokens=st.sampled_from([0, 2]),
    acceptance=st.just(0.7),
)


@settings(max_examples=40, deadline=None)
@given(request=DEPLOYMENTS, load=LOADS, schedule=SCHEDULES)
def test_every_request_passes_its_stations_in_order(request: Request, load: ServedLoad, schedule: Schedule) -> None:
    found = Simulator.of(WINDOWED, SERVER, request, schedule=schedule).run(load, "plain")
    line = found.timeline
    moments = [line.sent_s, line.arrived_s, line.admitted_s, line.first_s]
    if found.crossing is not None:
        more = found.crossing.crossed
        assert np.array_equal(more, line.output_tokens > 1)
        last = [line.first_s, found.crossing.left_s, found.crossing.landed_s, found.crossing.second_s, line.finished_s]
        assert np.all(np.diff(np.stack(last)[:, more], axis=0) >= -1e-9)
        parts = found.crossing.mean_s()
        gap = found.crossing.first_gap
        assert (parts is None) == (gap is None)
        if parts is not None and gap is not None:
            assert sum(parts.values()) == pytest.approx(gap.mean)
    assert np.all(np.diff(np.stack([*moments, line.finished_s]), axis=0) >= -1e-9)
    assert found.gap_n <= line.output_tokens.sum() - load.total
    assert found.in_system == pytest.approx(found.requests_per_s * found.e2e.mean)
    assert load.clients is not None
    assert found.in_system <= load.clients + 1e-9
    assert 0 <= found.busy <= 1 + 1e-9


@pytest.mark.parametrize(
    "request_", [Request(prefill_replicas=2, decode_replicas=2), Request(dp=2), Request(pp=2), Request(prefill_replicas=1, pp=2, dp=2)]
)
def test_what_holds_of_open_loops_too(request_: Request) -> None:
    found = Simulator.of(LLAMA_8B, SERVER, request_, engine=ENGINE).run(
        ServedLoad(500, 20, request_rate_per_s=20.0, requests=60, seed=3), "plain"
    )
    assert np.all(found.timeline.first_s >= found.timeline.arrived_s)
    assert np.all(found.timeline.finished_s >= found.timeline.first_s)
    assert found.in_system == pytest.approx(found.requests_per_s * found.e2e.mean)


def simulated(request: Request, model: ModelArchitecture = LLAMA_8B) -> Simulation:
    load = ServedLoad(
        request.prompt_tokens,
        request.output_tokens,
        clients=request.concurrency,
        requests_per_client=request.requests_per_client,
        shortest_length=request.shortest_length,
        seed=1,
    )
    return Simulator.of(model, SERVER, request, engine=ENGINE).run(load, "plain")


@pytest.mark.parametrize(
    "request_",
    [
        Request(concurrency=1, prefill_replicas=1),
        Request(concurrency=1, prefill_replicas=2, prefill_tp=2, decode_replicas=3, tp=4),
        Request(concurrency=1, pp=2),
        Request(concurrency=1, pp=4, tp=2),
        Request(concurrency=1, pp=2, prefill_replicas=1),
    ],
)
def test_a_single_client_sees_the_closed_form(request_: Request) -> None:
    request = replace(request_, requests_per_client=2)
    alone, found = predict(LLAMA_8B, SERVER, request, engine=ENGINE), simulated(request)
    assert found.ttft.mean == pytest.approx(alone.ttft_s, rel=1e-3)
    assert found.itl_s == pytest.approx(alone.itl_s, rel=2e-3)
    assert found.queue_s == pytest.approx(0.0, abs=1e-12)
    if found.crossing is not None:
        assert alone.pools is not None
        assert found.crossing.first_gap is not None
        assert found.crossing.first_gap.mean == pytest.approx(alone.pools.first_gap_s, rel=2e-3)


BASE = Request(prompt_tokens=1000, output_tokens=100, requests_per_client=8, shortest_length=0.8)
NEAR = {  # request, model; most of the distance of TTFT and of ITL from the closed form
    "pools, little load": (replace(BASE, concurrency=6, prefill_replicas=1, decode_replicas=1), LLAMA_8B, 0.10, 0.03),
    "pools, loaded": (replace(BASE, concurrency=40, prefill_replicas=1, decode_replicas=2), LLAMA_8B, 0.25, 0.05),
    "pools, prefill binds": (replace(BASE, concurrency=60, prefill_replicas=1, decode_replicas=3, output_tokens=20), LLAMA_8B, 0.10, 0.05),
    "pools, the way binds": (
        replace(BASE, concurrency=32, prefill_replicas=2, decode_replicas=2, output_tokens=20, transfer_bytes_per_s=1e9),
        LLAMA_8B,
        0.25,
        0.10,
    ),
    "pools, equal lengths": (
        replace(BASE, concurrency=24, prefill_replicas=1, decode_replicas=2, shortest_length=1.0),
        LLAMA_8B,
        0.20,
        0.05,
    ),
    "ranks, little load": (replace(BASE, concurrency=4, dp=2), LLAMA_8B, 0.10, 0.05),
    "ranks, loaded": (replace(BASE, concurrency=48, dp=4, ep=4, weight_dtype="mxfp4"), MIXTURE, 0.25, 0.15),
    "stages, little load": (replace(BASE, concurrency=4, pp=2), LLAMA_8B, 0.15, 0.10),
    "stages, loaded": (replace(BASE, concurrency=48, pp=2), LLAMA_8B, 0.30, 0.10),
}


@pytest.mark.parametrize("name", NEAR)
def test_the_closed_form_stays_near_the_simulator(name: str) -> None:
    request, model, first, further = NEAR[name]
    said, found = predict(model, SERVER, request, engine=ENGINE), simulated(request, model)
    assert found.itl_s is not None
    distances = abs(said.ttft_s / found.ttft.mean - 1), abs(said.itl_s / found.itl_s - 1)
    assert distances[0] <= first, distances
    assert distances[1] <= further, distances


def test_more_prefill_replicas_shorten_the_queue_until_there_is_none() -> None:
    queues = [simulated(replace(BASE, concurrency=24, prefill_replicas=count, decode_replicas=2)).queue_s for count in (1, 3, 24)]
    assert queues[0] > queues[1] > queues[2]
    assert queues[2] < 1e-3


def test_with_no_way_to_go_pools_are_separate_queues() -> None:
    """Nothing crosses in no time: the gap after the first token is a wait for the step under way and a step."""
    found = simulated(replace(BASE, concurrency=8, prefill_replicas=8, decode_replicas=8, transfer_bytes_per_s=1e15))
    assert found.crossing is not None
    parts = found.crossing.mean_s()
    assert parts is not None
    assert parts["admission_s"] < 1e-4
    assert parts["transfer_s"] < 1e-5
    alone = simulated(replace(BASE, concurrency=1))
    assert found.itl_s == pytest.approx(alone.itl_s, rel=0.1)
    assert found.ttft.mean == pytest.approx(alone.ttft.mean, rel=0.1)
