"""Reading stored files again over HTTP: what is due, what would change, and doing it."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from app.api.answers import StrictJSON, changes, problems
from app.api.dependencies import ContextDep, Id, Limit
from app.api.shapes import FileReadingShape, OutdatedFiles
from app.services import rereading
from app.services.context import Context
from app.services.rereading import FileReading

router = APIRouter(tags=["reimport"])


@router.get("/reimports", summary="Files that an older importer read", response_model=OutdatedFiles, responses=problems(422))
def get_reimports(context: ContextDep, cursor: Annotated[int | None, Query(ge=0, le=2**63 - 1)] = None, limit: Limit = 100) -> Response:
    """Each with the first of its runs, through which it is read again."""
    found = rereading.outdated(context, cursor or 0, limit + 1)
    items = [rereading.outdated_json(file) for file in found[:limit]]
    return StrictJSON({"items": items, "next": str(found[limit - 1].upload_id) if len(found) > limit else None})


@router.get(
    "/runs/{run_id}/reimport",
    summary="What reading its file again would change",
    response_model=FileReadingShape,
    responses=problems(404, 422),
)
def get_reimport(context: ContextDep, run_id: Id) -> Response:
    """A preview for all runs of the file, statistic by statistic; nothing is stored. `history` is that of this run."""
    return _answer(context, run_id, rereading.preview(context, run_id))


@router.post("/runs/{run_id}/reimport", summary="Read its file again", response_model=FileReadingShape, responses=changes(404, 409, 422))
def post_reimport(
    context: ContextDep,
    run_id: Id,
    remove_gone: Annotated[bool, Query(description="Delete runs that the file no longer gives, instead of marking them")] = False,
) -> Response:
    """All runs of the file or none. Numbers, notes, tags and what a person said stay."""
    reading = rereading.reread(context, run_id, datetime.now(UTC), remove_gone=remove_gone)
    return _answer(context, run_id, reading)


def _answer(context: Context, run_id: int, reading: FileReading) -> Response:
    history = rereading.history_json(rereading.history(context, run_id))
    return StrictJSON({**rereading.reading_json(reading), "history": history})
