"""Models over HTTP: POST takes a Hugging Face config.json as `config`."""

from fastapi import APIRouter
from fastapi.responses import Response

from app.api.answers import StrictJSON, changes, problems
from app.api.bodies import ModelBody
from app.api.dependencies import ContextDep, Slug
from app.api.shapes import ModelList, ModelShape
from app.services import profiles
from app.services.profile_json import model_json

router = APIRouter(prefix="/models", tags=["models"])


@router.get("", summary="Every model", response_model=ModelList)
def get_model_list(context: ContextDep) -> Response:
    """Users' own first; all of them on one page."""
    items = [model_json(entry, origin) for origin, entry in profiles.read_book(context).all_models()]
    return StrictJSON({"items": items, "next": None})


@router.post("", summary="Add or clone a model", status_code=201, response_model=ModelShape, responses=changes(409, 422))
def post_model(context: ContextDep, body: ModelBody) -> Response:
    """An architecture that is not priced yet is refused naming the field."""
    return StrictJSON(model_json(profiles.create_model(context, body.model_dump(exclude_unset=True)), "user"), status_code=201)


@router.get("/{slug}", summary="One model", response_model=ModelShape, responses=problems(404, 422))
def get_model(context: ContextDep, slug: Slug) -> Response:
    """Its shapes and what follows from them."""
    book = profiles.read_book(context)
    return StrictJSON(model_json(profiles.find_model(book, slug), book.model_origin(slug)))


@router.patch("/{slug}", summary="Change a model of one's own", response_model=ModelShape, responses=changes(404, 409, 422))
def patch_model(context: ContextDep, slug: Slug, body: ModelBody) -> Response:
    """Only the keys given change."""
    return StrictJSON(model_json(profiles.update_model(context, slug, body.model_dump(exclude_unset=True)), "user"))


@router.delete("/{slug}", summary="Delete a model of one's own", status_code=204, responses=changes(404, 409, 422))
def delete_model(context: ContextDep, slug: Slug) -> Response:
    """Runs that name it keep their words."""
    profiles.delete_model(context, slug)
    return Response(status_code=204)
