"""Editing and deleting a run: ordinary forms, so that both work without scripts."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.dtypes import FORMATS
from app.domain.errors import InvalidRequest
from app.pages.rendering import page_context, render
from app.services import runs
from app.services.context import Context
from app.services.profiles import read_book

router = APIRouter()

RunId = Annotated[int, Path(ge=1, le=2**63 - 1)]
_FIELDS = ("label", "model", "hardware", "engine", "devices", "tp", "weight_dtype", "kv_dtype", "tags", "notes")


@router.get("/runs/{run_id}/edit")
def edit_page(request: Request, run_id: RunId) -> Response:
    """What a person may correct."""
    context = page_context(request)
    return _form(request, context, run_id, _stored(context, run_id), {})


@router.post("/runs/{run_id}/edit")
async def post_edit(request: Request, run_id: RunId) -> Response:
    """Store the corrections; everything that follows from them is derived anew."""
    context = page_context(request)
    async with request.form() as form:
        values = {key: value for key in _FIELDS if isinstance(value := form.get(key), str)}
    try:
        await run_in_threadpool(runs.correct, context, run_id, values, datetime.now(UTC))
    except InvalidRequest as error:
        return await run_in_threadpool(_form, request, context, run_id, values, {error.field: str(error)})
    return RedirectResponse(f"{request.scope.get('root_path', '')}/runs/{run_id}", status_code=303)


@router.post("/runs/{run_id}/delete")
def post_delete(request: Request, run_id: RunId) -> Response:
    """Delete the run and go back to the list."""
    runs.delete(page_context(request), run_id)
    return RedirectResponse(f"{request.scope.get('root_path', '')}/runs", status_code=303)


def _stored(context: Context, run_id: int) -> dict[str, str]:
    stored = runs.view(context, run_id).stored
    run = stored.run
    values = {key: getattr(run, key) for key in ("label", "engine", "devices", "tp", "weight_dtype", "kv_dtype")}
    values |= {"model": run.model or stored.model_slug, "hardware": run.hardware or stored.hardware_slug}
    values |= {"tags": ", ".join(stored.tags), "notes": stored.notes}
    return {key: "" if value is None else str(value) for key, value in values.items()}


def _form(request: Request, context: Context, run_id: int, values: dict[str, str], errors: dict[str, str]) -> Response:
    book = read_book(context)
    view = runs.view(context, run_id)
    shown = {
        "run": view,
        "values": {key: values.get(key, "") for key in _FIELDS},
        "errors": errors,
        "models": [(entry.slug, entry.name) for _, entry in book.all_models()],
        "devices": [(item.slug, item.name) for _, item in book.all_hardware()],
        "weight_dtypes": [key for key, item in FORMATS.items() if item.weights],
        "kv_dtypes": [key for key, item in FORMATS.items() if item.kv],
    }
    return render(request, "pages/run_edit.html", shown, status=422 if errors else 200)
