"""Where a pass stands under the roof, and which measurements may stand there."""

import math
from dataclasses import replace

import pytest

from app.domain.hardware import HardwareProfile
from app.domain.operating_points import (
    COUNTED_WITHOUT_TIME,
    FROM_TTFT,
    FROM_TTFT_LESS_QUEUE,
    NO_PREFILL_UNDER_LOAD,
    Ceilings,
    ceilings_of,
    roofline_of,
)
from app.domain.prediction import Request
from app.domain.run import Distribution, Rate, Run, Workload
from app.domain.serving import predict
from tests.domain.subjects import LLAMA_8B, MIXTURE, SERVER
from tests.made_up import H100, measured_run, operator_prediction, textbook_prediction

CEILINGS = Ceilings("Made-up H100", "bf16", 9.89e14, 3.35e12, 4.2e14, 3.35e12)


def test_the_ridges_of_the_founding_case() -> None:
    """4.2e14 ÷ 3.35e12 = 125.4 achieved, 9.89e14 ÷ 3.35e12 = 295.2 by specification."""
    assert CEILINGS.ridge_achieved == pytest.approx(125.37, abs=0.01)
    assert CEILINGS.ridge_peak == pytest.approx(295.22, abs=0.01)
    assert CEILINGS.roof(1.0) == 3.35e12
    assert CEILINGS.roof(2000.0) == 4.2e14


def test_textbook_ceilings_are_the_profile_s_own_rates() -> None:
    found = ceilings_of(LLAMA_8B, H100, Request(calibration="textbook"))
    assert (found.peak_flops_per_s, found.achieved_flops_per_s, found.bandwidth_bytes_per_s) == (9.89e14, 4.2e14, 3.35e12)
    assert (found.name, found.dtype) == ("Made-up H100", "bf16")


def test_default_ceilings_stay_under_the_specification() -> None:
    device = HardwareProfile("x", "x", "x", 1e12, {"bf16": 1e14})
    found = ceilings_of(LLAMA_8B, device, Request())
    assert found.achieved_flops_per_s < found.peak_flops_per_s
    assert found.achieved_bandwidth_bytes_per_s < found.bandwidth_bytes_per_s


@pytest.mark.parametrize("tokens", [2_000, 100_000])
def test_no_pass_stands_above_a_roof_where_the_experts_alone_are_narrow(tokens: int) -> None:
    """fp8 units do the experts' products, 16-bit ones the rest: the roof is that of the faster units."""
    request = Request(prompt_tokens=tokens, weight_dtype="bf16", moe_dtype="fp8")
    ceilings = ceilings_of(MIXTURE, SERVER, request)
    assert ceilings.dtype == "fp8"
    assert ceilings.peak_flops_per_s == SERVER.peak_flops_per_s["fp8"]
    assert ceilings_of(MIXTURE, SERVER, Request(prompt_tokens=tokens)).dtype == "bf16"
    assert ceilings_of(LLAMA_8B, SERVER, request).dtype == "bf16"  # no experts: their format plays no part
    for point in roofline_of(predict(MIXTURE, SERVER, request), ceilings).of_kind("predicted"):
        assert point.flops_per_s <= ceilings.roof(point.intensity_flops_per_byte) * (1 + 1e-9)


def test_both_passes_of_the_founding_case_stand_on_their_roofs() -> None:
    """Prefill: 3.2e13 ÷ 1.6e10 = 2,000 FLOP/byte at 4.2e14 FLOP/s. Decode: 1 FLOP/byte at 3.35e12."""
    prefill, decode = roofline_of(textbook_prediction(), CEILINGS).points
    assert (prefill.phase, prefill.kind, prefill.bound) == ("prefill", "predicted", "compute")
    assert prefill.intensity_flops_per_byte == 2000
    assert prefill.flops_per_s == pytest.approx(4.2e14)
    assert decode.intensity_flops_per_byte == 1
    assert decode.flops_per_s == pytest.approx(3.35e12)


