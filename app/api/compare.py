"""Comparisons over HTTP."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi.responses import Response

from app.api.answers import StrictJSON, csv_answer, problems
from app.api.comparison_shapes import ComparisonShape
from app.api.dependencies import ContextDep
from app.services.comparing import compare_runs, explained
from app.services.comparison_json import comparison_json

router = APIRouter(prefix="/compare", tags=["compare"])

_COLUMNS = ("key", "stat", "base", "other", "delta", "ratio", "verdict", "note")
RunId = Annotated[int, Query(ge=1, le=2**63 - 1)]


@router.get("", summary="What differs between runs, and which phase moved", response_model=ComparisonShape, responses=problems(404, 422))
def get_comparison(
    context: ContextDep,
    base: RunId,
    other: Annotated[list[Annotated[int, Query(ge=1, le=2**63 - 1)]], Query(min_length=1, max_length=7)],
    as_: Annotated[Literal["json", "csv"], Query(alias="as")] = "json",
) -> Response:
    """`base` is compared with each `other`; the first pair stands at the top level. `as=csv` gives the metrics as rows."""
    views, comparisons = compare_runs(context, [base, *other])
    answer = comparison_json(comparisons, explained(views, comparisons))
    if as_ == "csv":
        rows = [
            [answer["base"], pair["other"], *(row[key] for key in _COLUMNS)] for pair in answer["comparisons"] for row in pair["metrics"]
        ]
        return csv_answer("comparison.csv", ("base_run", "other_run", *_COLUMNS), rows)
    return StrictJSON(answer)
