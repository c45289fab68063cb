"""The rates one question is priced at: a device, an engine and number formats resolved to FLOP/s, bytes/s and fixed times.

Order for each figure: the engine profile's, else the device's own fit, else the default constant. A device without the units a
format wants computes on the next physically right ones, and the rates carry a sentence that says so.
"""

from dataclasses import dataclass, replace

from app.domain.architecture import ModelArchitecture
from app.domain.constants import DEFAULTS, default
from app.domain.dtypes import FORMATS, NumberFormat, arithmetic, number_format
from app.domain.engine import EngineProfile, of_format
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Request
from app.domain.work import ElementBytes, Quantity

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
    """The number formats of a request, resolved. `experts` None: as all weights; `comm` None: the activations'."""

    weight: NumberFormat
    activation: NumberFormat
    kv: NumberFormat
    experts: NumberFormat | None = None
    comm: NumberFormat | None = None

    @classmethod
    def of(cls, request: Request, architecture: ModelArchitecture | None = None) -> "Formats":
        """The formats a request names. Raises InvalidRequest for an unknown one.

        Checkpoints of a mixture in 4-bit float, and of models whose experts alone are quantised, keep all other weights at 16 bit.
        """
        weight = number_format(request.weight_dtype, "weight_dtype")
        experts = None if request.moe_dtype is None else number_format(request.moe_dtype, "moe_dtype")
        if experts is None and architecture is not None and experts_alone(architecture, weight):
            weight, experts = FORMATS["bf16"], weight
        return cls(
            weight,
            number_format(request.activation_dtype, "activation_dtype"),
            number_format(request.kv_dtype, "kv_dtype"),
            experts,
            None if request.comm_dtype is None else number_format(request.comm_dtype, "comm_dtype"),
        )

    @property
    def expert(self) -> NumberFormat:
        """The format of the experts' weights."""
        return self.weight if self.experts is None else self.experts

    def element_bytes(self) -> ElementBytes:
        """Bytes per element with scales, as the operator model counts them."""
        messages = self.activation.bytes if self.comm is None else self.comm.bytes
        tables = FORMATS["bf16"].bytes if self.weight.tables_at_16_bit else None
        return ElementBytes(self.weight.bytes, self.activation.bytes, self.kv.bytes, self.expert.bytes, messages, tables=tables)


def experts_alone(architecture: ModelArchitecture, weight: NumberFormat) -> bool:
    """Whether checkpoints of this model in this weight format quantise the experts alone."""
    return architecture.expert_layers > 0 and (
        weight.key in ("nvfp4", "mxfp4") or (architecture.experts_alone_quantised and weight.bytes < 1)
    )


@dataclass(frozen=True)
class Product:
    """One kind of matrix product resolved: its units, e_c as a fraction, e_b and t0."""

    units: Units
    efficiency: float
    read_efficiency: float
    launch_s: float

    @classmethod
    def of(
        cls, hardware: HardwareProfile, weight: NumberFormat, activation: NumberFormat, engine: EngineProfile, experts: bool = False
    ) -> "Product":
        """The product of these formats on a device, as an engine does it; of experts on request."""
        units, quantised = gemm_units(hardware, weight, activation)
        factors = engine.expert_compute_efficiency if experts else engine.compute_efficiency
        factor = of_format(factors, weight)
        shares = engine.expert_bandwidth_efficiency if experts else engine.weight_bandwidth_efficiency
        kind = product_class(weight, units.format, quantised)
        read = _first(of_format(shares, weight), _device_read_efficiency(hardware, weight), default("weight_bandwidth_efficiency"))
        # An engine's factor was fitted on the general e_c: devices' own fits, made with other kernels, carried over worse.
        own = device_efficiency(hardware, units.format, kind, experts)
        efficiency = own if factor is None else factor * general_efficiency(kind, experts)
        return cls(units, min(1.0, efficiency), min(1.0, read), _launch_s(hardware, engine, units.format, quantised))


