"""Runs over HTTP: upload, list, read, correct, delete, and everything behind one run."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from app.api.answers import Responses, StrictJSON, changes, csv_answer, problem_answer, problems
from app.api.black_box_shapes import BlackBoxShape
from app.api.bodies import RunPatch, RunQuery
from app.api.comparison_shapes import DiagnosisShape, RunLeversShape
from app.api.dependencies import ContextDep, Id, Limit
from app.api.shapes import (
    DecompositionShape,
    FigureShape,
    ImportAnswer,
    RequestRows,
    RooflineShape,
    RunList,
    StoredRunShape,
)
from app.domain.errors import InvalidRequest
from app.formats import current_versions
from app.services import figures, runs
from app.services.black_box import black_box_json, of_sweep
from app.services.diagnosing import explain_run, explain_runs
from app.services.diagnosis_json import run_diagnosis_json
from app.services.importing import ImportOutcome
from app.services.levers import Order, run_levers, run_levers_json
from app.services.problems import Problem
from app.services.refusals import refusal_json
from app.services.storing import store_files
from app.services.uploading import FIELDS, read_upload
from app.store.records import RunFilters

router = APIRouter(prefix="/runs", tags=["runs"])

_UPLOAD_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "array", "items": {"type": "string", "format": "binary"}},
                        **{name: {"type": "string"} for name in FIELDS},
                    },
                }
            },
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_CSV: Responses = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
_BYTES: Responses = {200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}
_FILTERS = ("project", "model", "hardware", "engine", "format", "tag", "q")
_LIST_COLUMNS = (
    "id", "label", "model", "model_slug", "hardware", "hardware_slug", "engine", "weight_dtype", "concurrency", "prompt_tokens_mean",
    "output_tokens_mean", "requests_completed", "ttft_p50_s", "ttft_mean_s", "itl_mean_s", "tpot_mean_s", "output_tokens_per_s", "mbu",
    "mfu",
)  # fmt: skip
_REQUEST_COLUMNS = ("index", "ok", "prompt_tokens", "output_tokens", "ttft_s", "e2e_s", "start_s", "queue_s", "chunk_gaps", "error")


@router.post(
    "",
    summary="Upload result files",
    status_code=201,
    response_model=ImportAnswer,
    responses={200: {"model": ImportAnswer, "description": "These bytes are here already"}, **changes(413, 422)},
    openapi_extra=_UPLOAD_BODY,
)
async def post_runs(request: Request, context: ContextDep) -> Response:
    """Multipart `file` (repeatable) with form fields, or any other body as one file with `name` and the fields in the query.

    201 with the new runs, 200 when these bytes are here already (fields given with them are then applied), 422 when no file gave a run.
    """
    files, fields = await read_upload(request, context.settings.max_upload_bytes)
    return await run_in_threadpool(_store, context, files, fields)


def _store(context: ContextDep, files: list[tuple[str, bytes]], fields: Mapping[str, Any]) -> Response:
    outcome = store_files(context, files, fields, datetime.now(UTC))
    if not outcome.run_ids:
        return problem_answer(_refusal(outcome))
    stored = [view.summary() for view in runs.views(context, outcome.run_ids)]
    body = {"runs": stored, "refused": _refused(outcome), "warnings": list(outcome.warnings)}
    return StrictJSON(body, status_code=201 if outcome.created else 200)


def _refusal(outcome: ImportOutcome) -> Problem:
    first = outcome.refused[0]
    status = 413 if any(item.too_large for item in outcome.refused) else 422
    return Problem(status, f"{first.file}: {first.reason}", {"refused": _refused(outcome)})


def _refused(outcome: ImportOutcome) -> list[dict[str, Any]]:
    return [refusal_json(item.file, item.reason, item.tried, item.flag) for item in outcome.refused]


@router.get("", summary="Runs, filtered and sorted", response_model=RunList, responses={**_CSV, **problems(422)})
def get_runs(
    context: ContextDep, query: Annotated[RunQuery, Query()], accept: Annotated[str, Header(include_in_schema=False)] = ""
) -> Response:
    """Newest first; `sort` takes a column name, with a leading minus for descending. CSV with `as=csv` or Accept: text/csv."""
    filters = RunFilters(
        **query.model_dump(include=set(_FILTERS)),
        since=_moment("since", query.since),
        until=_moment("until", query.until),
        read_before=current_versions() if query.outdated else None,
    )
    page = runs.page(context, filters, query.sort, query.cursor, query.limit)
    if query.as_ == "csv" or (query.as_ is None and "text/csv" in accept):
        return csv_answer("runs.csv", _LIST_COLUMNS, ([getattr(item, name) for name in _LIST_COLUMNS] for item in page.items))
    return StrictJSON({"items": runs.summaries(context, page.items), "next": page.next})


def _moment(key: str, value: datetime | date | None) -> datetime | None:
    """The moment in UTC; a day means its first one. Raises InvalidRequest for one beyond the calendar."""
    if isinstance(value, datetime):
        try:
            return value.astimezone(UTC)
        except OverflowError as error:
            raise InvalidRequest(key, f"{key} lies outside the years 1 to 9999; give a date such as 2026-05-01.") from error
    if value is None:
        return None
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


@router.get("/{run_id}", summary="One run", response_model=StoredRunShape, responses=problems(404, 422))
def get_run(context: ContextDep, run_id: Id) -> Response:
    """Its summary with number, tags and notes."""
    return StrictJSON(runs.view(context, run_id).summary())


@router.patch("/{run_id}", summary="Correct a run", response_model=StoredRunShape, responses=changes(404, 422))
def patch_run(context: ContextDep, run_id: Id, body: RunPatch) -> Response:
    """Only the keys given change; what follows from them is derived anew."""
    return StrictJSON(runs.correct(context, run_id, body.model_dump(exclude_unset=True), datetime.now(UTC)).summary())


@router.delete("/{run_id}", summary="Delete a run", status_code=204, responses=changes(404, 422))
def delete_run(context: ContextDep, run_id: Id) -> Response:
    """The file goes too when no other run came from it."""
    runs.delete(context, run_id)
    return Response(status_code=204)


@router.get("/{run_id}/requests", summary="Per-request rows", response_model=RequestRows, responses={**_CSV, **problems(404, 422)})
def get_requests(
    context: ContextDep,
    run_id: Id,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    cursor: Annotated[int | None, Query(ge=0, le=2**31)] = None,
    limit: Limit = 100,
) -> Response:
    """Cursor-paged JSON, or CSV of the page with Accept: text/csv. Empty when the file had no per-request samples."""
    page = runs.request_page(context, run_id, cursor or 0, limit)
    rows = [{name: getattr(record, name) for name in _REQUEST_COLUMNS} for record in page.items]
    if "text/csv" in accept:
        return csv_answer(f"run-{run_id}-requests.csv", _REQUEST_COLUMNS, ([row[name] for name in _REQUEST_COLUMNS] for row in rows))
    return StrictJSON({"items": rows, "next": None if page.next is None else str(page.next)})


@router.get(
    "/{run_id}/original",
    summary="The uploaded bytes, unchanged",
    response_class=Response,
    responses={**_BYTES, **problems(404, 422)},
)
def get_original(context: ContextDep, run_id: Id) -> Response:
    """A download that no browser runs, whatever the bytes are."""
    _, data = runs.original(context, run_id)
    headers = {"content-disposition": f'attachment; filename="run-{run_id}-original"', "content-security-policy": "sandbox"}
    return Response(data, media_type="application/octet-stream", headers=headers)


@router.get(
    "/{run_id}/decomposition",
    summary="Where the time of a request goes",
    response_model=DecompositionShape | FigureShape,
    responses=problems(404, 422),
)
def get_decomposition(context: ContextDep, run_id: Id, figure: Annotated[Literal["plotly"] | None, Query()] = None) -> Response:
    """The blocks of one request, measured beside predicted; `figure=plotly` gives the chart."""
    view = runs.view(context, run_id)
    return StrictJSON(figures.decomposition_figure(view) if figure else figures.decomposition_numbers(view))


@router.get("/{run_id}/diagnosis", summary="Is it good, and what bounds it", response_model=DiagnosisShape, responses=problems(404, 422))
def get_diagnosis(
    context: ContextDep, run_id: Id, beside: Annotated[list[Id] | None, Query(alias="with", max_length=63)] = None
) -> Response:
    """Verdicts of both phases by bytes really read and FLOPs done, causes with their evidence, and levers with their predicted size.

    `with` names further runs of the same deployment, at other loads, prompt lengths or degrees of parallelism, or repeats.
    """
    views = runs.views(context, list(dict.fromkeys((run_id, *(beside or ())))))
    return StrictJSON(run_diagnosis_json(explain_run(views[0]) if len(views) == 1 else explain_runs(views)))


@router.get("/{run_id}/levers", summary="What would make it faster", response_model=RunLeversShape, responses=problems(404, 422))
def get_levers(context: ContextDep, run_id: Id, sort: Annotated[Order, Query()] = "total") -> Response:
    """Every lever alone, predicted for the run's own model, device and load: both phases, whole request, rate, device time, memory.

    The largest effect on what `sort` names comes first; bounds, and levers without a size, come last.
    """
    return StrictJSON(run_levers_json(run_levers(runs.view(context, run_id), sort)))


@router.get("/{run_id}/black-box", summary="The server seen from outside", response_model=BlackBoxShape, responses=problems(404, 422))
def get_black_box(
    context: ContextDep, run_id: Id, beside: Annotated[list[Id] | None, Query(alias="with", max_length=63)] = None
) -> Response:
    """Front-end, prefill rate, attention's share and decode step inferred from a sweep's runs with one request in flight, with intervals.

    The runs are those of this run's file, or this one and those that `with` names; `reason` says why nothing follows from them.
    """
    return StrictJSON(black_box_json(of_sweep(context, run_id, beside or ())))


@router.get(
    "/{run_id}/roofline",
    summary="The run against its device's limits",
    response_model=RooflineShape | FigureShape,
    responses=problems(404, 422),
)
def get_roofline(context: ContextDep, run_id: Id, figure: Annotated[Literal["plotly"] | None, Query()] = None) -> Response:
    """Ceilings and points, measured and predicted; `figure=plotly` gives the chart."""
    view = runs.view(context, run_id)
    return StrictJSON(figures.roofline_figure(view) if figure else figures.roofline_numbers(view))
