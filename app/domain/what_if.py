"""What would change it: a request priced again with a faster memory, faster arithmetic, smaller weights, a larger batch or more devices.

Each lever is a power of two. A lever that halves one phase often leaves the other where it was, since the two wait for different
things; `unmoved` says which of the pass's times a phase waits for instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from app.domain.dtypes import number_format
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.prediction import PassCost, Request
from app.domain.quantity import seconds

Lever = Literal["bandwidth", "flops", "weight_bytes", "batch", "tp"]

# Formats that change the bytes of a weight and not what it is computed in (but for fp32, which has no narrower units to use).
WEIGHT_LADDER = ("fp32", "bf16", "int8", "int4")
# A phase whose time changes by less is told as not moved.
MOVED = 0.01


@dataclass(frozen=True)
class Range:
    """The powers of two that a lever takes, and the step between them."""

    low: float
    high: float
    step: float


RANGES: Mapping[Lever, Range] = {
    "bandwidth": Range(-2, 2, 0.25),
    "flops": Range(-2, 2, 0.25),
    "weight_bytes": Range(-2, 1, 1),
    "batch": Range(0, 8, 1),
    "tp": Range(0, 4, 1),
}


@dataclass(frozen=True)
class Change:
    """Powers of two by which each lever is moved; 0 leaves it. `weight_bytes`, `batch` and `tp` take whole ones."""

    bandwidth: float = 0.0
    flops: float = 0.0
    weight_bytes: float = 0.0
    batch: float = 0.0
    tp: float = 0.0

    def __post_init__(self) -> None:
        for item in fields(self):
            lever: Lever = item.name  # type: ignore[assignment]
            allowed, value = RANGES[lever], getattr(self, item.name)
            if not allowed.low <= value <= allowed.high or (value / allowed.step) % 1:
                steps = f"from {allowed.low:g} to {allowed.high:g} in steps of {allowed.step:g}"
                raise InvalidRequest(f"{lever}_log2", f"{lever}_log2 is {value:g}: give a power of two {steps}.")

    @property
    def moved(self) -> tuple[Lever, ...]:
        """The levers that are not at rest."""
        return tuple(lever for lever in RANGES if getattr(self, lever))


def scaled(hardware: HardwareProfile, bandwidth: float = 1.0, flops: float = 1.0) -> HardwareProfile:
    """The device with every memory rate times `bandwidth` and every arithmetic rate times `flops`, specified and achieved alike."""
    read = hardware.achieved_bandwidth_bytes_per_s
    return replace(
        hardware,
        bandwidth_bytes_per_s=hardware.bandwidth_bytes_per_s * bandwidth,
        achieved_bandwidth_bytes_per_s=None if read is None else read * bandwidth,
        peak_flops_per_s={key: value * flops for key, value in hardware.peak_flops_per_s.items()},
        achieved_flops_per_s={key: value * flops for key, value in hardware.achieved_flops_per_s.items()},
    )


def smaller_weights(weight_dtype: str, power: float) -> str:
    """The format whose weights are 2^power times as large, on WEIGHT_LADDER. Raises InvalidRequest where the ladder has no such step."""
    if not power:
        return weight_dtype
    width = number_format(weight_dtype).payload_bytes * 2.0**power
    by_width = {number_format(key).payload_bytes: key for key in WEIGHT_LADDER}
    if width not in by_width:
        known = ", ".join(f"{size:g} ({key})" for size, key in by_width.items())
        raise InvalidRequest("weight_bytes_log2", f"No format has {width:g} bytes per weight; there are {known}.")
    return by_width[width]


def changed(hardware: HardwareProfile, request: Request, change: Change) -> tuple[HardwareProfile, Request]:
    """The device and the request after the change; a served load gets more clients where another gets a larger batch."""
    crowd = int(2**change.batch)
    asked = replace(
        request,
        weight_dtype=smaller_weights(request.weight_dtype, change.weight_bytes),
        batch=request.batch if request.concurrency is not None else request.batch * crowd,
        concurrency=None if request.concurrency is None else request.concurrency * crowd,
        tp=request.tp * int(2**change.tp),
    )
    return scaled(hardware, 2.0**change.bandwidth, 2.0**change.flops), asked


def unmoved(before: PassCost, after_s: float, before_s: float, waiting_s: float = 0.0) -> str | None:
    """Why a phase stays where it was, None when it moved by MOVED or more: what it waits for, with the figures.

    `waiting_s` is the part of the phase's time before its pass: the queue of a first token.
    """
    if abs(after_s / before_s - 1.0) >= MOVED:
        return None
    times = {
        "its arithmetic": before.compute_s,
        "its reads": before.memory_s,
        "links between devices": before.comm_s,
        "launches and scheduling": before.overhead_s,
        "requests ahead of it": waiting_s,
    }
    (longest, most), *others = sorted(times.items(), key=lambda item: -item[1])
    rest = ", ".join(f"{name} {seconds(value)}" for name, value in others if value > 0)
    return f"it waits for {longest}, {seconds(most)}" + (f" ({rest})" if rest else "")
