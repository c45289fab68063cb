"""How the API answers: strict JSON, problem details, CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

from fastapi.responses import JSONResponse, Response

from app.services.problems import Problem
from app.services.strict_json import strict_json

# What a spreadsheet takes for the start of a formula, the full-width signs of East Asian ones included.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

# What FastAPI takes as the documented answers of a route, by status.
Responses = dict[int | str, dict[str, Any]]


class StrictJSON(JSONResponse):
    """JSON in UTF-8 without NaN or Infinity, whatever the content is."""

    def render(self, content: Any) -> bytes:
        return strict_json(content).encode("utf-8", "replace")


def problem_answer(problem: Problem) -> Response:
    """An application/problem+json answer."""
    return StrictJSON(problem.as_json(), status_code=problem.status, media_type="application/problem+json")


def csv_answer(name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Response:
    """A CSV download whose text cells cannot start a formula in a spreadsheet."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([csv_cell(cell) for cell in row])
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(out.getvalue().encode("utf-8"), media_type="text/csv; charset=utf-8", headers=headers)


def csv_cell(value: Any) -> Any:
    """The cell as written: numbers stay numbers, None is empty, a text that a spreadsheet would run gets a quote before it."""
    if value is None:
        return ""
    if isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value


def changes(*statuses: int) -> Responses:
    """The same for a route that changes something: another site's call is refused (403), and there may be no room (507)."""
    return problems(403, 507, *statuses)


def problems(*statuses: int) -> Responses:
    """OpenAPI entries for the problem answers a route may give."""
    schema = {"type": "object", "required": ["title", "status", "detail"], "properties": _PROBLEM_PROPERTIES}
    return {
        status: {"description": "What is wrong and what to do", "content": {"application/problem+json": {"schema": schema}}}
        for status in statuses
    }


_PROBLEM_PROPERTIES = {
    "type": {"type": "string"},
    "title": {"type": "string"},
    "status": {"type": "integer"},
    "detail": {"type": "string"},
}
