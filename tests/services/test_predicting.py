"""Questions from keys, and the presets of the pages."""

import pytest

from app.catalog import load
from app.domain.prediction import Request
from app.services.predicting import FOUNDING_REQUEST, PRESETS, Question, answer, question_of
from app.services.profiles import catalog_book

BOOK = catalog_book(load())


def test_no_keys_are_the_founding_request() -> None:
    assert question_of({}) == Question() == Question("textbook-8b", "textbook-h100", Request(calibration="textbook"))


def test_keys_change_what_they_name_and_other_keys_are_no_business_of_it() -> None:
    asked = question_of({"model": "llama-3-1-8b", "batch": 8, "concurrency": None, "unknown": 1, "hardware": ""})
    assert (asked.model, asked.hardware, asked.request.batch) == ("llama-3-1-8b", "textbook-h100", 8)
    assert asked.request.prompt_tokens == FOUNDING_REQUEST.prompt_tokens


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: str(preset.slug))
def test_every_preset_is_priced(preset: object) -> None:
    changes = next(item.changes for item in PRESETS if item is preset)
    found = answer(BOOK, question_of(changes)).prediction
    assert 0 < found.ttft_s < found.total_s


def test_what_the_presets_show() -> None:
    found = {preset.slug: answer(BOOK, question_of(preset.changes)).prediction for preset in PRESETS}
    founding = found["founding"]
    # Row 12: 100,000 tokens in and 50 out take 3.81 s of linear prefill before 0.234 s of decode.
    assert found["inverted"].ttft_s == pytest.approx(3.81, abs=5e-3)
    assert found["inverted"].total_s - found["inverted"].ttft_s == pytest.approx(0.234, abs=5e-4)
    # Row 14: 32 sequences, 1.22 ms of arithmetic against the same 4.78 ms.
    assert found["batch"].decode.compute_s == pytest.approx(0.00122, abs=5e-6)
    assert found["batch"].itl_s == pytest.approx(founding.itl_s)
    # Row 13: half the bytes per weight, half the step; row 10: two devices read half each.
    assert found["half-bytes"].itl_s == pytest.approx(founding.itl_s / 2)
    assert found["two-cards"].decode.bytes == pytest.approx(founding.decode.bytes / 2)
    assert found["long-prompt"].prefill.flops == pytest.approx(16 * founding.prefill.flops)