def test_operators_without_work_or_bytes_have_no_place() -> None:
    names = [point.title for point in roofline_of(operator_prediction(), CEILINGS).of_kind("operator")]
    assert names == ["gate up", "down", "attention", "logits", "gate up", "down", "attention"]


def test_a_timed_prompt_pass_is_a_measured_point() -> None:
    """3.2e13 FLOP in 95.2 ms: 336 TFLOP/s (founding run)."""
    run = measured_run(prefill_s=Distribution(mean=0.0952, n=5))
    point = roofline_of(textbook_prediction(), CEILINGS, run).of_kind("measured")[0]
    assert point.phase == "prefill"
    assert point.flops_per_s == pytest.approx(3.2e13 / 0.0952)
    assert point.source == "measured, mean of 5"


def test_ttft_of_a_single_client_bounds_the_rate_from_below() -> None:
    found = roofline_of(textbook_prediction(), CEILINGS, measured_run())
    (point,) = found.of_kind("bounded")
    assert (point.phase, point.source) == ("prefill", FROM_TTFT)
    assert point.flops_per_s == pytest.approx(3.2e13 / 0.0952)
    assert found.notes == ()


def test_under_load_no_prefill_point_is_drawn_and_the_chart_says_why() -> None:
    found = roofline_of(textbook_prediction(), CEILINGS, measured_run(concurrency=32))
    assert found.of_kind("bounded") == ()
    assert [point.phase for point in found.of_kind("measured")] == ["decode"]
    assert found.notes == (NO_PREFILL_UNDER_LOAD,)


def test_under_load_a_known_queue_is_taken_off() -> None:
    run = measured_run(concurrency=32, queue_s=Distribution(mean=0.0152, n=200))
    (point,) = roofline_of(textbook_prediction(), CEILINGS, run).of_kind("bounded")
    assert point.source == FROM_TTFT_LESS_QUEUE
    assert math.isclose(point.time_s, 0.080, abs_tol=1e-12)


def test_a_measured_step_is_a_decode_point() -> None:
    """1.6e10 FLOP in 6.99 ms: 2.29 TFLOP/s."""
    found = roofline_of(textbook_prediction(), CEILINGS, measured_run())
    (point,) = found.of_kind("measured")
    assert point.flops_per_s == pytest.approx(2.289e12, rel=1e-3)


def test_a_run_without_latencies_adds_nothing() -> None:
    empty = Run(format="generic", workload=Workload())
    found = roofline_of(textbook_prediction(), CEILINGS, empty)
    assert found.of_kind("measured", "bounded") == ()
    assert found.notes == ()


def test_work_that_the_server_counted_is_a_point_of_the_whole_run() -> None:
    """2e14 FLOP/s and 1.25e11 bytes/s over 20 s: 4e15 FLOP and 2.5e12 bytes, 1,600 FLOP/byte."""
    rates = {"intensity_flops_per_byte": 1600.0, "flops_per_s": 2e14, "bytes_per_s": 1.25e11}
    run = measured_run()
    run = replace(run, duration_s=20.0, metrics={**run.metrics, **{key: Rate(value, "device") for key, value in rates.items()}})
    found = roofline_of(textbook_prediction(), CEILINGS, run)
    point = next(point for point in found.of_kind("measured") if point.phase == "both")
    assert (point.title, point.source) == ("whole run", "counted by the server over 20 s, idle time inside")
    assert (point.flops, point.bytes, point.time_s) == (4e15, 2.5e12, 20.0)
    assert (point.flops_per_s, point.intensity_flops_per_byte) == (2e14, 1600.0)
    assert found.notes == ()


def test_counted_work_without_a_time_is_a_sentence() -> None:
    run = measured_run()
    run = replace(run, metrics={**run.metrics, "intensity_flops_per_byte": Rate(1600.0, "device")})
    found = roofline_of(textbook_prediction(), CEILINGS, run)
    assert all(point.phase != "both" for point in found.points)
    assert found.notes == (COUNTED_WITHOUT_TIME.format(intensity=1600.0),)
