"""The rates one question is priced at: a device, an engine and number formats resolved to FLOP/s, bytes/s and fixed times.

Order for each figure: the engine profile's, else the device's own fit, else the default constant. A device without the units a
format wants computes on the next physically right ones, and the rates carry a sentence that says so.
"""

from dataclasses import dataclass, replace

from app.domain.constants import DEFAULTS, default
from app.domain.dtypes import NumberFormat, arithmetic, number_format
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Request
from app.domain.work import ElementBytes

# What a device without a format's units computes on instead, in order. Narrow formats fall back to the activation's format first.
_WIDER = {
    "tf32": ("tf32", "fp32"),
    "bf16": ("bf16", "fp16", "fp32"),
    "fp16": ("fp16", "bf16", "fp32"),
    "fp32": ("fp32",),
}
_FORMAT_WORDS = {"fp4": "FP4", "fp8": "FP8", "int8": "INT8"}


@dataclass(frozen=True)
class Units:
    """The arithmetic units of a device that a product runs on: their format and specified dense FLOP/s."""

    format: str
    peak_flops_per_s: float
    assumptions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Formats:
    """The three number formats of a request, resolved."""

    weight: NumberFormat
    activation: NumberFormat
    kv: NumberFormat

    @classmethod
    def of(cls, request: Request) -> "Formats":
        """The formats a request names. Raises InvalidRequest for an unknown one."""
        return cls(
            number_format(request.weight_dtype, "weight_dtype"),
            number_format(request.activation_dtype, "activation_dtype"),
            number_format(request.kv_dtype, "kv_dtype"),
        )

    def element_bytes(self) -> ElementBytes:
        """Bytes per element with scales, as the operator model counts them."""
        return ElementBytes(self.weight.bytes, self.activation.bytes, self.kv.bytes)


@dataclass(frozen=True)
class Rates:
    """Everything `roofline.price` needs beside the work. Efficiencies are fractions of the specified rate, at most 1."""

    gemm: Units
    attention: Units
    bandwidth_bytes_per_s: float
    gemm_efficiency: float
    weight_efficiency: float
    kv_efficiency: float
    launch_s: float
    per_layer_s: float
    step_s: float
    per_sequence_s: float
    front_end_s: float
    all_reduce_alpha_s: float
    bus_bytes_per_s: float | None
    interference: float
    prefill_floor_per_layer_s: float
    assumptions: tuple[str, ...]

    @property
    def achieved_flops_per_s(self) -> float:
        """What linear layers reach: e_c x peak."""
        return self.gemm_efficiency * self.gemm.peak_flops_per_s

    @property
    def achieved_bytes_per_s(self) -> float:
        """What weight reads reach: e_b x bandwidth."""
        return self.weight_efficiency * self.bandwidth_bytes_per_s

    @property
    def ridge_peak(self) -> float:
        """FLOP per byte at which a pass turns from memory- to compute-bound, at specified rates."""
        return self.gemm.peak_flops_per_s / self.bandwidth_bytes_per_s

    @property
    def ridge_achieved(self) -> float:
        """The same at achieved rates."""
        return self.achieved_flops_per_s / self.achieved_bytes_per_s


def float_units(hardware: HardwareProfile, wanted: str) -> Units:
    """The units for a float product of fp32, tf32, bf16 or fp16. Raises InvalidRequest where the device states no usable rate.

    GeForce cards specify fp16 with fp16 accumulation, twice as fast as language models can use; their bf16 column accumulates in fp32
    and stands for all 16-bit work.
    """
    geforce = "geforce" in hardware.name.lower()
    order = ("bf16", "fp16", "fp32") if geforce and wanted == "fp16" else _WIDER[wanted]
    for format_ in order:
        peak = hardware.peak(format_)
        if peak is None:
            continue
        notes = []
        if geforce and format_ == "fp16":
            peak /= 2
            notes.append(f"{hardware.name} specifies fp16 with fp16 accumulation; with fp32 accumulation half of it is taken.")
        elif geforce and wanted == "fp16" and format_ == "bf16":
            notes.append(f"On {hardware.name} fp16 is priced at the bf16 rate, the one with fp32 accumulation.")
        if format_ != wanted and not (geforce and format_ == "bf16"):
            notes.append(f"{hardware.name} specifies no {wanted} rate; its {format_} rate is taken.")
        return Units(format_, peak, tuple(notes))
    raise InvalidRequest(
        "hardware",
        f"{hardware.name} states no arithmetic rate for {wanted} or a format that can stand for it; take another format or add the rate.",
    )


def gemm_units(hardware: HardwareProfile, formats: Formats) -> tuple[Units, bool]:
    """The units linear layers run on, and whether activations are quantised for them."""
    product = arithmetic(formats.weight, formats.activation)
    if not product.quantises_activations:
        return float_units(hardware, product.wanted), False
    peak = hardware.peak(product.wanted)
    if peak is not None:
        return Units(product.wanted, peak), True
    units = float_units(hardware, product.fallback)
    word = _FORMAT_WORDS[product.wanted]
    note = f"{hardware.name} specifies no {word} rate; {formats.weight.key} weights are unpacked and computed at its {units.format} rate."
    return replace(units, assumptions=(note, *units.assumptions)), False


