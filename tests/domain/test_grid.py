"""A sweep is the single predictions side by side, row-major, with a reason in each cell that cannot be priced."""

import dataclasses
import itertools

import numpy as np
import pytest

from app.domain.errors import InvalidRequest
from app.domain.grid import CELL_LIMIT, Grid
from app.domain.prediction import Prediction, Request
from app.domain.serving import predict, predict_grid
from tests.domain.subjects import ENGINE, LLAMA_8B, ONLY_FP32, SERVER, TEXTBOOK_8B, TEXTBOOK_H100, TINY, WINDOWED


def columns_of(found: Prediction) -> dict[str, float]:
    """The columns of a grid, from a single prediction."""
    return {
        "ttft_s": found.ttft_s,
        "itl_s": found.itl_s,
        "total_s": found.total_s,
        "prefill_s": found.prefill.time_s,
        "prefill_floor_s": found.prefill.floor_s,
        "prefill_compute_s": found.prefill.compute_s,
        "prefill_memory_s": found.prefill.memory_s,
        "decode_s": found.decode.time_s,
        "decode_floor_s": found.decode.floor_s,
        "decode_compute_s": found.decode.compute_s,
        "decode_memory_s": found.decode.memory_s,
        "request_tokens_per_s": found.request_tokens_per_s,
        "aggregate_tokens_per_s": found.aggregate_tokens_per_s,
        "fits": float("nan") if found.memory.fits is None else float(found.memory.fits),
    }


SWEEPS = [
    (LLAMA_8B, SERVER, None, Request(), {"prompt_tokens": [1, 2000, 50_000], "batch": [1, 8, 4000]}),
    (LLAMA_8B, SERVER, ENGINE, Request(weight_dtype="fp8"), {"tp": [1, 2, 16], "output_tokens": [1, 2, 500], "pp": [1, 3]}),
    (WINDOWED, SERVER, None, Request(cached_prefix_tokens=100), {"prompt_tokens": [900, 1000, 5000], "concurrency": [1, 7, 9999]}),
    (WINDOWED, SERVER, None, Request(concurrency=64), {"cached_prefix_tokens": [0, 1500], "pp": [1, 4], "tp": [1, 8]}),
    (TEXTBOOK_8B, TEXTBOOK_H100, None, Request(calibration="textbook"), {"batch": [1, 32, 300], "tp": [1, 2]}),
    (TINY, ONLY_FP32, None, Request(), {"prompt_tokens": [5, 6]}),
    (LLAMA_8B, SERVER, None, Request(), {}),
    (LLAMA_8B, SERVER, ENGINE, Request(concurrency=16, shortest_length=0.5), {"output_tokens": [1, 2, 300], "prompt_tokens": [1, 2000]}),
]


@pytest.mark.parametrize(("model", "hardware", "engine", "request_", "axes"), SWEEPS)
def test_every_cell_is_the_single_prediction(model, hardware, engine, request_, axes) -> None:
    grid = predict_grid(model, hardware, request_, axes=axes, engine=engine)
    cells = list(itertools.product(*axes.values()))
    assert grid.priced.all()
    assert grid.refused == ()
    for place, values in enumerate(cells):
        alone = predict(model, hardware, dataclasses.replace(request_, **dict(zip(axes, values, strict=True))), engine=engine)
        for key, value in columns_of(alone).items():
            assert grid.columns[key][place] == pytest.approx(value, rel=1e-9, nan_ok=True), (key, values)


def refused_grid() -> Grid:
    return predict_grid(LLAMA_8B, SERVER, Request(), axes={"prompt_tokens": [0, 100, 2000], "cached_prefix_tokens": [0, 100], "tp": [1, 3]})


def test_impossible_cells_are_blank_with_a_reason() -> None:
    grid = refused_grid()
    assert grid.shape == (3, 2, 2)
    # row-major: prompt 0 is cells 0-3, prompt 100 with 100 cached is cells 6 and 7, tp 3 every odd cell; the first reason speaks
    reasons = {(refusal.field, tuple(refusal.cells)) for refusal in grid.refused}
    assert reasons == {("prompt_tokens", (0, 1, 2, 3)), ("cached_prefix_tokens", (6, 7)), ("tp", (5, 9, 11))}
    assert list(np.flatnonzero(grid.priced)) == [4, 8, 10]
    for column in grid.columns.values():
        assert np.isnan(column[~grid.priced]).all()
        assert np.isfinite(column[grid.priced]).all()
    assert all(refusal.message.startswith(refusal.field) and refusal.message.endswith(".") for refusal in grid.refused)


def test_a_cell_is_refused_exactly_when_its_request_is() -> None:
    grid = refused_grid()
    for place, (prompt, cached, tp) in enumerate(itertools.product([0, 100, 2000], [0, 100], [1, 3])):
        request = Request(prompt_tokens=prompt, cached_prefix_tokens=cached, tp=tp)
        if grid.priced[place]:
            assert predict(LLAMA_8B, SERVER, request).ttft_s == pytest.approx(grid.columns["ttft_s"][place])
        else:
            with pytest.raises(InvalidRequest):
                predict(LLAMA_8B, SERVER, request)


@pytest.mark.parametrize("key", ["tp", "pp"])
def test_cells_that_need_an_unknown_link_are_blank_and_the_others_are_not(key: str) -> None:
    lonely = dataclasses.replace(SERVER, link_bytes_per_s=None)
    grid = predict_grid(LLAMA_8B, lonely, Request(), axes={key: [1, 2]})
    assert list(grid.priced) == [True, False]
    assert grid.columns["itl_s"][0] == pytest.approx(predict(LLAMA_8B, lonely, Request()).itl_s)
    assert "states none" in grid.refused[0].message


def test_a_served_load_of_batches_is_refused_cell_by_cell() -> None:
    grid = predict_grid(LLAMA_8B, SERVER, Request(concurrency=4), axes={"batch": [1, 2]})
    assert list(grid.priced) == [True, False]


@pytest.mark.parametrize(
    ("axes", "field"),
    [
        ({"weight_dtype": [1]}, "sweep"),
        ({"batch": []}, "batch"),
        ({"batch": [1.5]}, "batch"),
        ({"batch": ["8"]}, "batch"),
        ({"batch": "12"}, "batch"),
        ({"batch": [True]}, "batch"),
        ({"prompt_tokens": range(1, 3001), "batch": range(1, 3001)}, "sweep"),
    ],
)
def test_a_sweep_that_makes_no_sense_is_refused_whole(axes: dict[str, list[int]], field: str) -> None:
    assert CELL_LIMIT < 9_000_000
    with pytest.raises(InvalidRequest) as refusal:
        predict_grid(LLAMA_8B, SERVER, Request(), axes=axes)
    assert refusal.value.field == field


def test_numpy_axes_are_taken() -> None:
    grid = predict_grid(LLAMA_8B, SERVER, Request(), axes={"prompt_tokens": np.arange(100, 103)})  # type: ignore[dict-item]
    assert grid.axes == {"prompt_tokens": (100, 101, 102)}
    assert np.all(np.diff(grid.columns["ttft_s"]) > 0)


def test_a_bad_mode_or_format_is_refused() -> None:
    for request in (Request(calibration="mine"), Request(weight_dtype="?"), Request(concurrency="x")):  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest):
            predict_grid(LLAMA_8B, SERVER, request, axes={"batch": [1]})
