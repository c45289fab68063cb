"""An inference engine's profile: what it adds to, or keeps of, a device's rates, each figure with its source and label.

It stands beside the hardware profile and neither borrows from the other in silence: a figure that is None here is taken from
the device where it has one, else from the defaults of `roofline.DEFAULTS`, and the prediction says that no profile was given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.domain.dtypes import NumberFormat
from app.domain.hardware import Provenance
from app.domain.remainder import Remainder
from app.domain.scalars import Scalars
from app.domain.schedule import Schedule

BitClass = Literal["16bit", "8bit", "4bit", "any"]


def bit_class(bytes_per_weight: float) -> BitClass:
    """The weight-bit class of an efficiency: 4bit up to 6.6 bits with scales, 8bit up to 9, else 16bit."""
    bits = 8 * bytes_per_weight
    return "4bit" if bits <= 6.6 else "8bit" if bits <= 9 else "16bit"


@dataclass(frozen=True)
class EngineProfile:
    """What one engine does to a pass and a request. SI units; None means "as the device or the defaults say".

    Mappings go by number format (fp8_block, nvfp4, …: a key of `dtypes.FORMATS`), else by weight-bit class (16bit, 8bit, 4bit), else
    `any`: the share of the bandwidth kept while reading weights (e_b; of experts e_bx), the factor on the device's e_c (e; of experts
    e_x), and the plain-ALU operations for each weight read (κ), which single-stream engines spend on unpacking.
    `kv_bandwidth_efficiency` (e_kv) is that of the KV cache and of recurrent states, `attention_limit` the most that e_c of prompt
    attention reaches. `launch_s` is t0 per GEMM, `quantised_launch_s` what quantising its activations adds; `per_layer_s` (o) replaces
    the default fixed time of a layer (small kernels and attention launch), `per_expert_layer_s` (o_x) and `recurrent_layer_s` come on
    top in layers with experts or a recurrent state. `expert_traffic` (c_tr) is bytes per token, chosen expert and hidden element.
    `sequence_layer_s` is what each running sequence adds to a layer (its share of attention and its bookkeeping on the device);
    `step_s` and `per_sequence_s` (seq) are the scheduler's, `front_end_s` (α) runs in parallel and `serial_front_end_s` (f) one request
    at a time. `all_reduce_alpha_s` (α_ar) is one of the log2(G) rounds of a collective, `send_s` (h) a transfer between pipeline stages.
    `prefill_floor_per_layer_s` (o_pf) and `prefill_floor_per_expert_layer_s` (o_pfx): a pass with prompt tokens takes at least the first
    for each layer and the second for each with experts; such a pass runs in pieces of `micro_batch_tokens` tokens, and `fill_tokens` (n0)
    are lost in each until the units are filled: e·u/(u + n0) for a piece of u tokens. `admission_steps` (n_a): decode steps that a request
    waits on average until the scheduler looks for new ones; half a step where it looks before each. That is at 16 running requests on 4
    devices; `admission_running_power` and `admission_devices_power` are the powers with which it grows (`under_load.looked_for_after`).
    `interference` (mix) scales the prefill interference of continuous batching. Ranges are factors (low, high) on the predicted ITL
    and TTFT, the 90 % band of its class. `schedule` says what a pass may carry and what admission sets aside; `scalars`
    are the factors of the calibration whose number is `calibration`, 1 in a shipped profile, and `remainder` what they leave at its points.
    `variants` are fits to a part of what was measured, narrowest first (`profile_choice.chosen` picks one); `fitted_on` are slugs of the
    devices and `rows` the number of measurements behind the figures; `choice` says in words which variant they are.
    """

    slug: str
    name: str
    version_notes: str = ""
    weight_bandwidth_efficiency: Mapping[str, float] = field(default_factory=dict)
    kv_bandwidth_efficiency: float | None = None
    compute_efficiency: Mapping[str, float] = field(default_factory=dict)
    expert_bandwidth_efficiency: Mapping[str, float] = field(default_factory=dict)
    expert_compute_efficiency: Mapping[str, float] = field(default_factory=dict)
    alu_operations_per_weight: Mapping[str, float] = field(default_factory=dict)
    attention_limit: float | None = None
    expert_traffic: float | None = None
    launch_s: float | None = None
    quantised_launch_s: float | None = None
    per_layer_s: float | None = None
    per_expert_layer_s: float | None = None
    recurrent_layer_s: float | None = None
    step_s: float | None = None
    per_sequence_s: float | None = None
    sequence_layer_s: float | None = None
    front_end_s: float | None = None
    serial_front_end_s: float | None = None
    all_reduce_alpha_s: float | None = None
    send_s: float | None = None
    fill_tokens: float | None = None
    micro_batch_tokens: float | None = None
    interference: float | None = None
    prefill_floor_per_layer_s: float = 0.0
    prefill_floor_per_expert_layer_s: float = 0.0
    admission_steps: float | None = None
    admission_running_power: float | None = None
    admission_devices_power: float | None = None
    cuda_graphs: bool = True
    itl_range: tuple[float, float] | None = None
    ttft_range: tuple[float, float] | None = None
    schedule: Schedule = field(default_factory=Schedule)
    scalars: Scalars = field(default_factory=Scalars)
    remainder: Remainder | None = None
    calibration: str | None = None
    variants: tuple["Variant", ...] = ()
    fitted_on: tuple[str, ...] = ()
    rows: int = 0
    choice: str = ""
    aliases: tuple[str, ...] = ()
    notes: str = ""
    provenance: Mapping[str, Provenance] = field(default_factory=dict)

    def weight_efficiency(self, weight: NumberFormat) -> float | None:
        """e_b while reading weights of this format, None where the profile has no figure for it."""
        return of_format(self.weight_bandwidth_efficiency, weight)

    def compute_factor(self, weight: NumberFormat) -> float | None:
        """The factor on e_c for weights of this format, None where the profile has no figure for it."""
        return of_format(self.compute_efficiency, weight)


@dataclass(frozen=True)
class Variant:
    """A fit of an engine for some questions only. Conditions that are None or empty hold for all; `profile` has figures alone.

    `weights` are number formats or weight-bit classes (of the experts where there are any), `units` the narrowest float arithmetic of
    the device, `device` its kind (`profile_choice`).
    """

    profile: EngineProfile
    experts: bool | None = None
    weights: tuple[str, ...] = ()
    units: str = ""
    device: str = ""


def of_format(figures: Mapping[str, float], form: NumberFormat) -> float | None:
    """The figure for a number format: its own, else that of its weight-bit class, else `any`'s; None where there is none."""
    for key in (form.key, bit_class(form.bytes), "any"):
        if key in figures:
            return figures[key]
    return None
