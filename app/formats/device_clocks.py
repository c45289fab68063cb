"""Clocks of the devices that served, from the statistics that a client keeps of a telemetry exporter (DCGM), one object a device.

A host has devices that do nothing; those that served are told by their utilisation. Least and greatest values are left out: the exporter's
first and last samples are of an idle device, and their order is not in the file, so that they say nothing of a clock that fell.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.run import Distribution, MetricValue
from app.formats.record import Record

CLOCKS = ("sm_clock_hz", "memory_clock_hz")
_MEGAHERTZ = frozenset({"mhz", "megahertz"})
_HZ = 1e6
# A device serves when it is at least half as busy as the busiest: ranks of one deployment work alike.
_ALIKE = 0.5
_STATS = {"mean": "avg", "p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "std": "std"}


@dataclass(frozen=True)
class DeviceStatistics:
    """One device: the mean of its utilisation (None: not known) and the statistics of each of its clocks, in MHz."""

    busy: float | None
    clocks: dict[str, Record]


def clock_metrics(devices: Sequence[DeviceStatistics]) -> dict[str, MetricValue]:
    """Core and memory clock in Hz over the devices that served; of several the mean alone. None where it is not known which did."""
    serving = _serving(devices)
    found: dict[str, MetricValue] = {}
    for key in CLOCKS:
        each = [_in_hz(device.clocks.get(key)) for device in serving]
        known = [one for one in each if one is not None]
        if not known or len(known) < len(each):
            continue
        mean = sum(one.mean or 0.0 for one in known) / len(known)
        found[key] = known[0] if len(known) == 1 else Distribution(mean=mean, origin="derived")
    return found


def _serving(devices: Sequence[DeviceStatistics]) -> list[DeviceStatistics]:
    if len(devices) == 1:
        return list(devices)
    known = [device.busy for device in devices if device.busy is not None]
    if len(known) < len(devices) or not known or max(known) <= 0:
        return []
    return [device for device in devices if device.busy is not None and device.busy >= _ALIKE * max(known)]


def _in_hz(clock: Record | None) -> Distribution | None:
    if clock is None or (clock.text("unit") or "").lower() not in _MEGAHERTZ or clock.positive("avg") is None:
        return None
    hertz = {stat: value * _HZ for stat, key in _STATS.items() if (value := clock.number(key)) is not None}
    return Distribution(**hertz)  # type: ignore[arg-type]