@dataclass(frozen=True)
class Rates:
    """Everything `roofline.price` needs beside the work. Efficiencies are fractions of the specified rate, at most 1.

    Figures may also be arrays that broadcast against the work's, so that a fit prices thousands of settings at once.
    `gemm_efficiency` is e_c of linear layers, `expert_efficiency` of expert products (on `experts`, gemm's units where None);
    `weight_efficiency` e_b, `expert_weight_efficiency` e_bx, `kv_efficiency` e_kv. The meaning of each time and of the last five
    figures is that of the field of the same name of `EngineProfile`; `scalar_flops_per_s` is the rate of the plain ALUs, None: unknown.
    `bus_bytes_per_s` and `network_bytes_per_s` are usable rates of one device's link inside a node and beyond it. `wide` are products
    that stay at 16 bit beside narrower weights (routers, tables of most quantised checkpoints); None: all are priced as `gemm`.
    """

    gemm: Units
    attention: Units
    bandwidth_bytes_per_s: Quantity
    gemm_efficiency: Quantity
    weight_efficiency: Quantity
    kv_efficiency: Quantity
    launch_s: Quantity
    per_layer_s: Quantity
    step_s: Quantity
    per_sequence_s: Quantity
    front_end_s: Quantity
    all_reduce_alpha_s: Quantity
    bus_bytes_per_s: float | None
    interference: Quantity
    prefill_floor_per_layer_s: Quantity
    assumptions: tuple[str, ...]
    devices_per_node: int | None = None
    network_bytes_per_s: float | None = None
    experts: Units | None = None
    expert_efficiency: Quantity = 1.0
    expert_weight_efficiency: Quantity = 1.0
    expert_launch_s: Quantity = 0.0
    per_expert_layer_s: Quantity = 0.0
    recurrent_layer_s: Quantity = 0.0
    serial_front_end_s: Quantity = 0.0
    admission_steps: Quantity = 0.0
    admission_running_power: Quantity = 0.0
    admission_devices_power: Quantity = 0.0
    prefill_floor_per_expert_layer_s: Quantity = 0.0
    sequence_layer_s: Quantity = 0.0
    send_s: Quantity = 0.0
    scalar_flops_per_s: float | None = None
    alu_operations_per_weight: Quantity = 0.0
    expert_traffic: Quantity = 0.0
    attention_limit: Quantity = 1.0
    fill_tokens: Quantity = 0.0
    micro_batch_tokens: Quantity = float("inf")
    wide: Product | None = None

    @property
    def expert_units(self) -> Units:
        """The units that expert products run on."""
        return self.gemm if self.experts is None else self.experts

    @property
    def achieved_flops_per_s(self) -> Quantity:
        """What linear layers reach: e_c x peak."""
        return self.gemm_efficiency * self.gemm.peak_flops_per_s

    @property
    def achieved_bytes_per_s(self) -> Quantity:
        """What weight reads reach: e_b x bandwidth."""
        return self.weight_efficiency * self.bandwidth_bytes_per_s

    @property
    def ridge_peak(self) -> Quantity:
        """FLOP per byte at which a pass turns from memory- to compute-bound, at specified rates."""
        return self.gemm.peak_flops_per_s / self.bandwidth_bytes_per_s

    @property
    def ridge_achieved(self) -> Quantity:
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


def gemm_units(hardware: HardwareProfile, weight: NumberFormat, activation: NumberFormat) -> tuple[Units, bool]:
    """The units a product of these weights and activations runs on, and whether activations are quantised for it."""
    product = arithmetic(weight, activation)
    if not product.quantises_activations:
        return float_units(hardware, product.wanted), False
    peak = hardware.peak(product.wanted)
    if peak is not None:
        return Units(product.wanted, peak), True
    units = float_units(hardware, product.fallback)
    word = _FORMAT_WORDS[product.wanted]
    note = f"{hardware.name} specifies no {word} rate; {weight.key} weights are unpacked and computed at its {units.format} rate."
    return replace(units, assumptions=(note, *units.assumptions)), False


