"""/models: every model, one model, and adding one by pasting its config.json."""

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.errors import InvalidRequest, PhaselineError
from app.pages.model_view import group_views, kinds
from app.pages.rendering import page_context, render
from app.services import profiles

router = APIRouter(prefix="/models")

_LONGEST_CONFIG = 1_000_000


@router.get("")
def model_list(request: Request) -> Response:
    """Every model, users' own first; `q` narrows by words."""
    book = profiles.read_book(page_context(request))
    words = request.query_params.get("q", "").lower().split()
    found = [(origin, entry) for origin, entry in book.all_models() if all(w in f"{entry.name} {entry.slug}".lower() for w in words)]
    values = {"models": found, "total": len(book.all_models()), "q": request.query_params.get("q", ""), "kinds": kinds}
    return render(request, "pages/model_list.html", values, block="results")


@router.get("/new")
def new_model(request: Request) -> Response:
    """A form: a name and a config.json, or a copy of another model."""
    clone_of = request.query_params.get("clone_of", "")
    values = {}
    if clone_of:
        base = profiles.find_model(profiles.read_book(page_context(request)), clone_of)
        values = {"name": f"{base.name.rsplit('/', 1)[-1]} copy"}
    return _form(request, values, {}, clone_of=clone_of)


@router.post("/new")
async def post_new_model(request: Request) -> Response:
    """Store a model."""
    values = await _fields(request)
    try:
        entry = await run_in_threadpool(profiles.create_model, page_context(request), _draft(values))
    except PhaselineError as error:
        return _form(request, values, {_field(error): str(error)}, clone_of=values.get("clone_of", ""))
    return _to(request, f"/models/{entry.slug}")


@router.get("/{slug}")
def model_page(request: Request, slug: str) -> Response:
    """One model: its shapes and what follows from them."""
    book = profiles.read_book(page_context(request))
    entry = profiles.find_model(book, slug)
    values = {"model": entry, "origin": book.model_origin(slug), "groups": group_views(entry.architecture)}
    return render(request, "pages/model.html", values)


@router.get("/{slug}/edit")
def edit_model(request: Request, slug: str) -> Response:
    """The form of a model of one's own; an empty config keeps its shapes."""
    entry = profiles.find_model(profiles.read_book(page_context(request)), slug)
    return _form(request, {"name": entry.name, "aliases": ", ".join(entry.aliases)}, {}, slug=slug)


@router.post("/{slug}/edit")
async def post_edit_model(request: Request, slug: str) -> Response:
    """Store the changes."""
    values = await _fields(request)
    try:
        await run_in_threadpool(profiles.update_model, page_context(request), slug, _draft(values))
    except PhaselineError as error:
        return _form(request, values, {_field(error): str(error)}, slug=slug)
    return _to(request, f"/models/{slug}")


@router.post("/{slug}/delete")
def post_delete_model(request: Request, slug: str) -> Response:
    """Delete a model of one's own."""
    profiles.delete_model(page_context(request), slug)
    return _to(request, "/models")


def _to(request: Request, path: str) -> Response:
    return RedirectResponse(request.scope.get("root_path", "") + path, status_code=303)


async def _fields(request: Request) -> dict[str, str]:
    async with request.form(max_part_size=_LONGEST_CONFIG) as form:
        return {key: value.strip() for key, value in form.items() if isinstance(value, str)}


def _field(error: PhaselineError) -> str:
    return "name" if isinstance(error, InvalidRequest) and error.field == "name" else "config"


def _draft(values: Mapping[str, str]) -> dict[str, Any]:
    draft: dict[str, Any] = {"name": values.get("name", ""), "clone_of": values.get("clone_of", "")}
    if "aliases" in values:
        draft["aliases"] = [part for part in values["aliases"].split(",") if part.strip()]
    if values.get("config"):
        draft["config"] = parse_config(values["config"])
    return draft


def parse_config(text: str) -> dict[str, Any]:
    """The object in a pasted config.json. Raises InvalidRequest saying where it breaks."""
    try:
        config = json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidRequest("config", f"This is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from error
    except (RecursionError, ValueError) as error:
        raise InvalidRequest("config", "This JSON is nested too deep or has a number too long to be a config.json.") from error
    if not isinstance(config, dict):
        raise InvalidRequest("config", "A config.json is one object, in braces.")
    return config


def _form(request: Request, values: Mapping[str, str], errors: Mapping[str, str], slug: str = "", clone_of: str = "") -> Response:
    shown = {"values": values, "errors": errors, "slug": slug, "clone_of": clone_of}
    return render(request, "pages/model_edit.html", shown, status=422 if errors else 200)
