"""Levers of real questions: each is priced with the fit of the question as it stands."""

from app.catalog import load
from app.domain.what_if import Change
from app.services.predicting import question_of
from app.services.profiles import catalog_book
from app.services.what_if import what_if

BOOK = catalog_book(load())
SERVED = {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "engine": "vllm", "concurrency": 16, "calibration": "default"}


def test_a_change_at_rest_is_the_question_itself() -> None:
    found = what_if(BOOK, question_of(SERVED), Change())
    assert found.after is not None
    assert found.after.prediction.ttft_s == found.before.prediction.ttft_s
    assert found.after.prediction.itl_s == found.before.prediction.itl_s


def test_fewer_bytes_per_weight_do_not_bring_the_fit_of_other_models_with_them() -> None:
    """vLLM was fitted to dense models at 16 and 8 bit of its own kinds; for others its fit of all models, slower at prompts, would go."""
    before = what_if(BOOK, question_of(SERVED), Change()).before.prediction
    after = what_if(BOOK, question_of(SERVED), Change(weight_bytes=-1)).after
    assert after is not None
    assert after.prediction.itl_s < before.itl_s
    assert after.prediction.front_end_s == before.front_end_s
