"""What a device did while a run lasted, beside the run: one row of thinned series, read only when they are drawn."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlmodel import Session, col

from app.domain.telemetry import CHANNELS, Floats, Telemetry
from app.store.tables import RunTelemetryRow
from app.store.types import is_id


def to_telemetry_row(telemetry: Telemetry | None) -> Mapping[str, Any] | None:
    """The row without its run's number; None when there is no telemetry. NaN is kept as null."""
    if telemetry is None:
        return None
    return {"series": {"t_s": _plain(telemetry.t_s), "channels": {key: _plain(values) for key, values in telemetry.channels.items()}}}


def load(session: Session, run_id: int) -> Telemetry | None:
    """The telemetry of a run, None when it has none."""
    if not is_id(run_id):
        return None
    series = session.execute(select(col(RunTelemetryRow.series)).where(col(RunTelemetryRow.run_id) == run_id)).scalar_one_or_none()
    if series is None:
        return None
    return Telemetry(_floats(series["t_s"]), {key: _floats(values) for key, values in series["channels"].items() if key in CHANNELS})


def _plain(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def _floats(values: list[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
