"""Prefill and decode on pools of their own, closed form: by hand, at the edges, and what must hold of any of them."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.phases import Question
from app.domain.pools import Transfer
from app.domain.prediction import Pools, Prediction, Request
from app.domain.request_rules import Load, check
from app.domain.serving import predict, predict_grid
from tests.domain.subjects import ENGINE, LLAMA_8B, MIXTURE, SERVER, SPARSE_LATENT
from tests.domain.test_properties import architectures, devices, engines, requests

LEAST = 1 - 1e-9


def ask(**changes: object) -> Prediction:
    request = dataclasses.replace(Request(prefill_replicas=1), **changes)  # type: ignore[arg-type]
    return predict(LLAMA_8B, SERVER, request, engine=ENGINE)


def pools_of(found: Prediction) -> Pools:
    assert found.pools is not None
    return found.pools


def way(model: ModelArchitecture, **changes: object) -> Transfer:
    request = dataclasses.replace(Request(prefill_replicas=1), **changes)  # type: ignore[arg-type]
    return Transfer.of(Question.of(model, SERVER, request, Load.of(request), ENGINE))


def test_the_cache_of_a_prompt_crosses_at_the_rate_of_the_link() -> None:
    # 2 · 8 heads · 128 · 2 bytes · 32 layers = 131,072 bytes a token; 2,000 of them at 0.75 · 4.5e11 bytes/s; 6 µs to start.
    found = way(LLAMA_8B)
    assert found.bytes == 2000 * 131_072
    assert found.seconds == pytest.approx(6e-6 + 262_144_000 / 3.375e11)
    assert way(LLAMA_8B, transfer_bytes_per_s=1e10).seconds == pytest.approx(6e-6 + 0.0262144)
    # Two devices a side carry half each; where one side is a single device it carries all.
    assert way(LLAMA_8B, tp=2).device_bytes == 131_072_000
    assert way(LLAMA_8B, tp=2, prefill_tp=1).device_bytes == 262_144_000
    assert way(LLAMA_8B, tp=1, prefill_tp=2).device_bytes == 262_144_000


def test_a_latent_cache_stands_on_every_device_that_takes_it() -> None:
    # 512 + 64 elements of 2 bytes and a 132-byte index a position in 61 layers, however many devices there are.
    whole = 2000 * 61 * (576 * 2 + 132)
    assert way(SPARSE_LATENT, tp=8).bytes == whole
    assert way(SPARSE_LATENT, tp=8).device_bytes == whole


def test_the_second_token_comes_after_the_transfer_and_a_step() -> None:
    alone, apart = predict(LLAMA_8B, SERVER, Request(), engine=ENGINE), ask()
    pools = pools_of(apart)
    assert apart.ttft_s == alone.ttft_s
    assert pools.first_gap_s == pytest.approx(pools.transfer_s + apart.decode.time_s)
    assert apart.itl_s == pytest.approx(apart.decode.time_s + pools.transfer_s / 299)
    assert apart.total_s == pytest.approx(alone.total_s + pools.transfer_s)
    # A batch's caches cross one after another.
    assert pools_of(ask(batch=4)).transfer_s == pytest.approx(6e-6 + 4 * (pools.transfer_s - 6e-6))
    assert (pools.binds, pools.requests_per_s, pools.prefill.busy) == (None, None, None)


def test_one_client_of_pools_is_one_request() -> None:
    found = ask(concurrency=1)
    assert found.ttft_s == pytest.approx(ask().ttft_s)
    assert found.itl_s == pytest.approx(ask().itl_s)
    assert pools_of(found).requests_per_s == pytest.approx(1 / found.total_s, rel=0.01)
    assert pools_of(found).binds == "clients"


def test_without_a_way_to_go_and_without_prompts_between_tokens_a_step_is_a_step() -> None:
    near = ask(concurrency=32, transfer_bytes_per_s=1e15, prefill_replicas=64, shortest_length=0.8)
    pools = pools_of(near)
    together = predict(LLAMA_8B, SERVER, Request(concurrency=32, shortest_length=0.8), engine=ENGINE)
    assert near.interference_s == 0
    assert pools.transfer_s == pytest.approx(6e-6, rel=0.1)
    assert near.itl_s < together.itl_s
    assert together.itl_s - together.interference_s == pytest.approx(near.itl_s, rel=0.01)


def test_prefill_sets_the_pace_where_it_is_slowest_and_its_clients_wait_before_it() -> None:
    # Four prompts of 2,000 tokens fill a pass of 8,192. Long prompts, short answers: nothing of decode is missing.
    found = ask(concurrency=64, output_tokens=10, decode_replicas=4)
    pools = pools_of(found)
    assert pools.binds == "prefill"
    assert pools.requests_per_s == pytest.approx(pools.prefill.requests_per_s)
    assert pools.prefill.busy == pytest.approx(1)
    assert pools.admission_s < found.decode.time_s
    # Little: 64 clients over the pace are the time of a round; what is no station's own is the queue of the steady state.
    round_s = 64 / pools.requests_per_s
    steady = round_s - found.front_end_s - found.prefill.time_s - 9 * found.itl_s
    burst = found.queue_s * 10 - 9 * steady
    assert burst == pytest.approx(round_s / 2, rel=0.1)


def test_decode_sets_the_pace_where_its_pool_is_full_and_prompts_wait_after_their_first_token() -> None:
    found = ask(concurrency=260, prefill_replicas=4, output_tokens=1000)
    pools = pools_of(found)
    assert pools.binds == "decode"
    assert pools.requests_per_s == pytest.approx(pools.decode.requests_per_s)
    assert pools.admission_s > 1.0
    # More than both pools hold wait before prefill again.
    crowd = ask(concurrency=4000, prefill_replicas=4, output_tokens=1000)
    assert crowd.queue_s > 100 * found.queue_s
    assert pools_of(crowd).requests_per_s == pytest.approx(pools.requests_per_s, rel=0.01)


def test_a_slow_way_sets_the_pace_and_its_wait_is_in_the_first_gap() -> None:
    found = ask(concurrency=64, output_tokens=20, transfer_bytes_per_s=1e9, prefill_replicas=2, decode_replicas=2)
    pools = pools_of(found)
    assert pools.binds == "transfer"
    # 0.262 s a prompt, two of them at a time.
    assert pools.requests_per_s == pytest.approx(2 / (6e-6 + 0.262144))
    assert pools.admission_s > pools.transfer_s


def test_the_balanced_ratio_keeps_both_pools_equally_busy() -> None:
    base = ask(concurrency=96, prefill_replicas=2, decode_replicas=2)
    ratio = pools_of(base).balanced_ratio
    assert ratio is not None
    pools = pools_of(base)
    assert pools.prefill.requests_per_s is not None
    assert pools.decode.requests_per_s is not None
    assert ratio == pytest.approx(pools.decode.requests_per_s / 2 / (pools.prefill.requests_per_s / 2))


def test_devices_are_counted_by_role() -> None:
    found = predict(MIXTURE, SERVER, Request(prefill_replicas=3, prefill_tp=2, prefill_dp=2, prefill_ep=4, decode_replicas=2, dp=8, ep=8))
    pools = pools_of(found)
    assert (pools.prefill.devices, pools.decode.devices, pools.devices) == (12, 16, 28)
    assert pools.prefill.memory.weight_bytes != pools.decode.memory.weight_bytes


def test_a_grid_of_pools_is_its_single_predictions() -> None:
    axes = {"prefill_replicas": [1, 3], "decode_replicas": [1, 2], "concurrency": [1, 40, 300]}
    grid = predict_grid(LLAMA_8B, SERVER, Request(prefill_replicas=1, shortest_length=0.8), axes=axes, engine=ENGINE)
    cells = [(p, d, c) for p in (1, 3) for d in (1, 2) for c in (1, 40, 300)]
    for place, (prefill, decode, clients) in enumerate(cells):
        one = ask(prefill_replicas=prefill, decode_replicas=decode, concurrency=clients, shortest_length=0.8)
        for key in ("ttft_s", "itl_s", "queue_s"):
            assert grid.columns[key][place] == pytest.approx(getattr(one, key)), (key, prefill, decode, clients)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"prefill_replicas": 0}, "prefill_replicas"),
        ({"decode_replicas": 0}, "decode_replicas"),
        ({"prefill_replicas": 5000}, "prefill_replicas"),
        ({"prefill_tp": 3}, "prefill_tp"),
        ({"prefill_ep": 2}, "prefill_ep"),
        ({"transfer_bytes_per_s": 0.0}, "transfer_bytes_per_s"),
        ({"transfer_bytes_per_s": float("nan")}, "transfer_bytes_per_s"),
        ({"calibration": "textbook"}, "prefill_replicas"),
    ],
)
def test_pools_that_cannot_be_are_refused_by_their_field(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        ask(**changes)
    assert refused.value.field == field


def test_a_device_without_a_link_needs_a_rate() -> None:
    device = dataclasses.replace(SERVER, link_bytes_per_s=None)
    with pytest.raises(InvalidRequest) as refused:
        predict(LLAMA_8B, device, Request(prefill_replicas=1))
    assert refused.value.field == "transfer_bytes_per_s"
    assert pools_of(predict(LLAMA_8B, device, Request(prefill_replicas=1, transfer_bytes_per_s=1e10))).transfer_bytes_per_s == 1e10


@st.composite
def pooled(draw: st.DrawFn) -> Request:
    return dataclasses.replace(
        draw(requests()),
        batch=1,
        concurrency=draw(st.none() | st.integers(1, 2000)),
        requests_per_client=draw(st.integers(1, 40)),
        shortest_length=draw(st.sampled_from([0.5, 1.0])),
        prefill_replicas=draw(st.integers(1, 12)),
        decode_replicas=draw(st.integers(1, 12)),
        dp=draw(st.sampled_from([1, 1, 3])),
        prefill_dp=draw(st.sampled_from([None, 1, 2])),
        transfer_bytes_per_s=draw(st.none() | st.floats(1e8, 1e12)),
        draft_tokens=draw(st.sampled_from([0, 0, 3])),
        acceptance=draw(st.sampled_from([0.0, 0.7])),
        calibration="default",
    )


@settings(max_examples=120, deadline=None)
@given(architectures(), devices(), engines(), pooled())
def test_no_impossible_number_of_pools(
    model: ModelArchitecture, device: HardwareProfile, engine: EngineProfile | None, request: Request
) -> None:
    found = predict(model, device, request, engine=engine)
    pools = pools_of(found)
    waits = (found.queue_s, pools.admission_s, pools.transfer_s, pools.transfer_bytes)
    assert all(math.isfinite(value) and value >= 0 for value in waits)
    assert found.interference_s == 0
    assert found.itl_s * (request.draft_tokens + 1) >= found.decode.time_s * LEAST
    if request.concurrency is None:
        return
    assert found.served is not None
    assert 0 < found.served.running <= request.concurrency * (1 + 1e-6)
    stations = (pools.prefill.requests_per_s, pools.decode.requests_per_s, pools.transfer_requests_per_s)
    assert pools.requests_per_s is not None
    assert all(rate is not None and 0 < pools.requests_per_s <= rate * (1 + 1e-6) for rate in stations)
    assert pools.balanced_ratio is not None
    assert pools.balanced_ratio > 0


@settings(max_examples=80, deadline=None)
@given(architectures(), devices(), engines(), pooled(), st.integers(1, 20))
def test_more_prefill_replicas_never_raise_the_queue(
    model: ModelArchitecture, device: HardwareProfile, engine: EngineProfile | None, request: Request, more: int
) -> None:
    assert request.prefill_replicas is not None
    device = dataclasses.replace(device, devices_per_node=None)
    few, many = (
        predict(model, device, dataclasses.replace(request, prefill_replicas=request.prefill_replicas + extra), engine=engine)
        for extra in (0, more)
    )
    assert many.queue_s <= few.queue_s * (1 + 1e-9) + 1e-12
    if request.concurrency is not None:
        assert (pools_of(many).requests_per_s or 0) >= (pools_of(few).requests_per_s or 0) * LEAST


@settings(max_examples=60, deadline=None)
@given(architectures(), devices(), pooled(), st.floats(1e8, 1e12), st.floats(1.0, 100.0))
def test_a_faster_way_is_never_slower(
    model: ModelArchitecture, device: HardwareProfile, request: Request, rate: float, faster: float
) -> None:
    slow, fast = (predict(model, device, dataclasses.replace(request, transfer_bytes_per_s=value)) for value in (rate, rate * faster))
    assert pools_of(fast).transfer_s <= pools_of(slow).transfer_s
    if request.concurrency is not None:
        assert (pools_of(fast).requests_per_s or 0) >= (pools_of(slow).requests_per_s or 0) * LEAST


def test_every_rule_of_a_replica_holds_of_prefill_replicas_too() -> None:
    for key, value in (("tp", 3), ("tp", 48), ("ep", 3)):
        request = Request(prefill_replicas=1, **{f"prefill_{key}": value})  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest) as refused:
            check(request, MIXTURE, SERVER)
        with pytest.raises(InvalidRequest) as same:
            check(Request(**{key: value}), MIXTURE, SERVER)  # type: ignore[arg-type]
        assert refused.value.field == f"prefill_{same.value.field}"


def test_as_many_prefill_replicas_as_clients_leave_no_queue() -> None:
    found = ask(concurrency=24, prefill_replicas=24, shortest_length=0.8)
    assert found.queue_s < 1e-3
    assert np.isclose(found.ttft_s, ask(shortest_length=0.8).ttft_s, rtol=0.2)
