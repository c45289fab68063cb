"""Levers of a run: sized with the run's own question, bounds kept apart, what has no size says why."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.diagnosis.vocabulary import LEVERS
from app.domain.engine import EngineProfile
from app.domain.prediction import Request
from app.domain.serving import predict
from app.services.lever_effects import MOVES, UNSIZED, Outlook, Setting, Sized, sized_levers
from app.services.levers import seen_elsewhere
from tests.services.measured import CATALOG, H100, LLAMA, TEXTBOOK, TEXTBOOK_H100

VLLM = CATALOG.engines["vllm"]


def sized(request: Request, engine: EngineProfile | None = VLLM) -> Sized:
    def price(setting: Setting):  # type: ignore[no-untyped-def]
        return predict(LLAMA, setting.hardware, setting.request, engine=setting.engine)

    now = Setting(H100, request, engine)
    return sized_levers(LEVERS, now, price(now), price)


def test_every_lever_of_the_vocabulary_is_sized_or_says_why_not() -> None:
    assert set(MOVES) | set(UNSIZED) == set(LEVERS)
    assert not set(MOVES) & set(UNSIZED)
    found = sized(Request(concurrency=32, calibration="default"))
    assert set(found.effects) | set(found.without) == set(LEVERS)
    assert not set(found.effects) & set(found.without)


def test_the_founding_case_by_hand() -> None:
    """Textbook: 76.19 ms of prefill bound by arithmetic, 4.776 ms of decode bound by reads; twice the bandwidth halves decode alone."""

    def price(setting: Setting):  # type: ignore[no-untyped-def]
        return predict(TEXTBOOK, setting.hardware, setting.request)

    now = Setting(TEXTBOOK_H100, Request(calibration="textbook"), None)
    effect = sized_levers(["more_bandwidth"], now, price(now), price).effects["more_bandwidth"]
    assert effect.ttft_s == pytest.approx((0.0761905, 0.0761905), rel=1e-4)
    assert effect.itl_s == pytest.approx((0.0047761, 0.0023881), rel=1e-4)
    assert effect.prefill_unmoved is not None
    assert effect.prefill_unmoved.startswith("it waits for its arithmetic")
    assert effect.decode_unmoved is None
    # 300 tokens in 76.19 ms + 299 x 4.776 ms, and 299 x 2.388 ms.
    assert effect.before.output_tokens_per_s == pytest.approx(300 / 1.50425, rel=1e-4)
    assert effect.after.output_tokens_per_s == pytest.approx(300 / 0.79022, rel=1e-4)
    assert effect.after.device_s_per_token == pytest.approx(0.79022 / 300, rel=1e-4)


def test_more_devices_cost_what_they_take() -> None:
    """Two copies at half the load: each token takes two devices' time over the rate of both."""
    found = sized(Request(concurrency=32, calibration="default")).effects["data_parallel_replicas"]
    assert (found.before.devices, found.after.devices) == (1, 2)
    alone = predict(LLAMA, H100, Request(concurrency=16, calibration="default"), engine=VLLM)
    assert found.after.ttft_s == alone.ttft_s
    assert found.after.output_tokens_per_s == pytest.approx(2 * 16 * 300 / alone.total_s)
    assert found.after.device_s_per_token > found.before.device_s_per_token


@pytest.mark.parametrize("lever", ["data_parallel_replicas", "smaller_batch", "lower_concurrency"])
def test_one_request_alone_cannot_be_fewer(lever: str) -> None:
    assert sized(Request(calibration="default")).without[lever] == "One request runs alone already"


@pytest.mark.parametrize("lever", ["raise_max_num_batched_tokens", "raise_max_num_seqs"])
def test_a_schedule_that_is_not_known_is_not_changed(lever: str) -> None:
    assert "no profile" in sized(Request(concurrency=8), engine=None).without[lever]


def test_a_cap_that_holds_requests_back_is_worth_raising() -> None:
    capped = replace(VLLM, variants=(), fitted_on=(), schedule=replace(VLLM.schedule, running_cap=8))
    effect = sized(Request(concurrency=64, calibration="default"), capped).effects["raise_max_num_seqs"]
    assert effect.after.ttft_s < effect.before.ttft_s
    assert effect.after.itl_s > effect.before.itl_s


def test_a_link_is_worth_mending_only_between_devices() -> None:
    assert "no such time" in sized(Request(calibration="default")).without["fix_interconnect"]
    effect = sized(Request(tp=4, calibration="default")).effects["fix_interconnect"]
    assert effect.bound
    assert effect.after.itl_s < effect.before.itl_s


@settings(max_examples=25, deadline=None)
@given(
    prompt=st.integers(1, 60_000),
    output=st.integers(2, 2_000),
    clients=st.none() | st.integers(1, 256),
    tp=st.sampled_from([1, 2, 4, 8]),
)
def test_effects_hold_together(prompt: int, output: int, clients: int | None, tp: int) -> None:
    request = Request(prompt_tokens=prompt, output_tokens=output, concurrency=clients, tp=tp, calibration="default")
    before = Outlook.of(predict(LLAMA, H100, request, engine=VLLM))
    for effect in sized(request).effects.values():
        assert effect.before == before
        for side in (effect.before, effect.after):
            assert side.total_s == pytest.approx(side.ttft_s + (output - 1) * side.itl_s)
        if effect.bound:
            assert effect.after.ttft_s <= before.ttft_s
            assert effect.after.itl_s <= before.itl_s
            assert effect.after.itl_s > 0
        assert (effect.prefill_unmoved is None) == (abs(effect.after.ttft_s / before.ttft_s - 1) >= 0.01)


def test_what_others_saw_comes_with_its_source_and_once() -> None:
    seen = seen_elsewhere()
    assert set(seen) <= set(LEVERS)
    assert "ITL −5 to −27 % on small GPUs (mini-sglang#132)" in seen["fp8_kv"]
    assert all(len(set(texts)) == len(texts) for texts in seen.values())


def test_the_whole_request_is_one_of_mean_lengths() -> None:
    """Answers drawn from 0.25 to 1 of 480 tokens: 300 on average, as TTFT and ITL are averages too."""
    found = sized(Request(concurrency=32, calibration="default", output_tokens=480, shortest_length=0.25)).effects["more_bandwidth"]
    for side in (found.before, found.after):
        assert side.total_s == pytest.approx(side.ttft_s + 299 * side.itl_s)
        assert side.output_tokens_per_s == pytest.approx(32 * 300 / side.total_s)
