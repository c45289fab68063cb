"""`device_microbench`: what a device really achieves. Squares and a model's own layers as products; reads, copies, triads and
matrix-vector products over buffers that no cache holds; the launch of a small product."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, get_args

from app.domain.architecture import ModelArchitecture
from app.domain.device_rates import SQUARE, MoveKind
from app.formats.phaseline_document import Point, document, write_document
from app.jobs.device_microbench import DeviceMicrobench
from app.worker.measure.bench import Bench, buffer_bytes, launch_s, measure, rates
from app.worker.measure.bench_numpy import NumpyBench
from app.worker.measure.bench_torch import TorchBench
from app.worker.measure.job import Job, Refused
from app.worker.measure.layer_shapes import layer_products
from app.worker.measure.reporter import Reporter
from app.worker.measure.torch_seam import as_lost, has_torch, is_out_of_memory

METHOD = "device 1"
_SMALLEST_SQUARE = 256
_LOOK_ON_CPU, _LOOK_ON_GPU, _LOOK_SECONDS = 1024, 8192, 0.2
_MOVES: tuple[MoveKind, ...] = get_args(MoveKind)


@dataclass(frozen=True)
class Shape:
    """One product to measure."""

    what: str
    dtype: str
    m: int
    n: int
    k: int

    @property
    def words(self) -> str:
        """For the progress line."""
        return f"{self.what} {self.m} x {self.n} x {self.k}, {self.dtype}"


@dataclass
class Findings:
    """What was measured so far, as it goes into the document."""

    products: list[dict[str, Any]] = field(default_factory=list)
    moves: list[dict[str, Any]] = field(default_factory=list)
    launches: dict[str, float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


def run(job: Job, reporter: Reporter) -> None:
    """Measure and write the document after each shape. Raises Refused when no number format of the job is the device's."""
    parameters = job.parameters
    if not isinstance(parameters, DeviceMicrobench):
        raise Refused("The parameters are none of a device_microbench.")
    bench = bench_of(job, parameters)
    found, started = Findings(), time.monotonic()
    begun = datetime.now(UTC).isoformat(timespec="seconds")
    dtypes = _known_dtypes(bench, parameters, found, reporter)
    shapes = [shape for dtype in dtypes for shape in shapes_of(parameters, job.model, dtype)]
    reporter.begin(len(shapes) + len(_MOVES) + len(dtypes))
    # Moves come first: without a bandwidth the products tell half of a roofline.
    for step in _steps(bench, parameters, dtypes, shapes, found, reporter):
        reporter.finished(step)
        point = _point(job, parameters, bench, found, started)
        write_document(job.result, document(job.kind, METHOD, parameters.model_dump(), [point], begun))
        reporter.result(job.result)


def first_look(job: Job, dtype: str, threads: int, reporter: Reporter) -> Point | None:
    """The ceilings of a device without a profile, in a few seconds, as a point; None where it has no product in this format."""
    largest = _LOOK_ON_CPU if job.device.is_cpu else _LOOK_ON_GPU
    chosen = {"dtypes": (dtype,), "largest": largest, "seconds_per_shape": _LOOK_SECONDS, "threads": threads}
    parameters = DeviceMicrobench.model_validate(chosen)
    bench, found, started = bench_of(job, parameters), Findings(), time.monotonic()
    if bench.refusal(dtype) is not None:
        return None
    reporter.log(f"{job.device.name} has no profile here: its ceilings are measured first.")
    shapes = shapes_of(parameters, None, dtype)
    reporter.begin(len(shapes) + len(_MOVES) + 1)
    for step in _steps(bench, parameters, [dtype], shapes, found, reporter):
        reporter.finished(step)
    return _point(job, parameters, bench, found, started)


def bench_of(job: Job, parameters: DeviceMicrobench) -> Bench:
    """torch where it is installed and the device is no processor, or other formats than fp32 are asked for; else numpy."""
    device = job.device
    plain = device.is_cpu and parameters.dtypes == ("fp32",)
    if plain or not has_torch():
        if not device.is_cpu:
            raise Refused(f"{device.name} can only be measured where torch is installed: it is not.")
        return NumpyBench(device.name, device.memory_bytes, parameters.seed)
    return TorchBench(device.name, device.memory_bytes, parameters.seed, job.index, device.is_cpu, parameters.threads)


