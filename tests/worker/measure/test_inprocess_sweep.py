"""The swept model: which ones are built, that both libraries compute the same, and what becomes of points that do not fit."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.domain.architecture import ModelArchitecture, dense
from app.domain.built_model import ModelShape, shape_of
from app.domain.device_profile import profile_of
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.layers import Attention, Experts, LayerGroup, Mlp, Reach
from app.domain.run import Distribution
from app.formats import read_runs
from app.formats.phaseline_device import rates_in
from app.jobs import DeviceFacts
from app.jobs.inprocess_sweep import InprocessSweep
from app.worker.measure import bench, inprocess_sweep, room
from app.worker.measure.floors import floors, needed_bytes, request_of, shortage
from app.worker.measure.inprocess_sweep import backend_of
from app.worker.measure.job import Job, Refused, StartAgain
from app.worker.measure.model import weight_shapes
from app.worker.measure.numpy_model import NumpyModel, random_weights
from app.worker.measure.reporter import Reporter
from app.worker.measure.room import Memory
from app.worker.measure.torch_model import TorchModel, random_tensors
from app.worker.measure.torch_seam import has_torch, torch_device, torch_module

needs_torch = pytest.mark.skipif(not has_torch(), reason="torch is not installed")
# 64·(64+2·2·16) qkv, 64·64 out, 3·64·96 MLP, two norms = 30,848 a layer; tables 2·128·64, last norm 64
MODEL = dense(
    "small", "llama", layers=3, hidden=64, heads=4, kv_heads=2, head_dim=16, intermediate=96, vocab=128, norm_parameters_per_layer=128,
    final_norm_parameters=64,
)  # fmt: skip
# 1e9 FLOP/s and 1e9 bytes/s, a ridge of 1 FLOP/byte
SLOW = HardwareProfile("slow", "slow", "", 1e9, {"fp32": 1e9}, memory_bytes=1e9)
CPU = DeviceFacts("this processor", "cpu", ("numpy",))


def small() -> ModelShape:
    return shape_of(MODEL, 64)


def strong_weights(shape: ModelShape) -> dict[str, Any]:
    """Weights large enough that attention is not the same everywhere."""
    return {name: value * 4 if value.ndim == 2 else value for name, value in random_weights(shape, 3).items()}


def test_the_shape_counts_every_parameter_that_is_built() -> None:
    shape = small()
    assert shape.parameters == 3 * 30_848 + 2 * 128 * 64 + 64 == MODEL.shape_parameters
    assert sum(int(np.prod(size)) for size in weight_shapes(shape).values()) == shape.parameters
    # 2 sequences of 10 positions, 3 layers of 2 x 2 KV heads x 16
    assert shape.kv_elements(2, 10) == 2 * 10 * 3 * 64


def group(**changes: Any) -> ModelArchitecture:
    base = LayerGroup(3, attention=Attention(4, 2, 16), mlp=Mlp(96), norm_parameters=128)
    return replace(MODEL, groups=(replace(base, **changes),))


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (group(experts=Experts(8, 2, 32), mlp=None), r"groups\[0\]\.experts"),
        (group(mlp=Mlp(96, gated=False)), r"groups\[0\]\.mlp\.gated"),
        (group(mlp=None), r"groups\[0\]\.mlp"),
        (group(attention=Attention(4, 2, 16, gate=64)), r"attention\.gate"),
        (group(attention=Attention(4, 2, 16, value_dim=8)), r"attention\.value_dim"),
        (group(attention=Attention(4, 2, 16, reach=Reach("window", 32))), r"attention\.reach"),
        (group(bias_parameters=5000), "bias_parameters"),
        (replace(MODEL, position_parameters=10), "position_parameters"),
    ],
)
def test_what_is_not_built_is_refused_by_its_field(model: ModelArchitecture, field: str) -> None:
    with pytest.raises(InvalidRequest, match=field):
        shape_of(model, 64)


def test_a_window_longer_than_the_sequence_and_a_few_biases_are_no_obstacle() -> None:
    assert shape_of(group(attention=Attention(4, 2, 16, reach=Reach("window", 64))), 64).left_out == 0
    assert shape_of(group(bias_parameters=10), 64).left_out == 30


def test_decoding_token_by_token_gives_what_one_pass_over_all_gives() -> None:
    shape = small()
    stepwise, at_once = (NumpyModel(shape, strong_weights(shape)) for _ in range(2))
    prompt = np.random.default_rng(0).integers(0, 128, (2, 9))
    stepwise.begin(2, 16)
    stepwise.prefill(prompt)
    sequence = prompt
    for _ in range(4):
        chosen = stepwise.logits().argmax(axis=-1)
        sequence = np.concatenate((sequence, chosen[:, None]), axis=1)
        stepwise.step()
        at_once.begin(2, 16)
        at_once.prefill(sequence)
        assert np.allclose(stepwise.logits(), at_once.logits(), atol=1e-4)
    assert float(np.ptp(stepwise.logits())) > 0.5


@needs_torch
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("whole_cache", [False, True])
def test_both_libraries_agree_on_the_logits_of_the_same_weights(attention: str, whole_cache: bool) -> None:
    shape, torch = small(), torch_module()
    weights = strong_weights(shape)
    ours = NumpyModel(shape, weights)
    theirs = TorchModel(shape, {name: torch.from_numpy(value) for name, value in weights.items()}, attention)
    prompt = np.random.default_rng(1).integers(0, 128, (3, 20))
    for model in (ours, theirs):
        model.begin(3, 32)
        model.prefill(prompt)
    assert np.allclose(ours.logits(), theirs.logits(), atol=2e-4)
    for _ in range(5):
        ours.step()
        with torch.inference_mode():
            # as a recorded step does it, by addresses that never change, and as an ordinary one
            theirs.decode(whole_cache=True) if whole_cache else theirs.step()
        assert np.allclose(ours.logits(), theirs.logits(), atol=2e-4)


@needs_torch
def test_torch_runs_in_16_bit_and_starts_each_batch_anew() -> None:
    shape = small()
    model = TorchModel(shape, random_tensors(shape, torch_device(0, True), "bf16", 0))
    prompt = np.random.default_rng(1).integers(0, 128, (2, 8))
    seen = []
    for _ in range(2):
        model.begin(2, 12)
        model.prefill(prompt)
        model.step()
        seen.append(model.logits())
    assert np.array_equal(*seen)
    assert (model.peak_bytes() or 0) > 0


def given(folder: Path, **parameters: Any) -> Job:
    chosen = {"model": "small", "backend": "numpy", "prompt_tokens": (16,), "output_tokens": 4, "repeats": 3, **parameters}
    return Job("inprocess_sweep", InprocessSweep(**chosen), CPU, folder, model=MODEL, hardware=SLOW)


def events(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_sweep_writes_samples_of_every_repeat_and_says_how_close_they_come(tmp_path: Path) -> None:
    stream = io.StringIO()
    inprocess_sweep.run(given(tmp_path, batches=(2, 1)), Reporter(stream))
    one, two = read_runs("x", (tmp_path / "result.json").read_bytes()).runs
    assert (one.load_mode, two.load_mode) == ("single", "static_batch")
    prefill = one.distribution("prefill_s")
    assert isinstance(prefill, Distribution)
    assert prefill.n == 3
    assert one.samples is not None
    assert one.samples.chunk_gap_counts.tolist() == [3, 3, 3]
    assert two.requests.completed == 6
    assert any(text.startswith("The first run is kept apart") for text in one.warnings)
    point = next(event["point"] for event in events(stream) if event["event"] == "point")
    assert (point["prompt_tokens"], point["batch"], point["status"]) == (16, 1, "ok")
    # at a ridge of 1 FLOP/byte and 4-byte weights a step of one token is bound by reading, a prompt of 16 by arithmetic
    assert (point["prefill_bound"], point["decode_bound"]) == ("compute", "memory")
    assert point["decode_share_of_floor"] == pytest.approx(floors_of(1).decode_floor_s / point["itl_s"])
    (details,) = [run["details"] for run in json.loads((tmp_path / "result.json").read_bytes())["runs"][:1]]
    assert details["weight_bytes"] == 4 * MODEL.shape_parameters
    assert details["kv_bytes"] == 4 * 20 * 3 * 64


def floors_of(batch: int) -> Any:
    return floors(MODEL, SLOW, request_of(16, 4, batch, "fp32"))


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what the system says is free, look by look; the last goes on. The measuring holds nothing of it."""

    def says(*sizes: int) -> None:
        left = iter(sizes[:-1])
        monkeypatch.setattr(inprocess_sweep, "memory_of", lambda *_: Memory(lambda: next(left, sizes[-1]), lambda: 0))

    return says


