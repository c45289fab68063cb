"""Devices over HTTP: shipped ones are read-only and can be cloned."""

from fastapi import APIRouter
from fastapi.responses import Response

from app.api.answers import StrictJSON, changes, problems
from app.api.bodies import HardwareBody
from app.api.dependencies import ContextDep, Slug
from app.api.shapes import HardwareList, HardwareShape
from app.services import profiles
from app.services.profile_json import hardware_json

router = APIRouter(prefix="/hardware", tags=["hardware"])


@router.get("", summary="Every device", response_model=HardwareList)
def get_hardware_list(context: ContextDep) -> Response:
    """Users' own first; all of them on one page."""
    items = [hardware_json(profile, origin) for origin, profile in profiles.read_book(context).all_hardware()]
    return StrictJSON({"items": items, "next": None})


@router.post("", summary="Add or clone a device", status_code=201, response_model=HardwareShape, responses=changes(409, 422))
def post_hardware(context: ContextDep, body: HardwareBody) -> Response:
    """Figures in SI units; with `clone_of` they change a copy."""
    profile = profiles.create_hardware(context, body.model_dump(exclude_unset=True))
    return StrictJSON(hardware_json(profile, "user"), status_code=201)


@router.get("/{slug}", summary="One device", response_model=HardwareShape, responses=problems(404, 422))
def get_hardware(context: ContextDep, slug: Slug) -> Response:
    """Its figures, each with label and source."""
    book = profiles.read_book(context)
    return StrictJSON(hardware_json(profiles.find_hardware(book, slug), book.hardware_origin(slug)))


@router.patch("/{slug}", summary="Change a device of one's own", response_model=HardwareShape, responses=changes(404, 409, 422))
def patch_hardware(context: ContextDep, slug: Slug, body: HardwareBody) -> Response:
    """Only the keys given change."""
    return StrictJSON(hardware_json(profiles.update_hardware(context, slug, body.model_dump(exclude_unset=True)), "user"))


@router.delete("/{slug}", summary="Delete a device of one's own", status_code=204, responses=changes(404, 409, 422))
def delete_hardware(context: ContextDep, slug: Slug) -> Response:
    """Runs that name it keep their words."""
    profiles.delete_hardware(context, slug)
    return Response(status_code=204)
