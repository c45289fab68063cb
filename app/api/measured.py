"""What our own measurements have beside a run: telemetry, and the rates of a device."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response

from app.api.answers import StrictJSON, changes, problems
from app.api.dependencies import ContextDep, Id
from app.api.measured_shapes import DeviceRatesShape, KeptRatesShape, RatesBody, TelemetryShape
from app.api.shapes import FigureShape
from app.services import measured
from app.services.profile_json import hardware_json

router = APIRouter(prefix="/runs", tags=["runs"])


@router.get(
    "/{run_id}/telemetry",
    summary="What the device did meanwhile",
    response_model=TelemetryShape | FigureShape,
    responses=problems(404, 422),
)
def get_telemetry(context: ContextDep, run_id: Id, figure: Annotated[Literal["plotly"] | None, Query()] = None) -> Response:
    """Clocks, power, temperature, throttling and utilisation over the run; `figure=plotly` gives the chart."""
    return StrictJSON(measured.telemetry_figure(context, run_id) if figure else measured.telemetry_json(context, run_id))


@router.get("/{run_id}/device", summary="Rates of a measured device", response_model=DeviceRatesShape, responses=problems(404, 422))
def get_device(context: ContextDep, run_id: Id) -> Response:
    """Products by shape, moves by kind, launches, and the ceilings that follow."""
    return StrictJSON(measured.rates_json(context, run_id))


@router.post("/{run_id}/device", summary="Put the rates into a profile", response_model=KeptRatesShape, responses=changes(404, 409, 422))
def post_device(context: ContextDep, run_id: Id, body: RatesBody) -> Response:
    """`update` changes a profile of one's own, `clone_of` a copy under `name`; without either a profile is made of the measurements."""
    kept = measured.keep_rates(context, run_id, body.model_dump(exclude_unset=True))
    answer = {"hardware": hardware_json(kept.profile, "user"), "left_out": list(kept.left_out)}
    return StrictJSON(answer, status_code=201 if kept.is_new else 200)
