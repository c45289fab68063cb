"""Which units, efficiencies and fixed times a question is priced at, and what is said when a device lacks some."""

import dataclasses

import pytest

from app.domain.constants import DEFAULTS
from app.domain.engine import EngineProfile, bit_class
from app.domain.errors import InvalidRequest
from app.domain.hardware import LABELS, HardwareProfile
from app.domain.prediction import Request
from app.domain.rates import Formats, Rates, resolve, resolve_textbook
from tests.domain.subjects import ENGINE, GEFORCE, OLD_CARD, OLD_GEFORCE, ONLY_FP32, PENCIL, SERVER, TEXTBOOK_H100


def rates(hardware: HardwareProfile, weight: str = "bf16", activation: str = "bf16", engine: EngineProfile | None = None) -> Rates:
    return resolve(hardware, Formats.of(Request(weight_dtype=weight, activation_dtype=activation)), engine)


def test_defaults_carry_a_label_and_a_source() -> None:
    assert all(constant.label in LABELS and constant.source for constant in DEFAULTS.values())


def test_default_constants() -> None:
    found = rates(PENCIL)
    assert (found.gemm_efficiency, found.weight_efficiency, found.kv_efficiency) == (0.75, 0.86, 0.85)
    assert found.launch_s == 3e-6
    assert found.per_layer_s == pytest.approx(20e-6)
    assert (found.step_s, found.per_sequence_s, found.front_end_s, found.all_reduce_alpha_s) == (0.5e-3, 5e-6, 15e-3, 2.5e-6)
    assert found.bus_bytes_per_s == 0.75e10
    assert found.ridge_peak == 10
    assert found.ridge_achieved == pytest.approx(0.75e12 / 0.86e11)
    assert found.assumptions == ()


def test_fp8_weights_compute_at_their_own_rate_and_pay_for_quantising() -> None:
    found = rates(PENCIL, "fp8")
    assert (found.gemm.format, found.gemm.peak_flops_per_s, found.gemm_efficiency, found.launch_s) == ("fp8", 2e12, 0.5, 6e-6)
    assert (found.attention.format, found.attention.peak_flops_per_s) == ("bf16", 1e12)


def test_weight_only_formats_compute_at_the_activation_rate() -> None:
    assert rates(PENCIL, "awq").gemm.format == "bf16"
    assert rates(PENCIL, "q4_k_m", "fp32").gemm.format == "fp32"
    assert rates(PENCIL, "awq").launch_s == 3e-6


def test_the_devices_own_fits_come_before_the_defaults() -> None:
    found = rates(SERVER)
    assert (found.gemm_efficiency, found.weight_efficiency, found.launch_s) == (0.8, 0.86, 3e-6)
    # the fp8 fit holds its own bandwidth share and its own launch time, quantising included
    narrow = rates(SERVER, "fp8")
    assert (narrow.gemm_efficiency, narrow.weight_efficiency, narrow.launch_s) == (0.44, 0.77, 6e-6)
    # bf16 and fp16 are one class
    assert rates(SERVER, "fp16", "fp16").gemm_efficiency == 0.8


def test_the_engines_figures_come_before_the_devices() -> None:
    found = rates(SERVER, engine=ENGINE)
    assert found.gemm_efficiency == pytest.approx(0.75 * 0.9)  # a factor on the general e_c, not on the device's own
    assert (found.weight_efficiency, found.kv_efficiency) == (0.9, 0.8)
    assert (found.launch_s, found.per_layer_s, found.step_s, found.interference) == (2e-6, 23e-6, 1.6e-3, 0.9)
    assert rates(SERVER, "fp8", engine=ENGINE).launch_s == pytest.approx(5e-6)
    assert rates(SERVER, "awq", engine=ENGINE).gemm_efficiency == pytest.approx(0.5 * 0.8)  # unpacked weights


def test_no_efficiency_exceeds_the_specification() -> None:
    eager = EngineProfile("x", "X", compute_efficiency={"any": 1.6}, weight_bandwidth_efficiency={"any": 1.2}, cuda_graphs=False)
    found = rates(SERVER, engine=eager)
    assert (found.gemm_efficiency, found.weight_efficiency) == (1.0, 1.0)
    assert found.all_reduce_alpha_s == 10.5e-6


@pytest.mark.parametrize(("bits", "expected"), [(4.5, "4bit"), (6.5633, "4bit"), (8, "8bit"), (8.5, "8bit"), (16, "16bit"), (32, "16bit")])
def test_bit_classes(bits: float, expected: str) -> None:
    assert bit_class(bits / 8) == expected


@pytest.mark.parametrize(
    ("hardware", "weight", "format_", "peak", "sentence"),
    [
        (OLD_CARD, "bf16", "fp16", 1.25e14, "states|specifies no bf16 rate; its fp16 rate is taken"),
        (OLD_CARD, "fp8", "fp16", 1.25e14, "no FP8 rate; fp8 weights are unpacked and computed at its fp16 rate"),
        (ONLY_FP32, "bf16", "fp32", 2e12, "its fp32 rate is taken"),
        (SERVER, "nvfp4", "bf16", 9.89e14, "no FP4 rate; nvfp4 weights are unpacked"),
        (GEFORCE, "w8a8", "bf16", 1.652e14, "no INT8 rate"),
        (GEFORCE, "fp16", "bf16", 1.652e14, "fp16 is priced at the bf16 rate"),
        (OLD_GEFORCE, "fp16", "fp16", 5.38e13, "half of it is taken"),
        (OLD_GEFORCE, "bf16", "fp16", 5.38e13, "specifies no bf16 rate"),
    ],
)
def test_a_missing_rate_falls_back_and_says_so(hardware: HardwareProfile, weight: str, format_: str, peak: float, sentence: str) -> None:
    found = rates(hardware, weight)
    assert (found.gemm.format, found.gemm.peak_flops_per_s) == (format_, peak)
    assert any(part in note for note in found.assumptions for part in sentence.split("|"))


def test_geforce_bf16_is_the_default_of_sixteen_bit_work() -> None:
    assert rates(GEFORCE).gemm.peak_flops_per_s == 1.652e14
    assert rates(GEFORCE).assumptions == ()


def test_a_device_without_any_usable_rate_is_refused() -> None:
    bare = dataclasses.replace(ONLY_FP32, peak_flops_per_s={"int8": 1e12})
    with pytest.raises(InvalidRequest, match="states no arithmetic rate for bf16") as refusal:
        rates(bare)
    assert refusal.value.field == "hardware"


def test_textbook_rates_are_the_profiles_own() -> None:
    found = resolve_textbook(TEXTBOOK_H100, Formats.of(Request()))
    assert found.achieved_flops_per_s == pytest.approx(4.2e14, rel=1e-15)
    assert found.achieved_bytes_per_s == 3.35e12
    assert (found.front_end_s, found.step_s, found.launch_s, found.assumptions) == (0, 0, 0, ())


def test_textbook_rates_are_assumed_where_none_is_known() -> None:
    found = resolve_textbook(PENCIL, Formats.of(Request()))
    assert found.achieved_flops_per_s == pytest.approx(0.425e12)
    assert found.achieved_bytes_per_s == 1e11
    assert sum("assumed" in note for note in found.assumptions) == 2
