"""/trends and /trends/series: the series there are, and one of them over time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from app.charts import page_figure
from app.domain.errors import InvalidRequest
from app.domain.quantity import change_percent, in_metric_unit, moment, percent
from app.domain.trends import LevelChange, Trend, TrendPoint
from app.pages.form import whole
from app.pages.rendering import page_context, render
from app.pages.runs import RunId
from app.services import trends
from app.services.baselines import Standing
from app.services.series_query import read_series, series_query
from app.services.series_words import load_words, series_words
from app.services.trend_figures import change_words, chart_of
from app.services.trends import SeriesTrends

router = APIRouter()

_PAGE = 50
_PHASES = {"prefill": "Prefill", "decode": "Decode"}


@dataclass(frozen=True)
class PointRow:
    """One run in the table under a chart: its value, its distance to its level, and what happened."""

    point: TrendPoint
    value: str
    off: str
    level: str
    happened: tuple[str, ...]


@dataclass(frozen=True)
class TrendView:
    """One chart with its finding and its table."""

    title: str
    heading: str
    phase: str
    finding: str
    figure: Mapping[str, Any] | None
    changes: tuple[tuple[str, LevelChange], ...]
    rows: tuple[PointRow, ...]


@router.get("/trends")
def trends_page(request: Request) -> Response:
    """Every series with how its newest run stands."""
    start = whole(request.query_params.get("cursor", "")) or 0
    found = trends.index(page_context(request), request.query_params.get("project") or None, start, _PAGE)
    entries = [(entry, _address(series_query(entry.series)), load_words(entry.series), _against(entry.standing)) for entry in found.entries]
    values = {
        "found": found,
        "entries": entries,
        "regressed": sum(entry.standing.word == "regressed" for entry in found.entries),
        "next_link": f"/trends?{urlencode({'cursor': found.next})}" if found.next else None,
    }
    return render(request, "pages/trends.html", values)


@router.get("/trends/series")
def series_page(request: Request) -> Response:
    """One series: both phases and the whole request under each other, or the one `metric` of the address."""
    query = {key: value for key, value in request.query_params.items() if value}
    found = trends.series_trends(page_context(request), read_series(query), query.get("metric"))
    base = series_query(found.series)
    values = {
        "found": found,
        "title": series_words(found.series),
        "sentence": _sentence(found),
        "views": [_view(found, each) for each in found.trends],
        "metric": query.get("metric", ""),
        "carried": base,
        "whole_link": _address(base),
        "api_link": f"/api/v1{_address({**base, **({'metric': query['metric']} if 'metric' in query else {})})}",
        "change_words": change_words,
    }
    return render(request, "pages/series.html", values)


@router.get("/runs/{run_id}/trend")
def run_trend(request: Request, run_id: RunId) -> Response:
    """The series of a run, as its own address."""
    series = trends.series_of_number(page_context(request), run_id)
    if series is None:
        raise InvalidRequest("run", f"Run {run_id} is in no series: name its model, hardware and engine under Edit.")
    return RedirectResponse(f"{_root(request)}{_address(series_query(series))}", status_code=303)


@router.post("/runs/{run_id}/annotations")
async def post_annotation(request: Request, run_id: RunId) -> Response:
    """Say what happened when this run was measured."""
    async with request.form() as form:
        text = str(form.get("text", ""))
    await run_in_threadpool(trends.annotate, page_context(request), run_id, text, datetime.now(UTC))
    return RedirectResponse(f"{_root(request)}/runs/{run_id}/trend", status_code=303)


@router.post("/runs/{run_id}/annotations/{number}/delete")
def post_delete_annotation(request: Request, run_id: RunId, number: RunId) -> Response:
    """Take an annotation back."""
    trends.take_back(page_context(request), number)
    return RedirectResponse(f"{_root(request)}/runs/{run_id}/trend", status_code=303)


def _against(standing: Standing) -> tuple[str, str]:
    """By how much the figures that speak for both phases differ from the baseline's, empty where that is not known."""
    rows = () if standing.found is None else (standing.found.prefill, standing.found.decode)
    words = ["" if row is None or row.change is None else change_percent(row.change) for row in rows]
    return (words[0], words[1]) if words else ("", "")


def _root(request: Request) -> str:
    return str(request.scope.get("root_path", ""))


def _address(query: Mapping[str, str]) -> str:
    return f"/trends/series?{urlencode(query)}"


def _sentence(found: SeriesTrends) -> str:
    """What moved last, phase by phase; else how the newest run stands."""
    moved = [(each, each.changes[-1]) for each in found.trends if each.changes]
    if not moved:
        return f"{_standing(found.standing)}; no level changed in {len(found.runs):,} run{'' if len(found.runs) == 1 else 's'}"
    each, last = max(moved, key=lambda pair: pair[1].at)
    return f"{_title(each)} {_moved(last)} at run {last.run_id}, {moment(last.at)}"


def _standing(standing: Standing) -> str:
    if standing.baseline is None:
        return "Never compared: no baseline yet"
    if standing.word == "is the baseline":
        return "The newest run is the baseline"
    phase = f" in {standing.phase}" if standing.phase else ""
    return f"The newest run {'has ' if standing.word in ('improved', 'regressed') else 'is '}{standing.word}{phase} against the baseline"


def _moved(change: LevelChange) -> str:
    if change.verdict == "moved":
        return f"moved by {change_percent(change.change)}"
    return f"{'improved' if change.verdict == 'improved' else 'got worse'} by {percent(abs(change.change))}"


def _title(each: Trend) -> str:
    return each.metric.title if each.stat == "value" else f"{each.metric.title} {each.stat}"


def _view(found: SeriesTrends, each: Trend) -> TrendView:
    known = each.known
    finding = f"{_title(each)}: no run has it"
    if known:
        last = each.levels[-1] if each.levels else None
        around = f", level {in_metric_unit(last.centre, each.metric.unit)} ± {percent(last.noise)}" if last else ""
        finding = f"{_title(each)} is {in_metric_unit(known[-1].value, each.metric.unit)} in the newest run that has it{around}"
    return TrendView(
        title=_title(each),
        heading=f"{_PHASES[each.metric.phase]}: {_title(each)}" if each.metric.phase in _PHASES else _title(each),
        phase=_PHASES.get(each.metric.phase, "Whole request"),
        finding=finding,
        figure=page_figure("trend", chart_of(found, each)) if known else None,
        changes=tuple((_moved(change), change) for change in each.changes),
        rows=tuple(_row(found, each, point) for point in reversed(each.points)),
    )


def _row(found: SeriesTrends, each: Trend, point: TrendPoint) -> PointRow:
    level = next((item for item in each.levels if point.run_id in item.runs), None)
    value = point.why if point.value is None else in_metric_unit(point.value, each.metric.unit)
    off = change_percent(point.value / level.centre - 1) if level and point.value else ""
    around = f"{in_metric_unit(level.centre, each.metric.unit)} ± {percent(level.noise)}" if level else ""
    happened = [change_words(change) for change in found.changed if change.run_id == point.run_id]
    happened += [f"level {_moved(change)}" for change in each.changes if change.run_id == point.run_id]
    return PointRow(point, value, off, around, tuple(happened))
