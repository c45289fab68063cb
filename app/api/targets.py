"""Registered targets over HTTP: the servers that endpoint jobs may call."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import Response

from app.api.answers import StrictJSON, changes
from app.api.dependencies import ContextDep
from app.api.job_bodies import TargetBody
from app.api.job_shapes import TargetList, TargetShape
from app.services import targets
from app.store.targets import NewTarget

router = APIRouter(prefix="/targets", tags=["targets"])

TargetNumber = Annotated[int, Path(ge=1, le=2**63 - 1, description="Number of a target")]


@router.get("", summary="Every target", response_model=TargetList)
def get_targets(context: ContextDep) -> Response:
    """By name. All on one page."""
    return StrictJSON({"items": [targets.target_json(item) for item in targets.every(context)], "next": None})


@router.post("", summary="Register a server", status_code=201, response_model=TargetShape, responses=changes(409, 422))
def post_target(context: ContextDep, body: TargetBody) -> Response:
    """Jobs name it and carry no address. Its key stays on the worker, under the name `key_ref`."""
    values = body.model_dump()
    made = targets.register(context, NewTarget(**{**values, "networks": tuple(values["networks"])}))
    return StrictJSON(targets.target_json(made), status_code=201)


@router.delete("/{target_id}", summary="Delete a target", status_code=204, responses=changes(404, 422))
def delete_target(context: ContextDep, target_id: TargetNumber) -> Response:
    """Jobs that name it and wait end as refused."""
    targets.forget(context, target_id)
    return Response(status_code=204)
