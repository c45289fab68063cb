"""Comparisons over HTTP."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response

from app.api.answers import Responses, StrictJSON, csv_answer, problems
from app.api.comparison_shapes import ComparisonShape
from app.api.dependencies import BaseIds, ContextDep, OtherIds
from app.api.gate import AllowMissing, Spec
from app.api.shapes import FigureShape
from app.domain.gates import parse_spec
from app.services.comparing import compare_runs, explained, sides_of
from app.services.comparison_json import comparison_json
from app.services.figures import waterfall_figure
from app.services.gating import gates_of
from app.services.markdown import comparison_markdown

router = APIRouter(prefix="/compare", tags=["compare"])

_COLUMNS = ("key", "stat", "base", "other", "delta", "ratio", "verdict", "note")
_MARKDOWN: Responses = {200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}}


@router.get(
    "",
    summary="What differs between runs, and which phase moved",
    response_model=ComparisonShape | FigureShape,
    responses=problems(404, 422),
)
def get_comparison(
    context: ContextDep,
    base: BaseIds,
    other: OtherIds,
    as_: Annotated[Literal["json", "csv"], Query(alias="as")] = "json",
    figure: Annotated[Literal["plotly"] | None, Query()] = None,
) -> Response:
    """`base`, a number or `baseline`, is compared with each `other`; the first pair stands at the top level. `as=csv` gives the metrics as
    rows, `figure=plotly` the walk of the first pair's mean request from `base` to `other` as a chart. A side may be several repeats
    (`12,15,18`): then their means are compared, and a change counts from twice the spread between them where that is more than 3 %.
    """
    views, comparisons = compare_runs(context, sides_of(context, base, other))
    if figure:
        return StrictJSON(waterfall_figure(comparisons[0]))
    answer = comparison_json(comparisons, explained(views, comparisons))
    if as_ == "csv":
        rows = [
            [answer["base"], pair["other"], *(row[key] for key in _COLUMNS)] for pair in answer["comparisons"] for row in pair["metrics"]
        ]
        return csv_answer("comparison.csv", ("base_run", "other_run", *_COLUMNS), rows)
    return StrictJSON(answer)


@router.get(
    ".md", summary="The same as Markdown, for a pull request", response_class=Response, responses={**_MARKDOWN, **problems(404, 422)}
)
def get_comparison_markdown(
    context: ContextDep, base: BaseIds, other: OtherIds, spec: Spec = None, allow_missing: AllowMissing = False
) -> Response:
    """The gate where a `spec` is given, the sentence, causes with what would refute them, and the metrics that both sides have."""
    clauses = parse_spec(spec or ())
    views, comparisons = compare_runs(context, sides_of(context, base, other))
    gates = gates_of(clauses, comparisons, allow_missing) if clauses else []
    text = comparison_markdown(comparisons, explained(views, comparisons), gates)
    return Response(text, media_type="text/markdown; charset=utf-8")
