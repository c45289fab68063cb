"""What a device did while a run lasted: clocks, power, heat, throttling and utilisation, sampled beside the measurement.

A channel that the machine does not report is absent, never 0. Times are seconds; those of a document are of the machine's monotonic
clock, those of a run count from its start.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Floats = np.typing.NDArray[np.float64]


@dataclass(frozen=True)
class Channel:
    """One quantity that is sampled: its key with the SI unit, a title, the unit it is shown in and what one of those is in SI."""

    key: str
    title: str
    unit: str
    scale: float = 1.0


_ROWS = (
    Channel("sm_clock_hz", "Core clock", "MHz", 1e6),
    Channel("memory_clock_hz", "Memory clock", "MHz", 1e6),
    Channel("cpu_clock_hz", "Processor clock", "MHz", 1e6),
    Channel("power_w", "Power", "W"),
    Channel("power_limit_w", "Power limit", "W"),
    Channel("temperature_c", "Temperature", "°C"),
    Channel("busy", "Busy, as the driver reports it", "%", 0.01),
    Channel("memory_busy", "Memory busy, as the driver reports it", "%", 0.01),
    Channel("throttle_reasons", "Throttle reasons", "bits"),
    Channel("memory_used_bytes", "Memory used", "GB", 1e9),
    Channel("other_processes", "Other processes on the device", ""),
    Channel("cpu_busy_cores", "Processor cores busy", "cores"),
    Channel("cpu_steal_cores", "Processor cores taken by other machines", "cores"),
    Channel("energy_j", "Energy", "J"),
)
CHANNELS: Mapping[str, Channel] = {channel.key: channel for channel in _ROWS}

# Bits of NVML's clocks event reasons that slow a device down (nvml.h, nvmlClocksEventReason*); being idle or a set clock does not.
THROTTLES: Mapping[int, str] = {
    0x4: "power limit",
    0x8: "hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}


@dataclass(frozen=True, eq=False)
class Telemetry:
    """Samples of one stretch: `t_s` and each channel have one length, NaN where a sample is missing."""

    t_s: Floats
    channels: Mapping[str, Floats]

    def between(self, start_s: float, end_s: float) -> "Telemetry | None":
        """The samples from `start_s` to `end_s` with times counted from `start_s`; None when there are none."""
        inside = (self.t_s >= start_s) & (self.t_s <= end_s)
        if not inside.any():
            return None
        kept = {key: values[inside] for key, values in self.channels.items()}
        return Telemetry(self.t_s[inside] - start_s, {key: values for key, values in kept.items() if np.isfinite(values).any()})

    def thinned(self, most: int) -> "Telemetry":
        """At most `most` of the samples, evenly, the first and the last among them."""
        if self.t_s.size <= most:
            return self
        at = np.unique(np.linspace(0, self.t_s.size - 1, most).round().astype(int))
        return Telemetry(self.t_s[at], {key: values[at] for key, values in self.channels.items()})

    def known(self, key: str) -> Floats:
        """The samples of a channel that are there; empty when it is not reported."""
        values = self.channels.get(key, np.empty(0))
        return values[np.isfinite(values)]

    def mean(self, key: str) -> float | None:
        """Mean of a channel over its samples, None when it is not reported."""
        values = self.known(key)
        return float(values.mean()) if values.size else None

    @property
    def throttled_share(self) -> float | None:
        """The fraction of samples in which something slowed the device; None when it does not say."""
        reasons = self.known("throttle_reasons").astype(np.int64)
        return float(((reasons & sum(THROTTLES)) != 0).mean()) if reasons.size else None

    @property
    def throttle_words(self) -> tuple[str, ...]:
        """What slowed the device, in words."""
        seen = int(np.bitwise_or.reduce(self.known("throttle_reasons").astype(np.int64), initial=0))
        return tuple(word for bit, word in THROTTLES.items() if seen & bit)

    @property
    def energy_j(self) -> float | None:
        """Joules over the stretch: the difference of the device's counter, else power over time; None when it reports neither."""
        counted = self.known("energy_j")
        if counted.size > 1 and counted[-1] > counted[0]:
            return float(counted[-1] - counted[0])
        power = self.channels.get("power_w")
        if power is None or self.t_s.size < 2:
            return None
        there = np.isfinite(power)
        return float(np.trapezoid(power[there], self.t_s[there])) or None if int(there.sum()) > 1 else None
