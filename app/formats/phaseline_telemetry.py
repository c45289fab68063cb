"""The telemetry of our own documents: {"clock": "monotonic", "t_s": [...], "channels": {key: [...]}} of the whole measurement."""

import numpy as np

from app.domain.telemetry import CHANNELS, Floats, Telemetry
from app.formats.record import ArrayProblem, Record, floats


def telemetry_of(record: Record) -> Telemetry | None:
    """Times and the channels that are known here and as long as the times; None when there is none. Anything else is left out."""
    times = _column(record, "t_s")
    if times is None or not times.size or not np.isfinite(times).all() or (np.diff(times) < 0).any():
        return None
    channels = record.child("channels")
    found = {key: values for key in CHANNELS if (values := _column(channels, key)) is not None and values.size == times.size}
    return Telemetry(times, found) if found else None


def _column(record: Record, key: str) -> Floats | None:
    values = record.sequence(key)
    if values is None:
        return None
    try:
        return floats(values, record.path(key))
    except ArrayProblem:
        return None
