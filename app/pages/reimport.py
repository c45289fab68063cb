"""Reading stored files again: what would change, the button that does it, and the list of what is due."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.errors import Conflict, ImportRefused
from app.formats import current_versions
from app.pages.reading_view import shown
from app.pages.rendering import page_context, render
from app.services import rereading, runs
from app.services.context import Context
from app.services.problems import problem_of
from app.services.rereading import OUTCOMES, FileReading

router = APIRouter()

RunId = Annotated[int, Path(ge=1, le=2**63 - 1)]
AT_ONCE = 50
_SHOWN_RUNS = 100


@dataclass(frozen=True)
class Attempt:
    """What became of one file of several that were read again."""

    file: str
    run_id: int
    words: str
    refused: bool


@router.get("/runs/outdated")
def outdated_page(request: Request) -> Response:
    """Files that an older importer read."""
    return _outdated(request, page_context(request), [])


@router.post("/runs/outdated")
def post_outdated(request: Request) -> Response:
    """Read the first files of the list again, each on its own: one that is refused does not stop the others."""
    context = page_context(request)
    attempts = [_attempt(context, file.run_id, file.name) for file in rereading.outdated(context, limit=AT_ONCE)]
    return _outdated(request, context, attempts)


def _attempt(context: Context, run_id: int, name: str) -> Attempt:
    try:
        reading = rereading.reread(context, run_id, datetime.now(UTC))
    except (ImportRefused, Conflict) as error:
        return Attempt(name, run_id, str(error), refused=True)
    return Attempt(name, run_id, _summary(reading), refused=False)


def _outdated(request: Request, context: Context, attempts: list[Attempt]) -> Response:
    files = rereading.outdated(context, limit=_SHOWN_RUNS)
    values = {
        "files": files,
        "total": rereading.count_outdated(context),
        "versions": current_versions(),
        "attempts": attempts,
        "at_once": AT_ONCE,
    }
    return render(request, "pages/outdated.html", values)


@router.get("/runs/{run_id}/reimport")
def reimport_page(request: Request, run_id: RunId) -> Response:
    """What reading the file of this run again would change."""
    return _preview(request, page_context(request), run_id, "")


@router.post("/runs/{run_id}/reimport")
async def post_reimport(request: Request, run_id: RunId) -> Response:
    """Read it again, and go back to the run (to the list when it was removed)."""
    context = page_context(request)
    async with request.form() as form:
        remove = form.get("remove_gone") == "true"
    try:
        reading = await run_in_threadpool(rereading.reread, context, run_id, datetime.now(UTC), remove_gone=remove)
    except (ImportRefused, Conflict) as error:
        return await run_in_threadpool(_preview, request, context, run_id, str(error), problem_of(error).status)
    removed = remove and any(each.run_id == run_id for each in reading.of("gone"))
    root = request.scope.get("root_path", "")
    return RedirectResponse(f"{root}/runs" if removed else f"{root}/runs/{run_id}", status_code=303)


def _preview(request: Request, context: Context, run_id: int, problem: str, status: int = 200) -> Response:
    reading = rereading.preview(context, run_id)
    values = {
        "run": runs.view(context, run_id),
        "reading": reading,
        "summary": _summary(reading),
        "changed": [(each, [shown(change) for change in each.changes]) for each in reading.of("changed")[:_SHOWN_RUNS]],
        "added": reading.of("added"),
        "gone": reading.of("gone"),
        "problem": problem,
    }
    return render(request, "pages/reimport.html", values, status=status)


def _summary(reading: FileReading) -> str:
    """What a reading does, in one line."""
    if reading.refused is not None:
        return "The importer of now refuses this file"
    changed, added, gone, same = (len(reading.of(outcome)) for outcome in OUTCOMES)
    if not changed + added + gone:
        return "Nothing changes in this run" if same == 1 else f"Nothing changes in these {same:,} runs"
    counted = (
        (changed, "run changes", "runs change"),
        (added, "is new", "are new"),
        (gone, "is no longer in the file", "are no longer in the file"),
        (same, "stays the same", "stay the same"),
    )
    return ", ".join(f"{amount:,} {one if amount == 1 else many}" for amount, one, many in counted if amount)
