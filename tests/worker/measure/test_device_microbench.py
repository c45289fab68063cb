"""The shapes of a microbenchmark, the bytes it counts, and that both libraries do the same products and moves."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from app.domain.architecture import dense
from app.domain.device_rates import MoveKind
from app.jobs import DeviceFacts
from app.jobs.device_microbench import DeviceMicrobench
from app.worker.measure.bench import FEWEST_ITERATIONS, MOST_ITERATIONS, Bench, Call, gemv_rows, measure, rates
from app.worker.measure.bench_numpy import NumpyBench
from app.worker.measure.bench_torch import TorchBench
from app.worker.measure.device_microbench import Shape, bench_of, shapes_of
from app.worker.measure.job import Job, Refused
from app.worker.measure.torch_seam import has_torch

MODEL = dense("small", "llama", layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, intermediate=128, vocab=256)
needs_torch = pytest.mark.skipif(not has_torch(), reason="torch is not installed")


def benches() -> list[Bench]:
    made: list[Bench] = [NumpyBench("here", None, 0)]
    return [*made, TorchBench("here", None, 0, 0, True, 1)] if has_torch() else made


def test_shapes_are_squares_to_the_largest_and_the_layers_at_each_row_count() -> None:
    parameters = DeviceMicrobench(largest=600, rows=(1, 8))
    # q 4x16 + k and v 2x2x16 = 128; gate and up 256; down and attention output to 64
    layers = [("qkv", 128, 64), ("attention_out", 64, 64), ("gate_up", 256, 64), ("down", 64, 128)]
    expected = [Shape("square", "fp32", side, side, side) for side in (256, 512, 600)]
    expected += [Shape(name, "fp32", rows, n, k) for name, n, k in layers for rows in (1, 8)]
    assert shapes_of(parameters, MODEL, "fp32") == expected


@pytest.mark.parametrize(
    ("what", "moved"),
    # 2^18 floats are 1 MiB; a copy reads and writes, a triad reads two and writes one; a matrix has 4096 columns
    [("read", 2**20), ("copy", 2 * 2**20), ("triad", 3 * 2**20), ("gemv", 2**20)],
)
def test_every_byte_read_or_written_counts_once(what: MoveKind, moved: int) -> None:
    for bench in benches():
        call, counted = bench.move(what, "fp32", 2**20)
        call()
        assert counted == moved, bench.name


def test_a_triad_in_pieces_is_the_whole_sum() -> None:
    bench = NumpyBench("here", None, 0)
    call, _ = bench.move("triad", "fp32", 400_000)
    b, c, target = (cell.cell_contents for cell in _cells(call, "b", "c", "target"))
    call()
    assert np.array_equal(target, b + np.float32(1.5) * c)
    assert b.std() > 0.2


def _cells(call: Call, *names: str) -> list[object]:
    code, closure = call.__code__, call.__closure__  # type: ignore[attr-defined]
    return [closure[code.co_freevars.index(name)] for name in names]


def test_repeats_last_as_long_as_asked_within_their_bounds() -> None:
    class Fixed(NumpyBench):
        def times(self, call: Callable[[], object], count: int) -> list[float]:
            return [0.1] * count

    bench = Fixed("here", None, 0)
    assert len(measure(bench, lambda: None, 0.0)) == FEWEST_ITERATIONS
    assert len(measure(bench, lambda: None, 0.95)) == 10
    assert len(measure(bench, lambda: None, 1e6)) == MOST_ITERATIONS
    assert rates(1.0, [0.1, 0.2, 0.5]) == {"best": 10.0, "median": 5.0, "p10": pytest.approx(2.6)}
    assert gemv_rows(2**20, 4) == (64, 4096)


def _job(kind: str, *dtypes: str) -> tuple[Job, DeviceMicrobench]:
    parameters = DeviceMicrobench(dtypes=dtypes)  # type: ignore[arg-type]
    return Job("device_microbench", parameters, DeviceFacts("d", kind, ()), Path()), parameters


@needs_torch
def test_fp32_on_a_processor_is_numpys_and_other_formats_are_torchs() -> None:
    assert bench_of(*_job("cpu", "fp32")).name == "numpy"
    assert bench_of(*_job("cpu", "bf16")).name == "torch"
    with pytest.raises(Refused, match="sees no CUDA device 0"):
        bench_of(*_job("cuda", "bf16"))


@needs_torch
@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_torch_multiplies_in_each_format_of_a_processor(dtype: str) -> None:
    bench = TorchBench("here", None, 0, 0, True, 1)
    assert bench.refusal(dtype) is None
    product = bench.product(dtype, 8, 16, 32)()
    assert tuple(product.shape) == (8, 16)  # type: ignore[attr-defined]
    assert len(bench.times(bench.product(dtype, 8, 8, 8), 3)) == 3
    assert bench.queued(bench.product(dtype, 8, 8, 8), 3) > 0
    assert "fp8" in str(bench.refusal("fp8"))