def test_a_batch_that_does_not_fit_ends_the_process_and_larger_ones_are_skipped_in_the_next(
    tmp_path: Path, free: Callable[..., None]
) -> None:
    least = int(needed_bytes(MODEL, request_of(16, 4, 1, "fp32"), 4.0 * 16 * 16 * 2, False) / 0.9) + 10
    assert shortage(least * 0.9, least) is None
    free(least)
    job = given(tmp_path, batches=(1, 64, 128))
    with pytest.raises(StartAgain, match="batch 64 ran out of memory"):
        inprocess_sweep.run(job, Reporter(io.StringIO()))
    stream = io.StringIO()
    inprocess_sweep.run(replace(job, resumes=True), Reporter(stream))
    statuses = [(run["concurrency"], run["status"]) for run in json.loads((tmp_path / "result.json").read_bytes())["runs"]]
    assert statuses == [(1, "ok"), (64, "oom"), (128, "oom")]
    assert "batch 64 did not fit before it" in stream.getvalue()


def test_a_point_whose_memory_others_take_while_it_runs_ends_as_oom(
    tmp_path: Path, free: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "EVERY_S", 0.001)
    # Found to fit, and still there at the first two looks; then almost nothing is left.
    free(10**12, 10**12, 10**12, 1000)
    with pytest.raises(StartAgain, match="batch 1 ran out of memory"):
        inprocess_sweep.run(given(tmp_path, batches=(1, 2), output_tokens=40, repeats=1000), Reporter(io.StringIO()))
    (point,) = json.loads((tmp_path / "result.json").read_bytes())["runs"]
    assert point["status"] == "oom"
    assert "others took the memory" in point["reason"]
    assert "0.00 GB are free" in point["reason"]


