"""What AIPerf's telemetry says of the devices: their name, and the clocks of those that served."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.run import MetricValue
from app.domain.text import clean_text
from app.formats.device_clocks import DeviceStatistics, clock_metrics
from app.formats.record import Record

_CLOCKS = {"sm_clock_hz": "sm_clock_frequency", "memory_clock_hz": "memory_clock_frequency"}


@dataclass(frozen=True)
class Device:
    """One device as an exporter describes it: its name, None where there is none, and its statistics."""

    name: str | None
    statistics: DeviceStatistics


def devices_of(record: Record) -> list[Device]:
    """The devices of `telemetry_data`, each once, though several exporters of one host describe it."""
    found: dict[str, Device] = {}
    for endpoint in _objects(record.child("telemetry_data").raw("endpoints")):
        for values in _objects(endpoint.get("gpus")):
            device = _device(Record(values))
            found.setdefault(Record(values).text("gpu_uuid") or f"without a name, number {len(found)}", device)
    return list(found.values())


def gpu_name(devices: Sequence[Device]) -> str | None:
    """The device that the telemetry names, where it names one kind. How many of them served is not in the file."""
    names = {device.name for device in devices if device.name is not None}
    return names.pop() or None if len(names) == 1 else None


def device_clocks(devices: Sequence[Device]) -> dict[str, MetricValue]:
    """Clocks in Hz of those that served."""
    return clock_metrics([device.statistics for device in devices])


def _device(gpu: Record) -> Device:
    metrics = gpu.child("metrics")
    clocks = {key: metrics.child(name) for key, name in _CLOCKS.items() if isinstance(metrics.raw(name), dict)}
    name = gpu.raw("gpu_name")
    busy = metrics.child("gpu_utilization").number("avg")
    return Device(clean_text(name) if isinstance(name, str) else None, DeviceStatistics(busy, clocks))


def _objects(value: object) -> list[Mapping[str, object]]:
    return [each for each in value.values() if isinstance(each, dict)] if isinstance(value, dict) else []
