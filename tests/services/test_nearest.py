"""Nearest measurements of real questions: the catalog's names meet the sources' names."""

from app.catalog import load
from app.services.nearest import nearest, nearest_json
from app.services.predicting import answer, question_of
from app.services.profiles import catalog_book

BOOK = catalog_book(load())


def test_a_served_question_stands_beside_what_was_measured_of_it() -> None:
    asked = {"model": "llama-3-1-8b", "hardware": "h100-sxm5-80gb", "engine": "vllm", "concurrency": 16, "calibration": "default"}
    found = nearest(answer(BOOK, question_of(asked)))
    assert len(found) == 3
    assert [near.distance for near in found] == sorted(near.distance for near in found)
    assert all("8B" in near.measurement.model or "H100" in near.measurement.hardware for near in found)
    assert all(near.measurement.source for near in found)


def test_textbook_arithmetic_stands_beside_no_measurement() -> None:
    assert nearest_json(answer(BOOK, question_of({}))) == []
