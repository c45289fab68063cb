"""Series over time over HTTP, and what people say happened."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import ConfigDict, Field

from app.api.answers import Responses, StrictJSON, changes, csv_answer, problems
from app.api.bodies import Body, Words
from app.api.dependencies import ContextDep, Limit, Number
from app.api.shapes import FigureShape, Shape
from app.charts import figure
from app.domain.series import Series
from app.services import trends
from app.services.trend_figures import chart_of
from app.services.trend_json import annotation_json, index_json, trends_json
from app.services.trends import SeriesTrends
from app.store.records import DEFAULT_PROJECT

router = APIRouter(tags=["trends"])

_CSV: Responses = {200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
_COLUMNS = ("key", "stat", "run", "name", "at", "value", "n", "why", "level_centre", "level_low", "level_high")


class SeriesQuery(Body):
    """Which series: its words and counts as they are, its lengths and rate within 5 %."""

    project: Words = DEFAULT_PROJECT
    model: Words
    hardware: Words
    engine: Words
    load_mode: Words | None = None
    measured_at: Words | None = None
    concurrency: Annotated[int, Field(ge=1, le=2**31)] | None = None
    context_depth_tokens: Annotated[int, Field(ge=0, le=2**31)] = 0
    request_rate_per_s: Annotated[float, Field(gt=0, le=1e9)] | None = None
    prompt_tokens: Annotated[float, Field(ge=0, le=1e12)] | None = None
    output_tokens: Annotated[float, Field(ge=0, le=1e12)] | None = None
    metric: Annotated[str, Field(max_length=60)] | None = Field(default=None, description="One figure, such as itl.p50; else both phases")
    figure: Literal["plotly"] | None = Field(default=None, description="The chart of the first trend")
    as_: Literal["json", "csv"] = Field(default="json", alias="as")

    def series(self) -> Series:
        """The series that is asked for."""
        return Series(**self.model_dump(exclude={"metric", "figure", "as_"}))


class AnnotationBody(Body):
    """What happened when a run was measured."""

    model_config = ConfigDict(
        extra="forbid", allow_inf_nan=False, json_schema_extra={"examples": [{"run": 12, "text": "driver 570 to 580"}]}
    )

    run: Annotated[int, Field(ge=1, le=2**63 - 1)]
    text: Annotated[str, Field(max_length=500)]


class IndexShape(Shape):
    """Every series, each with its newest run's verdict; `unplaced_runs` do not say model, hardware or engine."""

    items: list[dict[str, Any]]
    next: str | None
    total: int
    unplaced_runs: int


class TrendsShape(Shape):
    """A series over time: points, levels with their noise, where they changed, which settings changed, and what people say."""

    title: str
    series: dict[str, Any]
    verdict: str
    phase: str | None
    baseline: dict[str, Any] | None
    trends: list[dict[str, Any]]
    changed: list[dict[str, Any]]
    annotations: list[dict[str, Any]]


class AnnotationShape(Shape):
    """One annotation."""

    id: int
    run: int
    text: str
    created_at: str


class AnnotationList(Shape):
    """Annotations."""

    items: list[AnnotationShape]
    next: str | None


@router.get("/trends", summary="Every series that runs are in", response_model=IndexShape, responses=problems(422))
def get_trends(
    context: ContextDep,
    project: Annotated[str | None, Query(max_length=200)] = None,
    cursor: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Limit = 50,
) -> Response:
    """The one measured last first, each with how its newest run stands to the baseline."""
    return StrictJSON(index_json(trends.index(context, project, cursor, limit)))


@router.get(
    "/trends/series",
    summary="One series over time",
    response_model=TrendsShape | FigureShape,
    responses={**_CSV, **problems(404, 422)},
)
def get_series(context: ContextDep, query: Annotated[SeriesQuery, Query()]) -> Response:
    """Both phases and the whole request, or the one `metric`; CSV with `as=csv`, the chart of the first with `figure=plotly`."""
    found = trends.series_trends(context, query.series(), query.metric)
    if query.as_ == "csv":
        return csv_answer("trend.csv", _COLUMNS, _rows(found))
    if query.figure and found.trends and found.trends[0].known:
        return StrictJSON(figure("trend", chart_of(found, found.trends[0])))
    return StrictJSON(trends_json(found))


def _rows(found: SeriesTrends) -> list[list[Any]]:
    rows = []
    for each in found.trends:
        level_of = {run_id: level for level in each.levels for run_id in level.runs}
        for point in each.points:
            level = level_of.get(point.run_id)
            around = [None] * 3 if level is None else [level.centre, level.low, level.high]
            moment = point.at.astimezone(UTC).isoformat()
            rows.append([each.metric.key, each.stat, point.run_id, point.name, moment, point.value, point.n, point.why or None, *around])
    return rows


@router.get("/annotations", summary="What people say happened", response_model=AnnotationList, responses=problems(422))
def get_annotations(context: ContextDep, run: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None) -> Response:
    """Those of `run`, or the ones written last, newest first (500 at most)."""
    return StrictJSON({"items": [annotation_json(each) for each in trends.annotations_of(context, run)], "next": None})


@router.post("/annotations", summary="Say what happened", status_code=201, response_model=AnnotationShape, responses=changes(404, 422))
def post_annotation(context: ContextDep, body: AnnotationBody) -> Response:
    """It stands on the trends of the run's series, and goes with the run."""
    return StrictJSON(annotation_json(trends.annotate(context, body.run, body.text, datetime.now(UTC))), status_code=201)


@router.delete("/annotations/{number}", summary="Delete an annotation", status_code=204, responses=changes(404, 422))
def delete_annotation(context: ContextDep, number: Number) -> Response:
    """Its run stays."""
    trends.take_back(context, number)
    return Response(status_code=204)
