"""Editing and deleting a run: ordinary forms, so that both work without scripts."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.dtypes import FORMATS
from app.domain.errors import InvalidRequest
from app.domain.identity import COUNTS, IDENTITY, LABEL, SAID, words_of
from app.domain.suggestion import Suggestion
from app.pages.identity_view import TITLES, offered_name
from app.pages.rendering import page_context, render
from app.services import runs
from app.services.context import Context
from app.services.profiles import read_book

router = APIRouter()

RunId = Annotated[int, Path(ge=1, le=2**63 - 1)]
_FIELDS = (*SAID, "tags", "notes")
_NUMERIC = frozenset(COUNTS)
_LISTS = {"model": "known-models", "hardware": "known-devices", "weight_dtype": "known-dtypes", "kv_dtype": "known-kv"}


@dataclass(frozen=True)
class Field:
    """One field of the form: what the file says about it, and what may be suggested."""

    key: str
    title: str
    list: str
    numeric: bool
    hint: str
    suggestion: Suggestion | None


@router.get("/runs/{run_id}/edit")
def edit_page(request: Request, run_id: RunId) -> Response:
    """What a person may correct."""
    context = page_context(request)
    return _form(request, context, run_id, _stored(context, run_id), {})


@router.post("/runs/{run_id}/edit")
async def post_edit(request: Request, run_id: RunId) -> Response:
    """Store the corrections; everything that follows from them is derived anew.

    `use` is a suggestion that is accepted (`hardware=h100-sxm5-80gb`); with `scope=file` for all runs of the file that have it.
    """
    context = page_context(request)
    async with request.form() as form:
        values = {key: value for key in _FIELDS if isinstance(value := form.get(key), str)}
        key, _, word = str(form.get("use", "")).partition("=")
        whole_file = form.get("scope") == "file"
    if key in IDENTITY and word:
        values[key] = word
    try:
        await run_in_threadpool(_store, context, run_id, values, whole_file)
    except InvalidRequest as error:
        return await run_in_threadpool(_form, request, context, run_id, values, {error.field: str(error)})
    return RedirectResponse(f"{request.scope.get('root_path', '')}/runs/{run_id}", status_code=303)


@router.post("/runs/{run_id}/delete")
def post_delete(request: Request, run_id: RunId) -> Response:
    """Delete the run and go back to the list."""
    runs.delete(page_context(request), run_id)
    return RedirectResponse(f"{request.scope.get('root_path', '')}/runs", status_code=303)


def _store(context: Context, run_id: int, values: dict[str, str], whole_file: bool) -> None:
    # What stands in the form as it was shown is nothing that a person says.
    shown = _stored(context, run_id)
    said = {key: value for key, value in values.items() if value != shown[key]}
    if whole_file:
        runs.accept_for_file(context, run_id, said, datetime.now(UTC))
    else:
        runs.correct(context, run_id, said, datetime.now(UTC))


def _stored(context: Context, run_id: int) -> dict[str, str]:
    """What the fields show: a person's words. Where it was not noted what the file says, the words that count."""
    stored = runs.view(context, run_id).stored
    words = stored.said_by_person if stored.said_by_file is not None else words_of(stored.run)
    values = {**{key: words.get(key, "") for key in SAID}, "tags": ", ".join(stored.tags), "notes": stored.notes}
    return {key: str(value) for key, value in values.items()}


def _form(request: Request, context: Context, run_id: int, values: dict[str, str], errors: dict[str, str]) -> Response:
    book = read_book(context)
    view = runs.view(context, run_id)
    by_file = view.stored.said_by_file
    shown = {
        "run": view,
        "values": {key: values.get(key, "") for key in _FIELDS},
        "fields": [
            Field(
                key,
                TITLES[key],
                _LISTS.get(key, ""),
                key in _NUMERIC,
                "" if by_file is None else f"The file says: {by_file[key]}" if key in by_file else "The file does not say.",
                next((each for each in view.suggestions if each.key == key), None),
            )
            for key in (LABEL, *IDENTITY)
        ],
        "offered_name": offered_name,
        "errors": errors,
        "models": [(entry.slug, entry.name) for _, entry in book.all_models()],
        "devices": [(item.slug, item.name) for _, item in book.all_hardware()],
        "weight_dtypes": [key for key, item in FORMATS.items() if item.weights],
        "kv_dtypes": [key for key, item in FORMATS.items() if item.kv],
    }
    return render(request, "pages/run_edit.html", shown, status=422 if errors else 200)
