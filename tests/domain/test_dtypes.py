"""Bytes per element with their scales, and the arithmetic a pair of formats is computed in."""

import pytest

from app.domain.dtypes import ALIASES, FORMATS, Arithmetic, arithmetic, number_format
from app.domain.errors import InvalidRequest


@pytest.mark.parametrize(
    ("name", "bytes_per_weight"),
    [
        ("fp32", 4.0),
        ("bf16", 2.0),
        ("bfloat16", 2.0),
        ("torch.float16", 2.0),
        ("F16", 2.0),
        ("fp8_e4m3", 1.0),
        ("FP8-E5M2", 1.0),
        ("fp8_block", 1 + 4 / 16384),
        ("int8", 1.0),
        ("int4", 0.5),
        # 4 bits, a 16-bit scale and a 4-bit zero point for 128 weights: (512 + 16 + 4) bits / 128 = 4.15625 bits
        ("awq", 4.15625 / 8),
        ("gptq", 4.15625 / 8),
        ("W4A16", 4.15625 / 8),
        ("nvfp4", 0.5625),  # 4 bits + 8/16
        ("mxfp4", 0.53125),  # 4 bits + 8/32
        ("Q4_0", 18 / 32),  # blocks of 32: a 2-byte scale and 16 bytes
        ("q8_0", 34 / 32),
        ("q4_k_m", 4.8944 / 8),
        ("q4_k_medium", 4.8944 / 8),
    ],
)
def test_bytes_per_weight_count_the_scales(name: str, bytes_per_weight: float) -> None:
    assert number_format(name).bytes == pytest.approx(bytes_per_weight, rel=1e-12)


def test_the_payload_leaves_them_out() -> None:
    assert {FORMATS[key].payload_bytes for key in ("awq", "gptq", "nvfp4", "mxfp4", "int4")} == {0.5}


@pytest.mark.parametrize(
    ("weight", "activation", "wanted", "fallback", "quantises"),
    [
        ("bf16", "bf16", "bf16", "bf16", False),
        ("fp32", "bf16", "fp32", "fp32", False),  # wider weights decide
        ("bf16", "fp32", "fp32", "fp32", False),
        ("tf32", "tf32", "tf32", "tf32", False),
        ("bf16", "fp8", "bf16", "bf16", False),  # narrow activations do not quicken wide weights
        ("awq", "bf16", "bf16", "bf16", False),  # weight-only: the activation's rate
        ("q4_k_m", "fp16", "fp16", "fp16", False),
        ("awq", "fp8", "fp8", "bf16", True),  # W4A8
        ("fp8", "bf16", "fp8", "bf16", True),
        ("fp8", "fp16", "fp8", "fp16", True),
        ("nvfp4", "bf16", "fp4", "bf16", True),
        ("mxfp4", "bf16", "bf16", "bf16", False),
        ("mxfp4", "nvfp4", "fp4", "bf16", True),
        ("int4", "nvfp4", "bf16", "bf16", False),  # integers do not go through fp4 units
        ("int8", "bf16", "bf16", "bf16", False),  # W8A16
        ("int8", "int8", "int8", "bf16", True),
        ("w8a8", "bf16", "int8", "bf16", True),
    ],
)
def test_arithmetic_of_a_pair(weight: str, activation: str, wanted: str, fallback: str, quantises: bool) -> None:
    pair = arithmetic(number_format(weight), number_format(activation, "activation_dtype"))
    assert pair == Arithmetic(wanted, fallback, quantises)


@pytest.mark.parametrize(
    ("name", "field", "listed"),
    [
        ("bf17", "weight_dtype", "q4_k_m"),
        ("", "weight_dtype", "bf16"),
        ("q4_k_m", "activation_dtype", "bf16"),
        ("awq", "kv_dtype", "fp8"),
        ("x" * 500, "kv_dtype", "bf16"),
        (None, "weight_dtype", "bf16"),
    ],
)
def test_an_unknown_format_is_refused_with_the_known_ones(name: str, field: str, listed: str) -> None:
    with pytest.raises(InvalidRequest, match="known are") as refusal:
        number_format(name, field)
    assert refusal.value.field == field
    assert listed in str(refusal.value)
    assert len(str(refusal.value)) < 600


def test_every_alias_names_a_format() -> None:
    assert set(ALIASES.values()) <= set(FORMATS)
    assert not set(ALIASES) & set(FORMATS)
