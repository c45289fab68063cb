"""Bodies and answers about our own measurements."""

from typing import Any

from app.api.bodies import Body, Words
from app.api.shapes import HardwareShape, Shape


class RatesBody(Body):
    """Where measured rates go: `update` a profile of one's own, `clone_of` a copy called `name`, or a new profile called `name`."""

    update: Words | None = None
    clone_of: Words | None = None
    name: Words | None = None


class TelemetryShape(Shape):
    """Series over a run: seconds from its start, and a value each for every channel that the machine reports; null is a missing sample."""

    t_s: list[float | None]
    channels: dict[str, list[float | None]]
    throttled_share: float | None
    throttle_reasons: list[str]
    energy_j: float | None


class DeviceRatesShape(Shape):
    """What a microbenchmark found of a device."""

    name: str
    kind: str
    threads: int | None
    memory_bytes: float | None
    products: list[dict[str, Any]]
    moves: list[dict[str, Any]]
    launch_s: dict[str, float]
    ceilings: list[dict[str, Any]]


class KeptRatesShape(Shape):
    """The profile that now holds the rates, and a sentence for each figure that it could not take."""

    hardware: HardwareShape
    left_out: list[str]
