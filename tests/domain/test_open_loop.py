"""Requests that come at their own moments: the wait by hand, beside the simulator, and how many are in flight at a rate."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.catalog import load as shipped
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.open_loop import Capacity, at_rate, capacity
from app.domain.open_queue import open_queue_s
from app.domain.prediction import Request
from app.domain.request_rules import Load
from app.domain.schedule import Schedule
from app.domain.serving import predict, predict_grid
from app.domain.simulation import ServedLoad, Simulator
from app.domain.turn import Turn
from tests.domain.subjects import ENGINE, LLAMA_8B, SERVER

ALONE = replace(ENGINE, schedule=Schedule(prefill_alone=True))
WHOLE_ANSWER = replace(ENGINE, schedule=Schedule(kv_reservation=1.0))
MEAN = {0.3: 325, 1.0: 500}  # tokens of a prompt of 500 at most, by the shortest
OPEN = Request(prompt_tokens=1024, output_tokens=256, concurrency=24, open_loop=True)


def test_the_wait_is_half_a_pass_the_prompts_before_and_what_stands_beside() -> None:
    # R = 4, 101 tokens, itl 0.1 s: λ = 0.4/s. A first prompt adds 1 - 0.08 = 0.92 s, a further one (4 - 1)/7 s: ρ = 0.171.
    # The pass met: 0.1 + 0.92²·0.4/(1 - ρ²) = 0.449 s; two more steps until the request is known of; a front-end of 0.5 s: 0.2·0.5/1.6.
    load = Load.of(Request(prompt_tokens=1000, output_tokens=101, concurrency=4, open_loop=True))
    turn = Turn(prefill_s=1.0, chunk_s=4.0, chunk_prompts=8.0, step_s=0.08)
    busy = 0.4 * 3 / 7
    met = 0.1 + 0.92**2 * 0.4 / (1 - busy**2)
    served = 1 - exp(-4)
    expected = served * (met / 2 * (1 + busy) + 2.0 * 0.08) + 0.2 * 0.5 / 1.6
    assert float(open_queue_s(load, 0.5, 4.0, 2.5, turn, 0.1)) == pytest.approx(expected)


def test_a_request_now_and_then_waits_for_next_to_nothing() -> None:
    load = Load.of(Request(prompt_tokens=1000, output_tokens=101, concurrency=1, open_loop=True))
    assert float(open_queue_s(load, 0.0, 1e-6, 5.0, Turn(1.0, 4.0, 8.0, 0.1), 0.1)) < 1e-6


@pytest.mark.parametrize("engine", [ENGINE, ALONE, WHOLE_ANSWER], ids=["mixed", "alone", "whole answer set aside"])
def test_equal_lengths_do_not_matter(engine: EngineProfile) -> None:
    equal, drawn = (predict(LLAMA_8B, SERVER, replace(OPEN, shortest_length=share), engine=engine) for share in (1.0, 1.0 - 1e-9))
    assert equal.queue_s == pytest.approx(drawn.queue_s)
    assert equal.itl_s == pytest.approx(drawn.itl_s)
    # Nor how many requests a client sends, since none does.
    assert predict(LLAMA_8B, SERVER, replace(OPEN, requests_per_client=1), engine=engine).ttft_s == pytest.approx(equal.ttft_s)
    assert not any("wave" in sentence or "a client" in sentence for sentence in equal.assumptions)


@pytest.mark.parametrize("slug", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize("shortest", [1.0, 0.2])
@pytest.mark.parametrize("rate", [2.0, 10.0])
def test_the_closed_form_stays_near_the_simulator(slug: str, shortest: float, rate: float) -> None:
    engine = shipped().engines[slug]
    request = Request(prompt_tokens=1024, output_tokens=256, shortest_length=shortest, engine=slug)
    seen = Simulator.of(LLAMA_8B, SERVER, request, engine=engine).run(
        ServedLoad(1024, 256, request_rate_per_s=rate, requests=1000, shortest_length=shortest, seed=1)
    )
    found = at_rate(LLAMA_8B, SERVER, request, rate, engine)
    said = predict(LLAMA_8B, SERVER, found.request, engine=engine)
    assert said.ttft_s == pytest.approx(seen.ttft.mean, rel=0.15)
    assert said.itl_s == pytest.approx(seen.itl_s, rel=0.15)


@settings(max_examples=40, deadline=None)
@given(rate=st.floats(0.01, 10.0), tp=st.sampled_from([1, 2, 4]), output=st.integers(2, 2000), shortest=st.sampled_from([0.3, 1.0]))
def test_as_many_are_in_flight_as_answer_them_as_fast_as_they_come(rate: float, tp: int, output: int, shortest: float) -> None:
    request = Request(prompt_tokens=500, output_tokens=output, tp=tp, shortest_length=shortest)
    found = at_rate(LLAMA_8B, SERVER, request, rate, ENGINE)
    answered = [
        min(said.aggregate_tokens_per_s / max(said.request.further_tokens, 1.0), found.at_most_per_s)
        for said in (
            predict(LLAMA_8B, SERVER, replace(found.request, concurrency=count), engine=ENGINE) for count in _around(found.request)
        )
    ]
    # No more than one of these prompts after another, with nothing else to do.
    alone = predict(LLAMA_8B, SERVER, replace(request, prompt_tokens=MEAN[shortest]), engine=ENGINE)
    assert found.at_most_per_s < 1.05 / alone.prefill.floor_s
    if found.kept_up_with:
        few, many = answered
        assert many >= rate * 0.999
        assert few <= rate * 1.001 or found.request.concurrency == 1
    else:
        assert rate > found.at_most_per_s


def _around(request: Request) -> tuple[int, int]:
    assert request.concurrency is not None
    spare = max(1, request.concurrency // 100)
    return max(1, request.concurrency - spare), request.concurrency + spare


CAPACITY = Capacity(OPEN, *(np.array(column) for column in ([1.0, 2, 4], [10.0, 15, 20], [0.1, 0.2, 0.6], [0.01, 0.02, 0.03])))


@pytest.mark.parametrize(
    ("ttft_s", "itl_s", "expected"),
    [
        (None, None, 20.0),
        (0.15, None, 12.5),  # half the way from 10 to 15 a second
        (0.15, 0.025, 12.5),  # the tighter of the two
        (1.0, 0.025, 17.5),
        (0.1, None, 10.0),
        (0.09, None, None),  # not even one at a time
        (1.0, 1.0, 20.0),
    ],
)
def test_the_most_requests_within_a_target_lie_between_what_was_tried(
    ttft_s: float | None, itl_s: float | None, expected: float | None
) -> None:
    assert CAPACITY.within(ttft_s, itl_s) == (None if expected is None else pytest.approx(expected))
    assert CAPACITY.at(12.5) == pytest.approx((1.5, 0.15, 0.015))
    assert CAPACITY.at(1e9) == pytest.approx((4, 0.6, 0.03))


def test_a_capacity_is_the_predictions_at_its_places() -> None:
    found = capacity(LLAMA_8B, SERVER, Request(prompt_tokens=1024, output_tokens=256), ENGINE)
    assert np.all(np.diff(found.per_s) >= 0)
    for place in (0, len(found.in_flight) // 2, len(found.in_flight) - 1):
        said = predict(LLAMA_8B, SERVER, replace(found.request, concurrency=int(found.in_flight[place])), engine=ENGINE)
        assert found.ttft_s[place] == pytest.approx(said.ttft_s)
        assert found.per_s[place] == pytest.approx(said.aggregate_tokens_per_s / 255, rel=1e-3)


def test_more_come_than_are_answered() -> None:
    found = at_rate(LLAMA_8B, SERVER, Request(prompt_tokens=4000, output_tokens=256), 1e6, ENGINE)
    assert not found.kept_up_with
    # A prompt of 4,000 tokens alone takes so long that no more than this can be answered.
    assert found.at_most_per_s < 1.5 / predict(LLAMA_8B, SERVER, Request(prompt_tokens=4000), engine=ENGINE).prefill.floor_s


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (Request(open_loop=True), "open_loop"),
        (replace(OPEN, prefill_replicas=1), "open_loop"),
        (replace(OPEN, open_loop=1), "open_loop"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_open_loop_is_refused_by_its_field(request_: Request, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        predict(LLAMA_8B, SERVER, request_, engine=ENGINE)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("request_", "field"), [(Request(concurrency=4), "request_rate_per_s"), (Request(batch=4), "batch"), (Request(tp=3), "tp")]
)
def test_a_rate_stands_for_itself(request_: Request, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        at_rate(LLAMA_8B, SERVER, request_, 1.0, ENGINE)
    assert refused.value.field == field


def test_a_grid_of_open_loops_is_its_single_predictions() -> None:
    grid = predict_grid(LLAMA_8B, SERVER, OPEN, axes={"concurrency": [1, 9, 70]}, engine=ALONE)
    for place, count in enumerate((1, 9, 70)):
        one = predict(LLAMA_8B, SERVER, replace(OPEN, concurrency=count), engine=ALONE)
        assert grid.columns["ttft_s"][place] == pytest.approx(one.ttft_s)