def resolve(hardware: HardwareProfile, formats: Formats, engine: EngineProfile | None) -> Rates:
    """The rates of the operator model (`default` mode)."""
    profile = engine if engine is not None else EngineProfile("", "")
    linear = Product.of(hardware, formats.weight, formats.activation, profile)
    experts = Product.of(hardware, formats.expert, formats.activation, profile, experts=True)
    product = arithmetic(formats.weight, formats.activation)
    attention = float_units(hardware, product.fallback if product.quantises_activations else product.wanted)
    alpha = default("all_reduce_alpha_graphs_s" if profile.cuda_graphs else "all_reduce_alpha_eager_s")
    link = hardware.link_bytes_per_s
    found = Rates(
        gemm=linear.units,
        attention=attention,
        bandwidth_bytes_per_s=hardware.bandwidth_bytes_per_s,
        gemm_efficiency=linear.efficiency,
        weight_efficiency=linear.read_efficiency,
        kv_efficiency=min(1.0, _first(profile.kv_bandwidth_efficiency, None, default("kv_bandwidth_efficiency"))),
        launch_s=linear.launch_s,
        per_layer_s=_first(profile.per_layer_s, None, default("small_kernels_per_layer_s") + default("attention_per_layer_s")),
        step_s=_first(profile.step_s, None, default("step_s")),
        per_sequence_s=_first(profile.per_sequence_s, None, default("per_sequence_s")),
        sequence_layer_s=_first(profile.sequence_layer_s, None, default("sequence_layer_s")),
        front_end_s=_first(profile.front_end_s, None, default("front_end_s")),
        all_reduce_alpha_s=_first(profile.all_reduce_alpha_s, None, alpha),
        bus_bytes_per_s=None if link is None else default("bus_share_of_link") * link,
        interference=_first(profile.interference, None, default("interference")),
        prefill_floor_per_layer_s=profile.prefill_floor_per_layer_s,
        prefill_floor_per_expert_layer_s=profile.prefill_floor_per_expert_layer_s,
        assumptions=_distinct((*linear.units.assumptions, *experts.units.assumptions, *attention.assumptions)),
        devices_per_node=hardware.devices_per_node,
        network_bytes_per_s=None if hardware.network_bytes_per_s is None else default("bus_share_of_link") * hardware.network_bytes_per_s,
        experts=experts.units,
        expert_efficiency=experts.efficiency,
        expert_weight_efficiency=experts.read_efficiency,
        expert_launch_s=experts.launch_s,
        per_expert_layer_s=_first(profile.per_expert_layer_s, None, default("per_expert_layer_s")),
        recurrent_layer_s=_first(profile.recurrent_layer_s, None, default("recurrent_layer_s")),
        serial_front_end_s=_first(profile.serial_front_end_s, None, default("serial_front_end_s")),
        admission_steps=_first(profile.admission_steps, None, default("admission_steps")),
        admission_running_power=_first(profile.admission_running_power, None, default("admission_running_power")),
        admission_devices_power=_first(profile.admission_devices_power, None, default("admission_devices_power")),
        send_s=_first(profile.send_s, profile.all_reduce_alpha_s, alpha),
        scalar_flops_per_s=hardware.peak("fp32"),
        alu_operations_per_weight=_first(
            of_format(profile.alu_operations_per_weight, formats.weight), None, default("alu_operations_per_weight")
        ),
        expert_traffic=_first(profile.expert_traffic, None, default("expert_traffic")),
        attention_limit=min(1.0, _first(profile.attention_limit, None, default("attention_efficiency.limit"))),
        fill_tokens=_first(profile.fill_tokens, None, 0.0),
        micro_batch_tokens=_first(profile.micro_batch_tokens, None, float("inf")),
        wide=None if formats.weight.bytes >= 2 else Product.of(hardware, FORMATS["bf16"], formats.activation, profile),
    )
    scaled: Rates = found if profile.scalars.plain else profile.scalars.applied(found)
    return scaled


def resolve_textbook(hardware: HardwareProfile, formats: Formats) -> Rates:
    """The rates of `textbook` mode: the profile's in-model rates, else 0.425 x peak and the whole bandwidth; no fixed times at all."""
    gemm, _ = gemm_units(hardware, formats.weight, formats.activation)
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


def product_class(weight: NumberFormat, units: str, quantised: bool) -> str:
    """The class that e_c of a product goes by: fp8 with a scale per block and weights that are unpacked first fill units worse."""
    if quantised:
        return "fp8_block" if weight.key == "fp8_block" else units
    return "weight_only" if weight.bytes < 2 else units


def general_efficiency(kind: str, experts: bool = False) -> float:
    """e_c of products of class `kind` where nothing is known of the device."""
    return default(f"{'expert_' if experts else ''}compute_efficiency.{kind}")


def device_efficiency(hardware: HardwareProfile, units: str, kind: str | None = None, experts: bool = False) -> float:
    """e_c of products of class `kind` on these units: the device's own fit (bf16 and fp16 are one class), else the default.

    A fit is of plain linear layers; for another class, or for experts, it is scaled as the defaults of the two stand to each other.
    """
    kind = units if kind is None else kind
    fits = hardware.compute_efficiency
    twin = {"bf16": "fp16", "fp16": "bf16"}.get(units, units)
    own = fits.get(units, fits.get(twin))
    wanted = DEFAULTS[f"{'expert_' if experts else ''}compute_efficiency.{kind}"].value
    plain = DEFAULTS[f"compute_efficiency.{units}"].value
    return wanted if own is None else own * (wanted / plain)


def _device_read_efficiency(hardware: HardwareProfile, weight: NumberFormat) -> float | None:
    """The device's own e_b for weights of this format, else the one of its 16-bit fit."""
    own = hardware.bandwidth_efficiency_by_dtype.get(weight.arithmetic or weight.key)
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
