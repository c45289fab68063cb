"""An inference engine's profile: what it adds to, or keeps of, a device's rates, each figure with its source and label.

It stands beside the hardware profile and neither borrows from the other in silence: a figure that is None here is taken from
the device where it has one, else from the defaults of `roofline.DEFAULTS`, and the prediction says that no profile was given.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.domain.hardware import Provenance

BitClass = Literal["16bit", "8bit", "4bit", "any"]


def bit_class(bytes_per_weight: float) -> BitClass:
    """The weight-bit class of an efficiency: 4bit up to 6.6 bits with scales, 8bit up to 9, else 16bit."""
    bits = 8 * bytes_per_weight
    return "4bit" if bits <= 6.6 else "8bit" if bits <= 9 else "16bit"


@dataclass(frozen=True)
class EngineProfile:
    """What one engine does to a pass and a request. SI units; None means "as the device or the defaults say".

    The three efficiency mappings go by weight-bit class (16bit, 8bit, 4bit, or any for all that are not listed): the share of the
    bandwidth kept while reading weights, the same for the KV cache (one figure), and a factor on the device's e_c.
    `launch_s` is t0 per GEMM, `quantised_launch_s` what quantising its activations adds; `per_layer_s` replaces the default fixed
    time of a layer (small kernels and attention launch). `prefill_floor_per_layer_s`: a pass with prompt tokens takes at least this
    per layer. `interference` scales the prefill interference of continuous batching. Ranges are factors (low, high) on the
    predicted ITL and TTFT, the 90 % band of its class.
    """

    slug: str
    name: str
    version_notes: str = ""
    weight_bandwidth_efficiency: Mapping[str, float] = field(default_factory=dict)
    kv_bandwidth_efficiency: float | None = None
    compute_efficiency: Mapping[str, float] = field(default_factory=dict)
    launch_s: float | None = None
    quantised_launch_s: float | None = None
    per_layer_s: float | None = None
    step_s: float | None = None
    per_sequence_s: float | None = None
    front_end_s: float | None = None
    all_reduce_alpha_s: float | None = None
    interference: float | None = None
    prefill_floor_per_layer_s: float = 0.0
    cuda_graphs: bool = True
    itl_range: tuple[float, float] | None = None
    ttft_range: tuple[float, float] | None = None
    aliases: tuple[str, ...] = ()
    notes: str = ""
    provenance: Mapping[str, Provenance] = field(default_factory=dict)

    def weight_efficiency(self, bytes_per_weight: float) -> float | None:
        """e_b while reading weights of this size, None where the profile has no figure for the class."""
        return _of_class(self.weight_bandwidth_efficiency, bytes_per_weight)

    def compute_factor(self, bytes_per_weight: float) -> float | None:
        """The factor on e_c for weights of this size, None where the profile has no figure for the class."""
        return _of_class(self.compute_efficiency, bytes_per_weight)


def _of_class(figures: Mapping[str, float], bytes_per_weight: float) -> float | None:
    return figures.get(bit_class(bytes_per_weight), figures.get("any"))
