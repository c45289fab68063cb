"""Calibrations over HTTP: scalars fitted to stored runs of one device, engine and weight format."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from app.api.answers import StrictJSON, changes, problems
from app.api.bodies import CalibrationBody
from app.api.calibration_shapes import CalibrationList, CalibrationShape
from app.api.dependencies import ContextDep, Number
from app.services import calibrating

router = APIRouter(prefix="/calibrations", tags=["calibrations"])


@router.get("", summary="Every calibration", response_model=CalibrationList, responses=problems(422))
def get_calibrations(context: ContextDep, hardware: Annotated[str | None, Query(max_length=200)] = None) -> Response:
    """Newest first; `hardware` (a slug) narrows. All of them on one page."""
    return StrictJSON({"items": [calibrating.calibration_json(item) for item in calibrating.every(context, hardware)], "next": None})


@router.post("", summary="Fit one from stored runs", status_code=201, response_model=CalibrationShape, responses=changes(422))
def post_calibration(context: ContextDep, body: CalibrationBody) -> Response:
    """Of the runs on `hardware` with `engine` at `weight_dtype`; 422 with the reason, and what to measure next, where they are too few."""
    found = calibrating.calibrate(context, body.hardware, body.engine, body.weight_dtype, datetime.now(UTC))
    return StrictJSON(calibrating.calibration_json(found), status_code=201)


@router.get("/{number}", summary="One calibration", response_model=CalibrationShape, responses=problems(404, 422))
def get_calibration(context: ContextDep, number: Number) -> Response:
    """Its factors, errors by phase, and the runs it came from."""
    return StrictJSON(calibrating.calibration_json(calibrating.one(context, number)))


@router.delete("/{number}", summary="Delete a calibration", status_code=204, responses=changes(404, 422))
def delete_calibration(context: ContextDep, number: Number) -> Response:
    """Predictions that ask for it are refused from then on; its number is not used again."""
    calibrating.forget(context, number)
    return Response(status_code=204)