def shapes_of(parameters: DeviceMicrobench, model: ModelArchitecture | None, dtype: str) -> list[Shape]:
    """Squares by powers of two up to the largest, then the layers of the model at each row count."""
    sides, side = [], _SMALLEST_SQUARE
    while side < parameters.largest:
        sides.append(side)
        side *= 2
    squares = [Shape(SQUARE, dtype, side, side, side) for side in (*sides, parameters.largest)]
    layers = layer_products(model) if model is not None else ()
    return squares + [Shape(name, dtype, rows, n, k) for name, n, k in layers for rows in parameters.rows]


def _known_dtypes(bench: Bench, parameters: DeviceMicrobench, found: Findings, reporter: Reporter) -> list[str]:
    dtypes: list[str] = []
    for dtype in dict.fromkeys(parameters.dtypes):
        if (refusal := bench.refusal(dtype)) is None:
            dtypes.append(dtype)
            continue
        found.warnings.append(refusal)
        reporter.log(refusal, "warning")
    if not dtypes:
        raise Refused(" ".join(found.warnings))
    return dtypes


def _steps(
    bench: Bench, parameters: DeviceMicrobench, dtypes: list[str], shapes: list[Shape], found: Findings, reporter: Reporter
) -> Iterator[dict[str, Any]]:
    """Each measurement in turn, as the flat figures of a live point."""
    wide, size = dtypes[0] if dtypes[0] != "fp8" else "bf16", buffer_bytes(bench)
    for what in _MOVES:
        reporter.step(f"{what}, {size / 1e6:.0f} MB")
        yield _guarded(partial(_move, bench, parameters, what, wide, size, found), what, found)
    for dtype in dtypes:
        reporter.step(f"launch of a small product, {dtype}")
        yield _guarded(partial(_launch, bench, dtype, found), f"launch, {dtype}", found)
    for shape in shapes:
        reporter.step(shape.words)
        yield _guarded(partial(_product, bench, parameters, shape, found), shape.words, found)


def _guarded(measured: Callable[[], dict[str, Any]], words: str, found: Findings) -> dict[str, Any]:
    """A measurement, or the point that says that it did not fit. Raises DeviceLost for a device that is gone."""
    try:
        figures = measured()
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            found.warnings.append(f"{words} did not fit in memory and is left out.")
            return {"label": words, "status": "oom"}
        if isinstance(error, RuntimeError) and (lost := as_lost(error)) is not None:
            raise lost from error
        raise
    return {"label": words, "status": "ok", **figures}


def _move(bench: Bench, parameters: DeviceMicrobench, what: MoveKind, dtype: str, size: int, found: Findings) -> dict[str, Any]:
    call, moved = bench.move(what, dtype, size)
    seconds = measure(bench, call, parameters.seconds_per_shape)
    rate = rates(moved, seconds)
    found.moves.append({"what": what, "dtype": dtype, "bytes": size, "bytes_per_s": rate, "repeats": len(seconds)})
    return {"phase": "memory", "bytes_per_s": rate["median"]}


def _launch(bench: Bench, dtype: str, found: Findings) -> dict[str, Any]:
    found.launches[dtype] = launch_s(bench, dtype)
    return {"phase": "launch", "launch_s": found.launches[dtype]}


def _product(bench: Bench, parameters: DeviceMicrobench, shape: Shape, found: Findings) -> dict[str, Any]:
    seconds = measure(bench, bench.product(shape.dtype, shape.m, shape.n, shape.k), parameters.seconds_per_shape)
    rate = rates(2.0 * shape.m * shape.n * shape.k, seconds)
    sizes = {"what": shape.what, "dtype": shape.dtype, "m": shape.m, "n": shape.n, "k": shape.k}
    found.products.append({**sizes, "flops_per_s": rate, "repeats": len(seconds)})
    return {"phase": "compute", "flops_per_s": rate["median"]}


def _point(job: Job, parameters: DeviceMicrobench, bench: Bench, found: Findings, started: float) -> Point:
    threads = parameters.threads if job.device.is_cpu else None
    device = {
        "name": bench.device_name,
        "kind": job.device.kind,
        "threads": threads,
        "memory_bytes": bench.memory_bytes,
        "backend": bench.name,
        "products": list(found.products),
        "moves": list(found.moves),
        "launch_s": dict(found.launches),
    }
    now = time.monotonic()
    return Point(
        label=bench.device_name,
        engine=f"phaseline-{bench.name}",
        engine_version=bench.version,
        hardware=job.device.hardware or bench.device_name,
        devices=1,
        threads=threads,
        measured_at="in_process",
        duration_s=now - started,
        window_s=(started, now),
        device=device,
        warnings=tuple(found.warnings),
    )
