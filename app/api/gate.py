"""Gates over HTTP: may this run pass, by the clauses of a pipeline."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from app.api.answers import StrictJSON, problems
from app.api.dependencies import BaseIds, ContextDep, SideIds
from app.api.shapes import Shape
from app.domain.errors import InvalidRequest
from app.domain.gates import parse_spec
from app.services.gating import gate_sides, gates_json

router = APIRouter(prefix="/gate", tags=["compare"])

Spec = Annotated[
    list[Annotated[str, Query(max_length=2000)]] | None,
    Query(max_length=50, description="Clauses joined by commas, such as itl.p50>+5%,ttft.p95>500ms; may be repeated"),
]
AllowMissing = Annotated[bool, Query(description="A clause that cannot be judged is not broken")]


class GateShape(Shape):
    """One verdict, and each clause with what was found, the noise it was judged by, and the sentence that says so."""

    verdict: str
    sentence: str
    clauses: list[dict[str, Any]]


@router.get("", summary="Pass or fail, by the clauses of a pipeline", response_model=GateShape, responses=problems(404, 422))
def get_gate(context: ContextDep, base: BaseIds, run: SideIds, spec: Spec = None, allow_missing: AllowMissing = False) -> Response:
    """`run` is held against `base`, or against `baseline`. Either side may be several repeats (`12,15,18`): then their means are judged,
    and a change counts from twice the spread between them where that is more than 3 %. A clause that cannot be judged (missing, withheld,
    too few samples, not comparable) is broken, unless `allow_missing`; the answer is 200 either way, and `verdict` is `pass` or `fail`.
    """
    clauses = parse_spec(spec or ())
    if not clauses:
        raise InvalidRequest("spec", "A gate needs a spec: clauses such as itl.p50>+5%, joined by commas.")
    return StrictJSON(gates_json([gate_sides(context, base, run, clauses, allow_missing)]))
