"""Stored calibrations: what was fitted, for which device, engine and weight format, from which runs."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, select
from sqlmodel import Session, col

from app.domain.calibration import Fit
from app.domain.plain import from_plain, to_plain
from app.store.tables import CalibrationRow
from app.store.types import is_id, storable_json


@dataclass(frozen=True)
class StoredCalibration:
    """A fit with its number. `model_version` is that of the model it was fitted on; a newer model makes it void."""

    id: int
    hardware_slug: str
    engine_slug: str | None
    weight_dtype: str
    model_version: str
    fit: Fit
    created_at: datetime


def add(
    session: Session, hardware_slug: str, engine_slug: str | None, weight_dtype: str, model_version: str, fit: Fit, now: datetime
) -> StoredCalibration:
    """Store a fit; its number is never used again."""
    row = CalibrationRow(
        hardware_slug=hardware_slug,
        engine_slug=engine_slug,
        weight_dtype=weight_dtype,
        model_version=model_version,
        data=storable_json(to_plain(fit)),
        created_at=now,
    )
    session.add(row)
    session.flush()
    return _stored(row)


def every(session: Session) -> list[StoredCalibration]:
    """All of them, newest first."""
    return [_stored(row) for row in session.scalars(select(CalibrationRow).order_by(col(CalibrationRow.id).desc()))]


def remove(session: Session, number: int) -> bool:
    """Delete one; whether there was one."""
    if not is_id(number):
        return False
    # RETURNING, since the count of deleted rows is not typed.
    return session.scalar(delete(CalibrationRow).where(col(CalibrationRow.id) == number).returning(col(CalibrationRow.id))) is not None


def _stored(row: CalibrationRow) -> StoredCalibration:
    if row.id is None:
        raise ValueError("a calibration without a number")
    found = from_plain(Fit, row.data)
    return StoredCalibration(row.id, row.hardware_slug, row.engine_slug, row.weight_dtype, row.model_version, found, row.created_at)
