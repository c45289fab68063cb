"""Predictions stay what they were until somebody means to change them; how to make the file anew stands in golden.py."""

import json

import pytest

from tests.domain.golden import FILE, build


def test_predictions_are_the_reviewed_ones() -> None:
    kept, now = json.loads(FILE.read_text(encoding="utf-8")), build()
    assert kept["model_version"] == now["model_version"]
    assert list(kept["predictions"]) == list(now["predictions"])  # type: ignore[call-overload]
    for case, figures in kept["predictions"].items():
        assert now["predictions"][case] == pytest.approx(figures, rel=1e-9), case  # type: ignore[index]
