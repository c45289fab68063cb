"""The nearest measurements: same model or device or nothing, each difference counted once, what is no plain measurement left out."""

import pytest

from app.domain.measurement import REJECTED, SPECULATIVE, Layout, Measurement
from app.domain.nearest import Measured, Point

ASKED = Point("llama", "h100", "vllm", "bf16", devices=1, sequences=8, prompt_tokens=1000, output_tokens=100)


def row(name: str, *flags: str) -> Measurement:
    return Measurement(
        name, "served", "a paper", "vLLM", "", "Llama", "H100", Layout(), "bf16", "", "", 8, 1000, 100, tpot_s=0.01, flags=flags
    )


def found(asked: Point, *points: Point, flags: tuple[str, ...] = ()) -> list[tuple[str, float, tuple[str, ...]]]:
    rows = [row(str(place), *flags) for place in range(len(points))]
    return [(near.measurement.id, near.distance, near.differs) for near in Measured(rows, points).nearest(asked)]


def changed(**values: object) -> Point:
    return Point(**{**vars(ASKED), **values})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "distance"),
    [
        ({}, 0.0),
        ({"model": "qwen"}, 3.0),
        ({"hardware": "a100"}, 3.0),
        ({"engine": "sglang"}, 1.5),
        ({"weight_dtype": "fp8"}, 1.0),
        ({"prompt_tokens": 4000}, 2.0),
        ({"sequences": 2}, 2.0),
        ({"devices": 2}, 1.0),
        ({"output_tokens": 400}, 0.5),
        ({"weight_dtype": "fp8", "devices": 4}, 3.0),
    ],
)
def test_each_difference_counts(values: dict[str, object], distance: float) -> None:
    assert found(ASKED, changed(**values)) == [("0", pytest.approx(distance), tuple(key for key in vars(ASKED) if key in values))]


def test_the_nearest_come_first_and_no_more_than_three() -> None:
    points = [changed(prompt_tokens=1000 * 2**power) for power in (3, 0, 2, 1)]
    assert [name for name, _, _ in found(ASKED, *points)] == ["1", "3", "2"]


def test_another_model_on_another_device_is_not_near() -> None:
    assert found(ASKED, changed(model="qwen", hardware="a100")) == []
    assert found(ASKED, changed(model=None, hardware=None)) == []


def test_no_engine_asked_is_no_difference() -> None:
    assert found(changed(engine=None), changed(engine="sglang")) == [("0", 0.0, ())]


@pytest.mark.parametrize("flag", [SPECULATIVE, REJECTED])
def test_speculative_and_rejected_rows_are_left_out(flag: str) -> None:
    assert found(ASKED, changed(), flags=(flag,)) == []
