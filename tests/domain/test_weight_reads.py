"""How much of the weights a step reads, by hand and over random models, and where a request's time is."""

import pytest
from hypothesis import given, settings

from app.domain.architecture import ModelArchitecture
from app.domain.hardware import HardwareProfile
from app.domain.layers import Attention, Experts, LayerGroup
from app.domain.prediction import Request
from app.domain.serving import predict
from tests.domain.subjects import ENGINE, LLAMA_8B, PENCIL, SERVER
from tests.domain.test_properties import architectures, devices, requests

# One layer: 8 x 8 queries, 2 · 8 x 4 keys and values, 8 x 8 output; a router 8 x 4; experts of 3 · 8 · 16; logits 8 x 32.
MIXED = ModelArchitecture("pencil", "any", hidden=8, vocab=32, groups=(LayerGroup(1, Attention(4, 2, 2), experts=Experts(4, 2, 16)),))
ALWAYS, EXPERT = 64 + 64 + 64 + 32 + 256, 384


@pytest.mark.parametrize(("batch", "touched"), [(1, 2.0), (2, 3.0), (3, 3.5)])
def test_experts_of_a_step_by_hand(batch: int, touched: float) -> None:
    """Each token takes two of four: all but (1/2)^batch of the experts are touched."""
    found = predict(MIXED, PENCIL, Request(batch=batch)).weights
    assert found is not None
    assert found.distinct_experts == touched
    assert found.step_bytes == 2 * (ALWAYS + touched * EXPERT)
    assert found.all_bytes == 2 * (ALWAYS + 4 * EXPERT)
    assert (found.step_floor_s, found.all_floor_s) == (found.step_bytes / 1e11, found.all_bytes / 1e11)


def test_a_dense_model_reads_everything() -> None:
    for mode in ("default", "textbook"):
        found = predict(LLAMA_8B, SERVER, Request(calibration=mode)).weights
        assert found is not None
        assert found.distinct_experts is None
        assert found.step_bytes == found.all_bytes == pytest.approx(2 * LLAMA_8B.decode_weight_parameters)


@settings(max_examples=60, deadline=None)
@given(architectures(), devices(), requests())
def test_no_step_reads_more_than_there_is(model: ModelArchitecture, device: HardwareProfile, request: Request) -> None:
    found = predict(model, device, request).weights
    assert found is not None
    assert 0 < found.step_bytes <= found.all_bytes * (1 + 1e-12)
    assert (found.distinct_experts is not None) == bool(model.expert_layers)


@pytest.mark.parametrize(
    ("request_", "phase"),
    [
        (Request(), "decode"),
        (Request(output_tokens=1), "prefill"),
        (Request(prompt_tokens=100_000, output_tokens=50), "prefill"),
        (Request(concurrency=4000, output_tokens=20), "queue"),
    ],
)
def test_the_phase_is_where_most_of_the_time_is(request_: Request, phase: str) -> None:
    assert predict(LLAMA_8B, SERVER, request_, engine=ENGINE).phase == phase
