"""/runs/new: bring result files, by dropping, choosing or pasting; and the sample runs."""

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.dtypes import FORMATS
from app.domain.errors import InvalidRequest, PhaselineError
from app.formats import IMPORTERS
from app.pages.identity_view import file_offers
from app.pages.rendering import page_context, render, wants_fragment
from app.services import runs
from app.services.context import Context
from app.services.importing import ImportOutcome
from app.services.problems import problem_of
from app.services.profiles import read_book
from app.services.runs import RunView
from app.services.sample_runs import load_samples
from app.services.storing import store_files
from app.services.uploading import read_upload

router = APIRouter()

PASTED = "pasted"


@router.get("/runs/new")
def new_runs_page(request: Request) -> Response:
    """The form."""
    return _form(request, page_context(request), {})


@router.post("/runs/new")
async def post_new_runs(request: Request) -> Response:
    """Store what was brought; straight to the run when it was one, else the outcome of each file."""
    context = page_context(request)
    typed: dict[str, Any] = {}
    try:
        files, fields = await read_upload(request, context.settings.max_upload_bytes)
        typed = {**fields, "pasted": next((data.decode() for name, data in files if name == PASTED), "")}
        outcome = await run_in_threadpool(store_files, context, files, fields, datetime.now(UTC))
    except PhaselineError as error:
        wrong = {error.field: str(error)} if isinstance(error, InvalidRequest) else {}
        values = {"problem": str(error), "typed": typed, "errors": wrong}
        return await run_in_threadpool(_form, request, context, values, problem_of(error).status)
    if len(outcome.run_ids) == 1 and not outcome.refused and not wants_fragment(request):
        return _to(request, f"/runs/{outcome.run_ids[0]}")
    return await run_in_threadpool(_outcome, request, context, outcome, typed)


@router.post("/runs/samples")
def post_samples(request: Request) -> Response:
    """Load the sample runs and open the comparison they are for."""
    context = page_context(request)
    loaded = load_samples(context, datetime.now(UTC))
    return _to(request, f"/compare?base={loaded.base}&other={loaded.other}")


def _to(request: Request, path: str) -> Response:
    return RedirectResponse(request.scope.get("root_path", "") + path, status_code=303)


def _outcome(request: Request, context: Context, outcome: ImportOutcome, typed: dict[str, Any]) -> Response:
    """What became of each file. What was typed stays in its fields as long as nothing was stored with it."""
    views = runs.views(context, outcome.run_ids) if outcome.run_ids else []
    status = 200 if views else 413 if any(item.too_large for item in outcome.refused) else 422
    offered = [file_offers(group) for group in _by_file(views)]
    values = {"outcome": outcome, "views": views, "offered": [each for each in offered if each.rows], "typed": {} if views else typed}
    return _form(request, context, values, status)


def _by_file(views: list[RunView]) -> list[list[RunView]]:
    files: dict[int, list[RunView]] = {}
    for view in views:
        files.setdefault(view.stored.upload.id, []).append(view)
    return list(files.values())


def _form(request: Request, context: Context, values: dict[str, Any], status: int = 200) -> Response:
    book = read_book(context)
    shown = {
        "problem": "",
        "outcome": None,
        "views": [],
        "offered": [],
        "typed": {},
        "errors": {},
        "formats": [importer.title for importer in IMPORTERS],
        "models": [(entry.slug, entry.name) for _, entry in book.all_models()],
        "devices": [(item.slug, item.name) for _, item in book.all_hardware()],
        "weight_dtypes": [key for key, item in FORMATS.items() if item.weights],
        "kv_dtypes": [key for key, item in FORMATS.items() if item.kv],
        "limit_mib": context.settings.max_upload_bytes / 2**20,
        "base_url": str(request.base_url).rstrip("/"),
        **values,
    }
    return render(request, "pages/run_new.html", shown, block="outcome", status=status)
