"""Predictions over HTTP: one question, or a grid of them."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from app.api.answers import StrictJSON, problems
from app.api.bodies import ChangeQuery, MapQuery, PredictionBody, PredictionQuery, RatesQuery
from app.api.dependencies import ContextDep
from app.api.shapes import ChangeShape, MapShape, PredictionShape, RatesShape, SweepShape
from app.domain.simulation import Target
from app.domain.what_if import RANGES, Change
from app.services.capacity import rates_json, rates_of
from app.services.maps import map_figure, map_json, map_of
from app.services.predicting import Answer, answer, at_own_moments, question_of
from app.services.prediction_json import answer_json
from app.services.profiles import read_book
from app.services.sweeping import sweep
from app.services.under_load import Arrivals, UnderLoad, simulate
from app.services.what_if import what_if, what_if_json

router = APIRouter(prefix="/predict", tags=["predict"])


@router.get("", summary="One prediction from query parameters", response_model=PredictionShape, responses=problems(422))
def get_prediction(context: ContextDep, query: Annotated[PredictionQuery, Query()]) -> Response:
    """The founding case when nothing is given; the pages / and /predict take the same keys."""
    return StrictJSON(answer_json(answer(read_book(context), question_of(query.model_dump()))))


@router.post("", summary="One prediction, or a grid of them", response_model=PredictionShape | SweepShape, responses=problems(403, 422))
def post_prediction(context: ContextDep, body: PredictionBody) -> Response:
    """With `sweep` the answer is a table of columns, else one prediction; `simulate` or `arrivals` add its load pass by pass."""
    book = read_book(context)
    question = question_of(body.model_dump(exclude={"sweep", "simulate", "arrivals", "target"}))
    if body.sweep is not None:
        return StrictJSON(sweep(book, question, body.sweep))
    found = answer(book, at_own_moments(question, body.arrivals.request_rate_per_s if body.arrivals else None))
    return StrictJSON(answer_json(found, _simulated(found, body)))


def _simulated(found: Answer, body: PredictionBody) -> UnderLoad | None:
    if not body.simulate and body.arrivals is None and body.target is None:
        return None
    given = body.arrivals.model_dump() if body.arrivals is not None else {}
    moments = given.pop("sent_s", None)
    arrivals = Arrivals(**given, sent_s=None if moments is None else tuple(moments))
    return simulate(found, arrivals, Target(**body.target.model_dump()) if body.target is not None else None)


@router.get("/change", summary="The same question with its levers moved", response_model=ChangeShape, responses=problems(422))
def get_change(context: ContextDep, query: Annotated[ChangeQuery, Query()]) -> Response:
    """Before and after, and each lever moved alone by a factor of two; the page /predict/change takes the same keys."""
    asked = query.model_dump()
    change = Change(**{lever: asked.pop(f"{lever}_log2") for lever in RANGES})
    return StrictJSON(what_if_json(what_if(read_book(context), question_of(asked), change)))


@router.get("/map", summary="One figure over two axes", response_model=MapShape | dict[str, Any], responses=problems(422))
def get_map(context: ContextDep, query: Annotated[MapQuery, Query()]) -> Response:
    """A cell for each batch and prompt, context or number of devices; `figure=plotly` gives the drawing."""
    asked = query.model_dump(exclude={"over", "show", "figure"})
    found = map_of(read_book(context), question_of(asked), query.over, query.show)
    return StrictJSON(map_figure(found) if query.figure else map_json(found))


@router.get("/rates", summary="What a deployment answers at rising rates", response_model=RatesShape, responses=problems(422))
def get_rates(context: ContextDep, query: Annotated[RatesQuery, Query()]) -> Response:
    """Requests in flight and mean times at shares of the most that is answered; `ttft_s` and `tpot_s` find the most within them.

    On average by the closed form, and with `share` of so many of the requests, simulated.
    """
    asked = query.model_dump(exclude={"ttft_s", "tpot_s", "share"})
    return StrictJSON(rates_json(rates_of(read_book(context), question_of(asked), Target(query.ttft_s, query.tpot_s), query.share)))
