"""/runs and /runs/{id}: the list, and everything about one run."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.domain.checks import READING_AIDS
from app.domain.errors import InvalidRequest
from app.domain.text import clean_text
from app.formats import current_versions
from app.pages.black_box_view import black_box_view
from app.pages.measured_view import measured_values
from app.pages.reading_view import past_readings
from app.pages.rendering import page_context, render
from app.pages.run_view import run_page_values
from app.services import baselines, black_box, rereading, runs
from app.services.measured import keep_rates
from app.services.noise import series_of_run
from app.services.series_query import series_query
from app.store import run_list
from app.store.records import RunFilters

router = APIRouter()

RunId = Annotated[int, Path(ge=1, le=2**63 - 1)]
_PAGE = 50
_FILTER_KEYS = ("q", "model", "hardware", "engine", "format", "tag", "project")
COLUMNS = (
    ("label", "Run", ""),
    ("prompt_tokens_mean", "Tokens", "n"),
    ("concurrency", "Clients", "n"),
    ("ttft_p50_s", "TTFT p50", "n prefill"),
    ("itl_mean_s", "ITL mean", "n decode"),
    ("prefill_share", "One request", ""),
    ("mbu", "Of decode floor", "n decode"),
    ("mfu", "Of prefill peak", "n prefill"),
    ("output_tokens_per_s", "Output, tokens/s aggregate", "n"),
    ("requests_completed", "n", "n"),
    ("happened_at", "When", "n"),
)


@router.get("/runs")
def run_list_page(request: Request) -> Response:
    """Filter, sort, search, tick to compare."""
    context = page_context(request)
    query = {key: value for key, value in request.query_params.items() if value}
    sort = query.get("sort", run_list.DEFAULT_SORT)
    filters, problem = _filters(query)
    try:
        with context.database.read() as session:
            page = run_list.page(session, filters, sort=sort, cursor=query.get("cursor"), limit=_PAGE)
            total = run_list.count(session, filters)
            facets = run_list.facets(session)
    except InvalidRequest as error:
        problem, sort, filters = str(error), run_list.DEFAULT_SORT, RunFilters()
        with context.database.read() as session:
            page, total, facets = run_list.page(session, filters), run_list.count(session, filters), run_list.facets(session)
    values = {
        "page": page,
        "reading_aids": READING_AIDS,
        "standings": baselines.standings(context, page.items),
        "total": total,
        "facets": facets,
        "filters": {key: query.get(key, "") for key in _FILTER_KEYS} | {"since": filters.since.date().isoformat() if filters.since else ""},
        "columns": [(key, title, kind, sort_link(query, sort, key), direction(sort, key)) for key, title, kind in COLUMNS],
        "sort": sort,
        "problem": problem,
        "next_link": _link({**query, "cursor": page.next}) if page.next else None,
        "chips": [
            (key, value, _link({k: v for k, v in query.items() if k not in (key, "cursor")})) for key, value in query.items() if _chip(key)
        ],
        "api_link": f"/api/v1/runs?{urlencode({key: value for key, value in query.items() if _chip(key) or key == 'sort'})}",
    }
    return render(request, "pages/runs.html", values, block="results", status=422 if problem else 200)


def _filters(query: Mapping[str, str]) -> tuple[RunFilters, str]:
    problem = ""
    moments: dict[str, datetime | None] = {}
    for key in ("since", "until"):
        try:
            moments[key] = datetime.fromisoformat(query[key]).replace(tzinfo=UTC) if query.get(key) else None
        except ValueError:
            moments[key], problem = None, f"“{clean_text(query[key], 40)}” is no date: write 2026-11-28."
    texts: dict[str, Any] = {key: query.get(key) for key in _FILTER_KEYS}
    versions = current_versions() if query.get("outdated") == "true" else None
    return RunFilters(**texts, since=moments["since"], until=moments["until"], read_before=versions), problem


def _chip(key: str) -> bool:
    return key in (*_FILTER_KEYS, "since", "until", "outdated")


def _link(query: Mapping[str, str | None]) -> str:
    kept = {key: value for key, value in query.items() if value}
    return f"/runs?{urlencode(kept)}" if kept else "/runs"


def sort_link(query: Mapping[str, str], sort: str, key: str) -> str:
    """The address that sorts by `key`: descending first for figures, the other way when it is sorted so already."""
    following = key if sort == f"-{key}" or (key == "label" and sort != key) else f"-{key}"
    return _link({**{name: value for name, value in query.items() if name != "cursor"}, "sort": following})


def direction(sort: str, key: str) -> str:
    """`ascending`, `descending` or nothing, for aria-sort."""
    return {key: "ascending", f"-{key}": "descending"}.get(sort, "")


@router.get("/runs/{run_id}")
def run_page(request: Request, run_id: RunId) -> Response:
    """Sentence, flags, workload, decomposition, roofline, distributions, prediction beside measurement, file, notes."""
    context = page_context(request)
    view = runs.view(context, run_id)
    samples = runs.samples(context, run_id) if view.stored.has_samples else None
    readings = past_readings(rereading.history(context, run_id))
    with context.database.read() as session:
        standing = baselines.standing(session, view.stored)
    # The series as its trends are addressed: anchored at its baseline where it has one.
    series = (standing.baseline.series if standing.baseline else None) or series_of_run(view.stored)
    values = {
        **run_page_values(view, samples),
        **measured_values(context, view),
        "readings": readings,
        "standing": standing,
        "black_box": black_box_view(black_box.for_page(context, view)),
        "trend_link": f"/trends/series?{urlencode(series_query(series))}" if series else None,
    }
    return render(request, "pages/run.html", values)


@router.post("/runs/{run_id}/device")
async def post_device(request: Request, run_id: RunId) -> Response:
    """Put the rates of a microbenchmark into a profile, and go to it."""
    async with request.form() as form:
        values = {key: value for key in ("update", "clone_of", "name") if isinstance(value := form.get(key), str)}
    kept = await run_in_threadpool(keep_rates, page_context(request), run_id, values)
    return RedirectResponse(f"{request.scope.get('root_path', '')}/hardware/{kept.profile.slug}", status_code=303)
