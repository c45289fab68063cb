"""The founding text's claims that have figures, each a test with the row's number; the setting is textbook-8b on textbook-h100.

8e9 parameters of 2 bytes, 3.35e12 bytes/s, 4.2e14 FLOP/s achieved of 9.89e14, prompt 2,000, output 300.
"""

import dataclasses

import pytest

from app.domain.hardware import HardwareProfile
from app.domain.prediction import Prediction, Request
from app.domain.roofline import idle_share, share_of_floor
from app.domain.serving import attention_flops_textbook, predict, total_s
from app.domain.work import decode_steps, mean_decode_numbers, pass_numbers
from tests.domain.subjects import TEXTBOOK_8B, TEXTBOOK_H100

EXACT = 1e-12


def founding(hardware: HardwareProfile = TEXTBOOK_H100, **changes: object) -> Prediction:
    return predict(TEXTBOOK_8B, hardware, Request(calibration="textbook", **changes))  # type: ignore[arg-type]


def test_row_1_shapes_of_the_passes() -> None:
    # prefill: one pass of 2,000 rows through matrices of 4,096; decode: passes of one row, 299 after the token that prefill makes
    assert pass_numbers(2000).tokens == 2000
    assert mean_decode_numbers(2000, 300).tokens == 1
    assert decode_steps(300) == 299
    assert TEXTBOOK_8B.hidden == 4096


def test_row_2_two_operations_per_parameter_and_token() -> None:
    found = founding()
    assert found.decode.flops == 1.6e10
    assert found.prefill.flops == 3.2e13
    assert found.prefill.terms[0].flops == 3.2e13


def test_row_3_the_weights_cross_once_per_pass() -> None:
    found = founding()
    assert found.prefill.bytes == found.decode.bytes == 1.6e10
    assert founding(batch=32).decode.bytes == 1.6e10


def test_row_4_prefill_is_compute_bound_by_sixteen() -> None:
    prefill = founding().prefill
    assert prefill.compute_s == pytest.approx(3.2e13 / 4.2e14, rel=EXACT)
    assert round(prefill.compute_s, 7) == 0.0761905
    assert prefill.memory_s == pytest.approx(1.6e10 / 3.35e12, rel=EXACT)
    assert round(prefill.memory_s, 8) == 0.00477612
    assert round(prefill.compute_s / prefill.memory_s, 2) == 15.95
    assert prefill.bound == "compute"
    assert prefill.time_s == prefill.attainable_s == prefill.compute_s
    # at the specified peak nothing beats 3.2e13/9.89e14
    assert prefill.floor_s == pytest.approx(0.0323559, rel=1e-6)


def test_row_5_decode_is_memory_bound_by_125() -> None:
    decode = founding().decode
    assert round(decode.compute_s * 1e5, 4) == 3.8095
    assert round(decode.memory_s, 8) == 0.00477612
    assert round(decode.memory_s / decode.compute_s, 1) == 125.4
    assert decode.bound == "memory"
    assert round(idle_share(decode), 3) == 0.992


def test_row_6_intensity_is_the_token_count() -> None:
    found = founding()
    assert found.prefill.intensity_flops_per_byte == 2000
    assert found.decode.intensity_flops_per_byte == 1
    assert round(found.ridge_achieved, 1) == 125.4
    assert round(found.ridge_peak, 1) == 295.2


def test_row_7_ceiling_of_one_stream() -> None:
    found = founding()
    assert round(found.request_tokens_per_s, 1) == 209.4
    assert found.aggregate_tokens_per_s == found.request_tokens_per_s
    assert round(share_of_floor(found.decode.floor_s, 1 / 143), 3) == 0.683


def test_row_8_total_of_the_measured_request() -> None:
    measured = float(total_s(0.095, 1 / 143, 300))
    assert round(measured, 3) == 2.186
    assert round(0.095 / measured, 4) == 0.0435


def test_row_8_total_of_the_predicted_request() -> None:
    found = founding()
    assert found.ttft_s == found.prefill.time_s
    assert found.itl_s == found.decode.attainable_s
    assert found.total_s == pytest.approx(0.0761905 + 299 * 0.00477612, rel=1e-6)
    assert round(found.total_s, 4) == 1.5043
    assert round(found.prefill_share, 4) == 0.0507  # of the ideal request; 4 % of the measured one
    assert (found.front_end_s, found.interference_s) == (0, 0)


def test_row_9_the_rates_of_the_phases() -> None:
    assert round(2000 / 0.095) == 21053
    assert round(2000 / 0.095 / 143, 1) == 147.2
    found = founding()
    assert found.prefill.flops / 2000 == found.decode.flops  # the arithmetic per token is the same


