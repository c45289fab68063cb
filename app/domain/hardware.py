"""A device: what its specification promises and what has been measured on it, each figure with its source and label."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# The words a figure may carry. The first three are those of a specification, the rest those of a rate that is no specification.
LABELS = ("verified-2-sources", "one-source", "unverified", "measured", "fitted", "literature", "assumed", "user")


@dataclass(frozen=True)
class Provenance:
    """Where a figure comes from: one of LABELS, and the document or run behind it."""

    label: str
    source: str


@dataclass(frozen=True)
class HardwareProfile:
    """One accelerator (or CPU socket) in SI units; rates are dense, per device.

    `peak_flops_per_s` maps a number format (fp32, tf32, bf16, fp16, fp8, fp4, int8) to its specified rate; an absent one is unknown.
    `achieved_flops_per_s` and `achieved_bandwidth_bytes_per_s` are in-model rates, where one is known.
    `compute_efficiency` (by format), `bandwidth_efficiency` and `launch_s` are e_c, e_b and t0 of the performance model; None: its default.
    The last two are bf16's; the maps `…_by_dtype` hold them by format of the weights where a fit has them.
    `driver_memory_bytes` is what the driver says the device has, where that is known: a vendor's round number is often less (a B200 of
    "180 GB" has 192.3·10⁹ bytes). `link_bytes_per_s` joins `devices_per_node` devices (None: all that a request names),
    `network_bytes_per_s` is one device's share of the network beyond; both one direction.
    """

    slug: str
    name: str
    vendor: str
    bandwidth_bytes_per_s: float
    peak_flops_per_s: Mapping[str, float]
    memory_bytes: float | None = None
    driver_memory_bytes: float | None = None
    achieved_flops_per_s: Mapping[str, float] = field(default_factory=dict)
    achieved_bandwidth_bytes_per_s: float | None = None
    compute_efficiency: Mapping[str, float] = field(default_factory=dict)
    bandwidth_efficiency: float | None = None
    launch_s: float | None = None
    bandwidth_efficiency_by_dtype: Mapping[str, float] = field(default_factory=dict)
    launch_s_by_dtype: Mapping[str, float] = field(default_factory=dict)
    link_name: str | None = None
    link_bytes_per_s: float | None = None
    devices_per_node: int | None = None
    network_bytes_per_s: float | None = None
    tdp_w: float | None = None
    released_year: int | None = None
    aliases: tuple[str, ...] = ()
    notes: str = ""
    provenance: Mapping[str, Provenance] = field(default_factory=dict)

    @property
    def capacity_bytes(self) -> float | None:
        """Bytes that fit on the device: the driver's figure, else the specification's; None where neither is known."""
        return self.memory_bytes if self.driver_memory_bytes is None else self.driver_memory_bytes

    def peak(self, dtype: str) -> float | None:
        """Specified dense rate in FLOP/s for arithmetic in `dtype`, None where the specification has none."""
        return self.peak_flops_per_s.get(dtype)
