"""Baselines over HTTP: the run that the others of its series are set against."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from app.api.answers import StrictJSON, changes, problems
from app.api.bodies import BaselineBody, BaselinePatch
from app.api.dependencies import ContextDep, Number
from app.api.shapes import Shape
from app.services import baselines
from app.services.baselines import baseline_json

router = APIRouter(prefix="/baselines", tags=["baselines"])


class BaselineShape(Shape):
    """A named baseline: its run, and the series that it stands for (null when its run no longer says model, hardware or engine)."""

    id: int
    name: str
    notes: str
    run: int
    url: str
    series: dict[str, Any] | None
    created_at: str
    updated_at: str


class BaselineList(Shape):
    """Baselines."""

    items: list[BaselineShape]
    next: str | None


@router.get("", summary="Every baseline", response_model=BaselineList, responses=problems(422))
def get_baselines(context: ContextDep, project: Annotated[str | None, Query(max_length=200)] = None) -> Response:
    """The one set last first; `project` narrows. All of them on one page."""
    return StrictJSON({"items": [baseline_json(item) for item in baselines.every(context, project)], "next": None})


@router.post(
    "", summary="Make a run the baseline of its series", status_code=201, response_model=BaselineShape, responses=changes(404, 409, 422)
)
def post_baseline(context: ContextDep, body: BaselineBody) -> Response:
    """409 when the series has one already: PATCH that one. 422 when the run does not say model, hardware and engine."""
    made = baselines.make(context, body.run, body.name, body.notes, datetime.now(UTC))
    return StrictJSON(baseline_json(made), status_code=201)


@router.get("/{number}", summary="One baseline", response_model=BaselineShape, responses=problems(404, 422))
def get_baseline(context: ContextDep, number: Number) -> Response:
    """Its run, and what its series is about."""
    return StrictJSON(baseline_json(baselines.one(context, number)))


@router.patch("/{number}", summary="Move or rename a baseline", response_model=BaselineShape, responses=changes(404, 409, 422))
def patch_baseline(context: ContextDep, number: Number, body: BaselinePatch) -> Response:
    """Only the keys given change; `run` makes another run the baseline."""
    return StrictJSON(baseline_json(baselines.change(context, number, body.model_dump(exclude_unset=True), datetime.now(UTC))))


@router.delete("/{number}", summary="Delete a baseline", status_code=204, responses=changes(404, 422))
def delete_baseline(context: ContextDep, number: Number) -> Response:
    """Its run stays; the runs of the series are never compared from then on."""
    baselines.forget(context, number)
    return Response(status_code=204)
