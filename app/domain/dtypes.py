"""Number formats: bytes per element with their scales, and the arithmetic a pair of them is computed in.

Three places use a format: weights, activations and KV cache. A weight format with units of its own (fp8, nvfp4, int8 W8A8) computes
at that rate, its activations quantised on the way; a weight-only format (AWQ, GPTQ, the GGUF types) moves fewer bytes but
computes at the activation's rate. Block scales are counted: nvfp4 is 4 bits and an 8-bit scale per 16 weights, 0.5625 bytes.

Bits of the GGUF types: a block of the plain types has a fixed size; the mixtures (…_k_s, _m, _l, iq…) are what a whole
Llama-3.1-8B takes on average, from the table in llama.cpp's tools/quantize/README.md (commit 311c2c9).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from app.domain.errors import InvalidRequest


@dataclass(frozen=True)
class NumberFormat:
    """One format. `bytes` counts scales, `payload_bytes` the bits of the element alone.

    `arithmetic` names the units it computes on by itself (a key of a device's peaks); None for a storage-only format.
    `quantises_activations`: activations are brought to this format before the product, which costs a launch.
    `tables_at_16_bit`: checkpoints of this format keep the input table and the output matrix at 16 bit; engines that quantise as they
    load (int8, int4) and the GGUF types, whose bits are a whole file's average, do not.
    """

    key: str
    title: str
    bytes: float
    payload_bytes: float
    arithmetic: str | None = None
    quantises_activations: bool = False
    weights: bool = True
    activations: bool = False
    kv: bool = False
    tables_at_16_bit: bool = False


def _gguf(key: str, bits: float, title: str = "", kv: bool = False) -> NumberFormat:
    return NumberFormat(key, title or f"GGUF {key.upper()}", bits / 8, bits / 8, kv=kv)


_GROUP_128_BYTES = 0.5 + (2 + 0.5) / 128  # a 16-bit scale and a 4-bit zero point for each 128 weights

_FORMATS = (
    NumberFormat("fp32", "32-bit float", 4, 4, "fp32", activations=True, kv=True),
    NumberFormat("tf32", "32-bit float, TF32 arithmetic", 4, 4, "tf32", activations=True),
    NumberFormat("bf16", "bfloat16", 2, 2, "bf16", activations=True, kv=True),
    NumberFormat("fp16", "16-bit float", 2, 2, "fp16", activations=True, kv=True),
    NumberFormat("fp8", "8-bit float (W8A8)", 1, 1, "fp8", quantises_activations=True, activations=True, kv=True, tables_at_16_bit=True),
    NumberFormat("fp8_block", "8-bit float, a 32-bit scale per 128 x 128 block", 1 + 4 / 128**2, 1, "fp8", True, tables_at_16_bit=True),
    NumberFormat("int8_w8a8", "8-bit integer weights and activations", 1, 1, "int8", True, tables_at_16_bit=True),
    NumberFormat("int8", "8-bit integer weights only (W8A16)", 1, 1, activations=True, kv=True),
    NumberFormat("int4", "4-bit integer weights, a scale per channel", 0.5, 0.5, kv=True),
    NumberFormat("awq", "AWQ: 4-bit weights, a scale and zero point per 128", _GROUP_128_BYTES, 0.5, tables_at_16_bit=True),
    NumberFormat("gptq", "GPTQ: 4-bit weights, a scale and zero point per 128", _GROUP_128_BYTES, 0.5, tables_at_16_bit=True),
    NumberFormat("nvfp4", "4-bit float, an 8-bit scale per 16", 0.5625, 0.5, "fp4", True, activations=True, kv=True, tables_at_16_bit=True),
    NumberFormat("mxfp4", "4-bit float weights, an 8-bit scale per 32", 0.53125, 0.5, tables_at_16_bit=True),
    _gguf("q4_0", 4.5, kv=True),
    _gguf("q4_1", 5.0, kv=True),
    _gguf("q5_0", 5.5, kv=True),
    _gguf("q5_1", 6.0, kv=True),
    _gguf("q8_0", 8.5, kv=True),
    _gguf("q2_k", 3.1593),
    _gguf("q2_k_s", 2.9697),
    _gguf("q3_k_s", 3.6429),
    _gguf("q3_k_m", 3.9960),
    _gguf("q3_k_l", 4.2979),
    _gguf("q4_k_s", 4.6672),
    _gguf("q4_k_m", 4.8944),
    _gguf("q5_k_s", 5.5704),
    _gguf("q5_k_m", 5.7036),
    _gguf("q6_k", 6.5633),
    _gguf("iq1_s", 2.0042),
    _gguf("iq1_m", 2.1460),
    _gguf("iq2_xxs", 2.3824),
    _gguf("iq2_xs", 2.5882),
    _gguf("iq2_s", 2.7403),
    _gguf("iq2_m", 2.9294),
    _gguf("iq3_xxs", 3.2548),
    _gguf("iq3_xs", 3.4977),
    _gguf("iq3_s", 3.6606),
    _gguf("iq3_m", 3.7628),
    _gguf("iq4_xs", 4.4597),
    _gguf("iq4_nl", 4.6818),
)

FORMATS: Mapping[str, NumberFormat] = {form.key: form for form in _FORMATS}

ALIASES: Mapping[str, str] = {
    "float32": "fp32",
    "float": "fp32",
    "f32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "f16": "fp16",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp8_e4m3fn": "fp8",
    "float8_e4m3fn": "fp8",
    "float8_e4m3": "fp8",
    "float8_e5m2": "fp8",
    "e4m3": "fp8",
    "w8a8_fp8": "fp8",
    "w8a8": "int8_w8a8",
    "w8a8_int8": "int8_w8a8",
    "smoothquant": "int8_w8a8",
    "w8a16": "int8",
    "int8_w8a16": "int8",
    "w8a8_sq_per_channel": "int8_w8a8",
    "w4a16": "awq",
    "w4a16_awq": "awq",
    "w4a16_gptq": "gptq",
    "fp8_block_scales": "fp8_block",
    "int4_awq": "awq",
    "int4_gptq": "gptq",
    "awq_marlin": "awq",
    "gptq_marlin": "gptq",
    "fp4": "nvfp4",
    "modelopt_fp4": "nvfp4",
    "q3_k": "q3_k_m",
    "q4_k": "q4_k_m",
    "q4_k_medium": "q4_k_m",
    "q5_k": "q5_k_m",
    "q5_k_medium": "q5_k_m",
}


def number_format(name: str, field: str = "weight_dtype") -> NumberFormat:
    """The format called `name` (case, hyphens and the usual aliases do not matter), fit for the request's `field`.

    Raises InvalidRequest with `field` and the formats known there.
    """
    form = None
    if isinstance(name, str):
        key = name.strip().lower().removeprefix("torch.").replace("-", "_")
        form = FORMATS.get(ALIASES.get(key, key))
    if form is None or not _fits(form, field):
        known = ", ".join(form.key for form in _FORMATS if _fits(form, field))
        raise InvalidRequest(field, f"{field} is {str(name)[:40]!r}, which is no known format for it; known are {known}.")
    return form


def _fits(form: NumberFormat, field: str) -> bool:
    if field in ("activation_dtype", "comm_dtype"):
        return form.activations
    return form.kv if field == "kv_dtype" else form.weights


@dataclass(frozen=True)
class Arithmetic:
    """The units a product wants, those it falls back to where a device has none, and whether activations are quantised for it."""

    wanted: str
    fallback: str
    quantises_activations: bool


_NARROW = ("fp8", "fp4", "int8")


def arithmetic(weight: NumberFormat, activation: NumberFormat) -> Arithmetic:
    """What a product of these two formats is computed in.

    fp8, nvfp4 and int8 W8A8 weights compute at their own rate; storage-only weights at the activation's (int8 activations: int8
    units; fp4 units take mxfp4 weights only); plain float weights at the wider of the two. A narrow product falls back to the
    activation's float format, 16-bit where that is narrow too.
    """
    rate = "int8" if activation.key == "int8" else activation.arithmetic or "bf16"
    wide = "bf16" if rate in _NARROW else rate
    if weight.quantises_activations:
        wanted = weight.arithmetic or wide
    elif weight.arithmetic is None:
        wanted = wide if rate == "fp4" and weight.key != "mxfp4" else rate
    else:
        wanted = rate if activation.bytes > weight.bytes else weight.arithmetic
    narrow = wanted in _NARROW
    return Arithmetic(wanted, wide if narrow else wanted, narrow)