def resolve(hardware: HardwareProfile, formats: Formats, engine: EngineProfile | None) -> Rates:
    """The rates of the operator model (`default` mode)."""
    gemm, quantised = gemm_units(hardware, formats)
    product = arithmetic(formats.weight, formats.activation)
    attention = float_units(hardware, product.fallback if product.quantises_activations else product.wanted)
    profile = engine if engine is not None else EngineProfile("", "")
    weight_bytes = formats.weight.bytes
    factor = profile.compute_factor(weight_bytes)
    alpha = "all_reduce_alpha_graphs_s" if profile.cuda_graphs else "all_reduce_alpha_eager_s"
    link = hardware.link_bytes_per_s
    return Rates(
        gemm=gemm,
        attention=attention,
        bandwidth_bytes_per_s=hardware.bandwidth_bytes_per_s,
        gemm_efficiency=min(1.0, device_efficiency(hardware, gemm.format) * (1.0 if factor is None else factor)),
        weight_efficiency=min(
            1.0,
            _first(
                profile.weight_efficiency(weight_bytes), _device_read_efficiency(hardware, formats), default("weight_bandwidth_efficiency")
            ),
        ),
        kv_efficiency=min(1.0, _first(profile.kv_bandwidth_efficiency, None, default("kv_bandwidth_efficiency"))),
        launch_s=_launch_s(hardware, profile, gemm.format, quantised),
        per_layer_s=_first(profile.per_layer_s, None, default("small_kernels_per_layer_s") + default("attention_per_layer_s")),
        step_s=_first(profile.step_s, None, default("step_s")),
        per_sequence_s=_first(profile.per_sequence_s, None, default("per_sequence_s")),
        front_end_s=_first(profile.front_end_s, None, default("front_end_s")),
        all_reduce_alpha_s=_first(profile.all_reduce_alpha_s, None, default(alpha)),
        bus_bytes_per_s=None if link is None else default("bus_share_of_link") * link,
        interference=_first(profile.interference, None, default("interference")),
        prefill_floor_per_layer_s=profile.prefill_floor_per_layer_s,
        assumptions=_distinct((*gemm.assumptions, *attention.assumptions)),
    )


def resolve_textbook(hardware: HardwareProfile, formats: Formats) -> Rates:
    """The rates of `textbook` mode: the profile's in-model rates, else 0.425 x peak and the whole bandwidth; no fixed times at all."""
    gemm, _ = gemm_units(hardware, formats)
    peak, bandwidth = gemm.peak_flops_per_s, hardware.bandwidth_bytes_per_s
    notes = list(gemm.assumptions)
    achieved = hardware.achieved_flops_per_s.get(gemm.format)
    if achieved is None:
        achieved = default("textbook_compute_share") * peak
        notes.append(f"No in-model {gemm.format} rate is known for {hardware.name}: 0.425 of its peak is assumed.")
    read = hardware.achieved_bandwidth_bytes_per_s
    if read is None:
        read = default("textbook_bandwidth_share") * bandwidth
        notes.append(f"No in-model bandwidth is known for {hardware.name}: its specified bandwidth is assumed.")
    return Rates(
        gemm=gemm,
        attention=gemm,
        bandwidth_bytes_per_s=bandwidth,
        gemm_efficiency=min(1.0, achieved / peak),
        weight_efficiency=min(1.0, read / bandwidth),
        kv_efficiency=1.0,
        launch_s=0.0,
        per_layer_s=0.0,
        step_s=0.0,
        per_sequence_s=0.0,
        front_end_s=0.0,
        all_reduce_alpha_s=0.0,
        bus_bytes_per_s=None,
        interference=0.0,
        prefill_floor_per_layer_s=0.0,
        assumptions=_distinct(notes),
    )


def device_efficiency(hardware: HardwareProfile, format_: str) -> float:
    """e_c of linear layers in a format: the device's own fit (bf16 and fp16 are one class), else the default."""
    fits = hardware.compute_efficiency
    twin = {"bf16": "fp16", "fp16": "bf16"}.get(format_, format_)
    own = fits.get(format_, fits.get(twin))
    return own if own is not None else DEFAULTS[f"compute_efficiency.{format_}"].value


def _device_read_efficiency(hardware: HardwareProfile, formats: Formats) -> float | None:
    """The device's own e_b for weights of this format, else the one of its 16-bit fit."""
    own = hardware.bandwidth_efficiency_by_dtype.get(formats.weight.arithmetic or formats.weight.key)
    return own if own is not None else hardware.bandwidth_efficiency


def _launch_s(hardware: HardwareProfile, engine: EngineProfile, format_: str, quantised: bool) -> float:
    """t0 per GEMM. A device's fit for a narrow format holds the activation quantisation already; elsewhere it is added."""
    fitted = hardware.launch_s_by_dtype.get(format_)
    if engine.launch_s is None and fitted is not None:
        return fitted
    extra = _first(engine.quantised_launch_s, None, default("quantised_launch_s")) if quantised else 0.0
    return _first(engine.launch_s, hardware.launch_s, default("launch_s")) + extra


def _first(engine: float | None, device: float | None, fallback: float) -> float:
    return engine if engine is not None else device if device is not None else fallback


def _distinct(sentences: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences))
