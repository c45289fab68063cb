"""Maps: every cell is the single prediction, the boundary stands where the two times meet."""

from dataclasses import replace

import numpy as np
import pytest

from app.domain.errors import InvalidRequest
from app.domain.maps import MAPS, METRICS, heat_map
from app.domain.prediction import Request
from app.domain.serving import predict
from tests.domain.subjects import LLAMA_8B, TEXTBOOK_8B, TEXTBOOK_H100
from tests.made_up import H100 as BARE_H100

H100 = replace(BARE_H100, memory_bytes=8e10, link_bytes_per_s=4.5e11)
REQUEST = Request(prompt_tokens=1000, output_tokens=50, weight_dtype="bf16")


@pytest.mark.parametrize("over", MAPS)
@pytest.mark.parametrize("show", METRICS)
def test_a_cell_is_the_prediction_of_its_own_request(over: str, show: str) -> None:
    found = heat_map(LLAMA_8B, H100, REQUEST, None, over, show)
    assert found.values.shape == found.balance.shape == found.fits.shape == (len(found.y.values), len(found.x.values))
    row, column = 4, min(3, len(found.x.values) - 1)
    batch, x = found.y.values[row], found.x.values[column]
    asked = {
        "prompt": Request(prompt_tokens=x, output_tokens=50, batch=batch),
        "context": Request(prompt_tokens=x, output_tokens=2, batch=batch),
        "tp": Request(prompt_tokens=1000, output_tokens=50, batch=batch, tp=x),
    }[over]
    single = predict(LLAMA_8B, H100, asked)
    devices = asked.tp
    rate = single.aggregate_tokens_per_s if over == "context" else batch * 50 / single.total_s
    expected = {"prefill": single.prefill.time_s, "decode": single.decode.time_s, "throughput": rate / devices}[show]
    assert found.values[row, column] == pytest.approx(expected)
    cost = single.prefill if found.metric.phase == "prefill" else single.decode
    assert found.balance[row, column] == pytest.approx(np.log2(cost.compute_s / cost.memory_s))


def test_the_boundary_of_the_founding_case_is_its_ridge() -> None:
    """Textbook mode: arithmetic and memory take equally long at 125.4 tokens in a pass, whoever brings them."""
    found = heat_map(TEXTBOOK_8B, TEXTBOOK_H100, Request(calibration="textbook"), None, "prompt", "prefill")
    tokens = np.outer(found.y.values, found.x.values)
    assert np.allclose(found.balance, np.log2(tokens / 125.37), atol=1e-3)


def test_a_device_with_a_memory_leaves_cells_that_do_not_fit_unshown() -> None:
    found = heat_map(LLAMA_8B, H100, REQUEST, None, "context", "decode")
    assert 0 < (found.fits == 0).sum() < found.fits.size
    assert np.isnan(found.shown[found.fits == 0]).all()
    assert np.isfinite(found.shown[found.fits == 1]).all()
    low, high = found.ends or (0.0, 0.0)
    assert low == found.shown[0, 0] < high


def test_devices_that_have_no_link_are_left_out_with_the_reason() -> None:
    # The number of devices is the map's own, whatever the question says.
    found = heat_map(LLAMA_8B, H100, Request(prompt_tokens=1000, output_tokens=50, tp=3), None, "tp", "decode")
    assert np.isfinite(found.values).all()
    lonely = heat_map(TEXTBOOK_8B, TEXTBOOK_H100, Request(), None, "tp", "decode")
    assert np.isfinite(lonely.values[:, 0]).all()
    assert np.isnan(lonely.values[:, 1:]).all()
    assert "link" in lonely.refused[0]


@pytest.mark.parametrize(("over", "show", "field"), [("depth", "decode", "over"), ("prompt", "joy", "show")])
def test_unknown_keys_are_refused_with_those_there_are(over: str, show: str, field: str) -> None:
    with pytest.raises(InvalidRequest, match="must be one of") as refused:
        heat_map(LLAMA_8B, H100, REQUEST, None, over, show)
    assert refused.value.field == field


def test_a_question_without_a_priced_cell_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="No cell of this map can be priced"):
        heat_map(LLAMA_8B, H100, Request(prompt_tokens=1000, output_tokens=50, tp=3), None, "prompt", "decode")
