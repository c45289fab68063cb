"""Predictions over HTTP: one question, or a grid of them."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from app.api.answers import StrictJSON, problems
from app.api.bodies import PredictionBody, PredictionQuery
from app.api.dependencies import ContextDep
from app.api.shapes import PredictionShape, SweepShape
from app.services.predicting import answer, question_of
from app.services.prediction_json import prediction_json
from app.services.profiles import read_book
from app.services.sweeping import sweep

router = APIRouter(prefix="/predict", tags=["predict"])


@router.get("", summary="One prediction from query parameters", response_model=PredictionShape, responses=problems(422))
def get_prediction(context: ContextDep, query: Annotated[PredictionQuery, Query()]) -> Response:
    """The founding case when nothing is given; the pages / and /predict take the same keys."""
    return StrictJSON(prediction_json(answer(read_book(context), question_of(query.model_dump())).prediction))


@router.post("", summary="One prediction, or a grid of them", response_model=PredictionShape | SweepShape, responses=problems(403, 422))
def post_prediction(context: ContextDep, body: PredictionBody) -> Response:
    """With `sweep` the answer is a table of columns, else one prediction."""
    book = read_book(context)
    question = question_of(body.model_dump(exclude={"sweep"}))
    if body.sweep is not None:
        return StrictJSON(sweep(book, question, body.sweep))
    return StrictJSON(prediction_json(answer(book, question).prediction))