def test_row_10_two_devices_halve_the_bytes_of_each() -> None:
    alone, two = founding(), founding(tp=2)
    assert two.decode.bytes == alone.decode.bytes / 2
    assert two.itl_s == pytest.approx(alone.itl_s / 2, rel=EXACT)
    assert two.ttft_s == pytest.approx(alone.ttft_s / 2, rel=EXACT)


def test_row_11_attention_is_quadratic() -> None:
    one, two, long = (float(attention_flops_textbook(TEXTBOOK_8B, prompt)) for prompt in (1000, 2000, 32000))
    assert two == 4 * one
    assert founding(prompt_tokens=2000).prefill.flops == 2 * founding(prompt_tokens=1000).prefill.flops
    assert round(two / (2 * 8e9 * 2000), 4) == 0.0328
    assert round(long / (2 * 8e9 * 32000), 3) == 0.524


def test_row_11_attention_stands_beside_and_not_inside() -> None:
    found = founding()
    assert found.attention_beside is not None
    assert found.attention_beside.flops == 2 * 32 * 4096 * 2000**2  # 4 * layers * heads * head_dim * S^2 / 2
    assert found.attention_beside.time_s == pytest.approx(1.048576e12 / 4.2e14)
    assert [term.name for term in found.prefill.terms] == ["dense_weights"]
    assert any("Causal attention would add" in sentence for sentence in found.assumptions)


def test_row_12_a_long_prompt_inverts_the_picture() -> None:
    found = founding(prompt_tokens=100_000, output_tokens=50)
    assert found.attention_beside is not None
    assert round(found.prefill.time_s, 2) == 3.81
    assert round(found.prefill.time_s + found.attention_beside.time_s, 2) == 10.05
    assert round(50 * 0.007, 2) == 0.35
    assert round(49 * found.decode.floor_s, 3) == 0.234


def test_row_13_decode_follows_bandwidth_and_prefill_arithmetic() -> None:
    base = founding()
    wider = dataclasses.replace(TEXTBOOK_H100, bandwidth_bytes_per_s=1.5 * 3.35e12, achieved_bandwidth_bytes_per_s=1.5 * 3.35e12)
    quick = founding(wider)
    assert quick.itl_s == pytest.approx(base.itl_s / 1.5, rel=EXACT)
    assert quick.ttft_s == base.ttft_s
    stronger = dataclasses.replace(TEXTBOOK_H100, peak_flops_per_s={"bf16": 2 * 9.89e14}, achieved_flops_per_s={"bf16": 8.4e14})
    strong = founding(stronger)
    assert strong.ttft_s == pytest.approx(base.ttft_s / 2, rel=EXACT)
    assert strong.itl_s == base.itl_s


@pytest.mark.parametrize("weight", ["int4", "awq", "mxfp4"])
def test_row_13_four_bit_weights_are_a_quarter_of_the_bytes(weight: str) -> None:
    base, small = founding(), founding(weight_dtype=weight)
    assert small.decode.bytes == base.decode.bytes / 4
    assert small.itl_s == pytest.approx(base.itl_s / 4, rel=EXACT)
    assert small.ttft_s == base.ttft_s


def test_row_14_a_step_of_32_sequences_reads_the_weights_once() -> None:
    found = founding(batch=32)
    assert round(found.decode.compute_s * 1e3, 2) == 1.22
    assert round(found.decode.memory_s * 1e3, 2) == 4.78
    assert found.itl_s == founding().itl_s
    assert found.aggregate_tokens_per_s == pytest.approx(32 * founding().request_tokens_per_s)
    assert found.prefill.time_s == pytest.approx(32 * founding().prefill.time_s)  # prefill has no headroom


def test_row_15_the_cache_that_makes_step_300_like_step_1() -> None:
    # 2 * 32 layers * 8 KV heads * 128 * 2 bytes = 131,072 bytes a position, at the mean 2,150 positions
    mean = float(mean_decode_numbers(2000, 300).positions)
    cache = TEXTBOOK_8B.kv_cache_bytes(mean)
    assert mean == 2150
    assert cache == 281_804_800
    assert round(cache / 1.6e10, 3) == 0.018
    found = founding()
    assert found.first_step_s == found.last_step_s == found.decode.time_s


def test_row_16_bytes_per_weight_are_what_can_be_reduced() -> None:
    # all of a dense model is read at every step; only the width of its weights can change
    for weight, width in (("bf16", 2.0), ("int8", 1.0), ("int4", 0.5)):
        assert founding(weight_dtype=weight).decode.bytes == 8e9 * width


def test_row_18_a_rate_names_its_scope() -> None:
    found = founding(batch=32)
    assert found.aggregate_tokens_per_s == pytest.approx(32 * found.request_tokens_per_s)


def test_row_19_both_phases_side_by_side() -> None:
    found = founding()
    for phase in (found.prefill, found.decode):
        assert (phase.intensity_flops_per_byte > found.ridge_achieved) == (phase.bound == "compute")