def test_a_point_over_its_limit_keeps_the_repeats_that_are_whole(tmp_path: Path) -> None:
    inprocess_sweep.run(given(tmp_path, point_limit_s=1e-6), Reporter(io.StringIO()))
    (run,) = read_runs("x", (tmp_path / "result.json").read_bytes()).runs
    assert run.requests.completed == 0
    assert run.warnings[-1] == "This point took longer than its limit: 0 of 4 repeats were done within the limit."


@pytest.mark.parametrize(
    ("changes", "device", "expected"),
    [
        ({"dtype": "bf16"}, CPU, "fp32 and not in bf16"),
        ({}, DeviceFacts("A1", "cuda", ()), "A1 is none"),
    ],
)
def test_what_numpy_does_not_do_is_refused(changes: dict[str, Any], device: DeviceFacts, expected: str, tmp_path: Path) -> None:
    job = replace(given(tmp_path, **changes), device=device)
    assert isinstance(job.parameters, InprocessSweep)
    with pytest.raises(Refused, match=expected):
        backend_of(job, job.parameters, small())


def test_numpy_stops_at_160_million_parameters(tmp_path: Path) -> None:
    job = given(tmp_path)
    assert isinstance(job.parameters, InprocessSweep)
    large = replace(small(), vocab=2_000_000)
    with pytest.raises(Refused, match="up to 160 M parameters and this one has 256 M"):
        backend_of(job, job.parameters, large)


def test_a_device_without_a_profile_is_looked_at_first_and_gives_the_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "LEAST_BUFFER", 4_000_000)
    stream = io.StringIO()
    inprocess_sweep.run(replace(given(tmp_path), hardware=None), Reporter(stream))
    device, point = read_runs("x", (tmp_path / "result.json").read_bytes()).runs
    assert (device.labels["kind"], point.labels["kind"]) == ("device_microbench", "inprocess_sweep")
    assert device.hardware == point.hardware == "this processor"
    rates = rates_in("x", (tmp_path / "result.json").read_bytes(), 0)
    assert rates is not None
    highest = max(move.rate.best for move in rates.moves)
    (expected,) = [run["details"]["expected"] for run in json.loads((tmp_path / "result.json").read_bytes())["runs"][1:]]
    named = profile_of(rates, "x", "x", "", "")
    assert named is not None
    assert named.bandwidth_bytes_per_s == highest
    priced = floors(MODEL, named, request_of(16, 4, 1, "fp32"))
    assert priced is not None
    assert expected["decode_floor_s"] == pytest.approx(priced.decode_floor_s)
