"""`inprocess_sweep`: prefill and decode of a model of random weights, pass by pass, in this process on the device itself.

A device without a profile is looked at first, so that there is a roof to stand under. Each point (a prompt length and a batch) runs once to
warm up, which is kept apart, then `repeats` times on prompts that never repeat. A point that does not fit is `oom` and larger batches are
skipped; what memory ran out in is left behind by starting this process again.
"""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np

from app.domain.architecture import ModelArchitecture
from app.domain.built_model import ModelShape, shape_of
from app.domain.device_profile import profile_of
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Request
from app.formats.phaseline_device import device_rates
from app.formats.phaseline_document import Passes, Point, Status, document, write_document
from app.formats.record import Record
from app.jobs.inprocess_sweep import InprocessSweep
from app.worker.measure.bench_numpy import last_level_cache
from app.worker.measure.device_microbench import first_look
from app.worker.measure.floors import RUNTIME_BYTES, Floors, floors, needed_bytes, request_of, shortage
from app.worker.measure.job import Job, Refused, StartAgain
from app.worker.measure.model import Model, Tokens
from app.worker.measure.numpy_model import NumpyModel, random_weights
from app.worker.measure.reporter import Reporter
from app.worker.measure.room import Memory, Room, gpu_memory, system_memory, watched
from app.worker.measure.torch_model import TorchModel, random_tensors
from app.worker.measure.torch_seam import as_lost, has_torch, is_out_of_memory, torch_device, torch_module

METHOD = "inprocess 1"
EXACT_COUNT = "exact"
# numpy is for a first look on any machine: beyond this a step takes too long to be one.
MOST_NUMPY_PARAMETERS = 160_000_000


@dataclass(frozen=True)
class Place:
    """One point of the sweep."""

    prompt_tokens: int
    batch: int

    @property
    def label(self) -> str:
        """Its name in the document and in progress lines."""
        return f"prompt {self.prompt_tokens}, batch {self.batch}"


@dataclass(frozen=True)
class Plan:
    """What is swept, and by which library."""

    job: Job
    parameters: InprocessSweep
    model: ModelArchitecture
    shape: ModelShape
    backend: str


@dataclass
class Timed:
    """Repeats of one point as they come in, and how the point ended."""

    prefill_s: list[float] = field(default_factory=list)
    steps_s: list[list[float]] = field(default_factory=list)
    first: Passes | None = None
    status: Status = "ok"
    reason: str | None = None

    def passes(self) -> Passes | None:
        """What is whole."""
        return Passes(self.prefill_s, self.steps_s, self.first) if self.prefill_s else None


def run(job: Job, reporter: Reporter) -> None:
    """Measure every point and write the document after each.

    Raises Refused, InvalidRequest for a model that is not built, DeviceLost, or StartAgain after memory ran out.
    """
    parameters, model = job.parameters, job.model
    if not isinstance(parameters, InprocessSweep) or model is None:
        raise Refused("An inprocess_sweep needs its parameters and a model.")
    shape = shape_of(model, max(parameters.prompt_tokens) + parameters.output_tokens)
    backend = backend_of(job, parameters, shape)
    before = _points_before(job) if job.resumes else []
    if job.hardware is None:
        before = before or _ceilings(job, parameters, reporter)
        job = replace(job, hardware=_profile_in(before, job))
    _Sweep(Plan(job, parameters, model, shape, backend), reporter, before).run()


def _ceilings(job: Job, parameters: InprocessSweep, reporter: Reporter) -> list[dict[str, Any]]:
    """A point for the device itself, where nobody knows yet what it allows; none where that cannot be measured."""
    point = first_look(job, parameters.dtype, parameters.threads, reporter)
    return [] if point is None else document(job.kind, METHOD, {}, [point])["runs"]


def _profile_in(points: list[dict[str, Any]], job: Job) -> HardwareProfile | None:
    """The profile that the device's own point gives, None without one."""
    found = next((point for point in points if "device" in point), None)
    if found is None:
        return None
    return profile_of(device_rates(Record(found["device"])), "measured", job.device.name, "", "measured before the sweep")


def backend_of(job: Job, parameters: InprocessSweep, shape: ModelShape) -> str:
    """numpy or torch. Raises Refused for what the chosen one does not do."""
    wanted = parameters.backend if parameters.backend != "auto" else "torch" if has_torch() else "numpy"
    if wanted == "torch":
        torch_module()
        return wanted
    if not job.device.is_cpu:
        raise Refused(f"numpy runs on the processor and {job.device.name} is none: install torch on this worker.")
    if parameters.dtype != "fp32":
        raise Refused(f"numpy measures in fp32 and not in {parameters.dtype}: choose fp32, or install torch on this worker.")
    if shape.parameters > MOST_NUMPY_PARAMETERS:
        most = MOST_NUMPY_PARAMETERS // 10**6
        raise Refused(f"numpy measures models up to {most} M parameters and this one has {shape.parameters / 1e6:,.0f} M: install torch.")
    return wanted


def build(job: Job, parameters: InprocessSweep, shape: ModelShape, backend: str) -> Model:
    """The model with random weights on the job's device."""
    if backend == "numpy":
        return NumpyModel(shape, random_weights(shape, parameters.seed))
    torch = torch_module()
    if job.device.is_cpu:
        torch.set_num_threads(parameters.threads)
    torch.set_float32_matmul_precision("highest")
    weights = random_tensors(shape, torch_device(job.index, job.device.is_cpu), parameters.dtype, parameters.seed)
    return TorchModel(shape, weights, parameters.attention, parameters.cuda_graphs)


def memory_of(job: Job, backend: str) -> Memory:
    """The memory that the model will stand in."""
    if backend == "numpy" or job.device.is_cpu:
        return system_memory()
    return gpu_memory(torch_module(), torch_device(job.index, False))


class _Sweep:
    """One sweep under way: the model once it is built, and the points that are done as they stand in the document."""

    def __init__(self, plan: Plan, reporter: Reporter, before: list[dict[str, Any]]) -> None:
        self._job, self._parameters, self._architecture = plan.job, plan.parameters, plan.model
        self._shape, self._backend, self._reporter, self._done = plan.shape, plan.backend, reporter, before
        self._begun = datetime.now(UTC).isoformat(timespec="seconds")
        self._random = np.random.default_rng([plan.parameters.seed, len(before)])
        self._model: Model | None = None
        self._memory = memory_of(plan.job, plan.backend)
        self._full: dict[int, int] = {point["prompt_tokens"]: point["concurrency"] for point in before if point.get("status") == "oom"}
        self._skipped = sum("device" not in point for point in before)

    def run(self) -> None:
        """Every point that is not done yet."""
        places = [Place(prompt, batch) for prompt in self._parameters.prompt_tokens for batch in sorted(set(self._parameters.batches))]
        left = places[self._skipped :]
        self._reporter.begin(len(left))
        for place in left:
            self._reporter.step(place.label)
            started = time.monotonic()
            timed = self._measure(place)
            self._keep(place, timed, started)
            if timed.status == "oom" and place is not left[-1]:
                raise StartAgain(f"{place.label} ran out of memory: the next point starts in a fresh process.")

    def _measure(self, place: Place) -> Timed:
        full = self._full.get(place.prompt_tokens)
        if full is not None and place.batch >= full:
            return Timed(status="oom", reason=f"batch {full} did not fit before it")
        timed = Timed()
        try:
            self._fill(place, timed)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                if isinstance(error, RuntimeError) and (lost := as_lost(error)) is not None:
                    raise lost from error
                raise
            timed.status, timed.reason = "oom", str(error).splitlines()[0] if str(error) else "memory ran out"
        return timed

    def _fill(self, place: Place, timed: Timed) -> None:
        """Build the model if it is not there, then warm up and repeat. Raises MemoryError before trying what cannot fit."""
        request = self._request(place)
        needed = needed_bytes(self._architecture, request, self._scores_bytes(place), self._model is not None)
        if (why := shortage(needed, self._memory.free())) is not None:
            raise MemoryError(why)
        whole = needed_bytes(self._architecture, request, self._scores_bytes(place), False) - RUNTIME_BYTES
        with watched(self._memory, whole) as room:
            self._repeats(place, timed, room)

    def _repeats(self, place: Place, timed: Timed, room: Room) -> None:
        """The repeats of a point. Raises MemoryError once there is no room left."""
        if self._model is None:
            self._model = build(self._job, self._parameters, self._shape, self._backend)
        deadline = time.monotonic() + self._parameters.point_limit_s

        def goes_on() -> bool:
            room.require()
            return time.monotonic() < deadline

        for repeat in range(self._parameters.repeats + 1):
            once = _repeat(self._model, place, self._parameters.output_tokens, self._prompt(place), goes_on)
            if once is None:
                timed.status, timed.reason = "timeout", f"{repeat} of {self._parameters.repeats + 1} repeats were done within the limit"
                return
            if repeat == 0:
                timed.first = once
            else:
                timed.prefill_s.append(once.prefill_s[0])
                timed.steps_s.append(list(once.steps_s[0]))

    def _scores_bytes(self, place: Place) -> float:
        """Attention scores that stand in memory at once: of one KV head's group in numpy, of all heads in plain torch attention."""
        layer = self._shape.layers[0]
        one_head = 4.0 * place.batch * place.prompt_tokens**2
        if self._backend == "numpy":
            return one_head * layer.heads / layer.kv_heads
        return one_head * layer.heads if self._parameters.attention == "eager" else 0.0

    def _request(self, place: Place) -> Request:
        return request_of(place.prompt_tokens, self._parameters.output_tokens, place.batch, self._parameters.dtype)

    def _prompt(self, place: Place) -> Tokens:
        return self._random.integers(0, self._shape.vocab, (place.batch, place.prompt_tokens))

    def _keep(self, place: Place, timed: Timed, started: float) -> None:
        """Add the point to the document and tell its figures."""
        expected = floors(self._architecture, self._job.hardware, self._request(place))
        point = self._point(place, timed, expected, started)
        made = document(self._job.kind, METHOD, self._parameters.model_dump(), [point], self._begun)
        self._done += made["runs"]
        write_document(self._job.result, {**made, "runs": self._done})
        self._reporter.finished(_told(place, timed, expected))
        if timed.reason is not None:
            self._reporter.log(f"{place.label}: {timed.status}: {timed.reason}.", "warning")
        self._reporter.result(self._job.result)

    def _point(self, place: Place, timed: Timed, expected: Floors | None, started: float) -> Point:
        parameters, now = self._parameters, time.monotonic()
        on_cpu = self._job.device.is_cpu
        failed = timed.status != "ok"
        labels = {"weights": "random", "output_length": "forced"}
        if self._backend == "torch":
            labels |= {"attention": parameters.attention, "cuda_graphs": str(parameters.cuda_graphs and not on_cpu).lower()}
        point = Point(
            status=timed.status,
            reason=timed.reason,
            label=f"{self._architecture.name}, {place.label}",
            engine=f"phaseline-{self._backend}",
            engine_version=None if self._model is None else self._model.version,
            model=parameters.model,
            hardware=self._job.device.hardware or self._job.device.name,
            devices=1,
            threads=parameters.threads if on_cpu else None,
            tp=1,
            weight_dtype=parameters.dtype,
            kv_dtype=parameters.dtype,
            load_mode="single" if place.batch == 1 else "static_batch",
            measured_at="in_process",
            token_count_source=EXACT_COUNT,
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            window_s=(started, now),
            prompt_tokens=place.prompt_tokens,
            output_tokens=parameters.output_tokens,
            concurrency=place.batch,
            labels=labels,
            warnings=_said(self._shape, self._parameters, on_cpu),
            details=self._details(place, timed, expected),
        )
        return point if failed else replace(point, passes=timed.passes())

    def _details(self, place: Place, timed: Timed, expected: Floors | None) -> dict[str, Any]:
        element = _element(self._parameters)
        positions = place.prompt_tokens + self._parameters.output_tokens
        return {
            "parameters": self._shape.parameters,
            "left_out_parameters": self._shape.left_out,
            "weight_bytes": element * self._shape.parameters,
            "kv_bytes": element * self._shape.kv_elements(place.batch, positions),
            "peak_memory_bytes": None if self._model is None else self._model.peak_bytes(),
            "expected": None if expected is None else {**asdict(expected), **expected.shares(*_medians(timed))},
        }


def _repeat(model: Model, place: Place, output_tokens: int, prompt: Tokens, in_time: Callable[[], bool]) -> Passes | None:
    """Seconds of one prompt pass and of each step after it; None when the limit was over before the end."""
    model.begin(place.batch, place.prompt_tokens + output_tokens)
    started = time.perf_counter_ns()
    model.prefill(prompt)
    stamps = [started, time.perf_counter_ns()]
    for _ in range(output_tokens - 1):
        if not in_time():
            return None
        model.step()
        stamps.append(time.perf_counter_ns())
    gaps = [(after - before) / 1e9 for before, after in pairwise(stamps)]
    return Passes([gaps[0]], [gaps[1:]])


def _element(parameters: InprocessSweep) -> int:
    """Bytes of a weight."""
    return 4 if parameters.dtype == "fp32" else 2


def _medians(timed: Timed) -> tuple[float | None, float | None]:
    steps = [step for steps in timed.steps_s for step in steps]
    return (float(np.median(timed.prefill_s)) if timed.prefill_s else None), (float(np.median(steps)) if steps else None)


def _told(place: Place, timed: Timed, expected: Floors | None) -> dict[str, Any]:
    """The point for a live table: medians in seconds, and how close they come to what the device allows."""
    prefill_s, step_s = _medians(timed)
    bounds: dict[str, Any] = {}
    if expected is not None:
        bounds = {"prefill_bound": expected.prefill_bound, "decode_bound": expected.decode_bound, **expected.shares(prefill_s, step_s)}
    return {
        "label": place.label,
        "status": timed.status,
        "prompt_tokens": place.prompt_tokens,
        "batch": place.batch,
        "ttft_s": prefill_s,
        "itl_s": step_s,
        "prefill_tokens_per_s": place.batch * place.prompt_tokens / prefill_s if prefill_s else None,
        "tokens_per_s": place.batch / step_s if step_s else None,
        **bounds,
    }


def _said(shape: ModelShape, parameters: InprocessSweep, on_cpu: bool) -> tuple[str, ...]:
    """What a reader of the figures should know."""
    said = ["Weights are random and the output length is forced: no text was made, and nothing stopped early."]
    if shape.left_out:
        said.append(f"{shape.left_out:,} parameters (biases, norms of queries and keys) are left out: they move next to nothing.")
    cache, weights = last_level_cache() if on_cpu else None, _element(parameters) * shape.parameters
    if cache is not None and weights < cache:
        said.append("The weights fit in the processor's last cache: decode may be faster than a read from memory allows.")
    if parameters.cuda_graphs and not on_cpu:
        said.append("Decode steps are recorded as CUDA graphs, whose attention reads the whole cache of prompt and output.")
    return tuple(said)


def _points_before(job: Job) -> list[dict[str, Any]]:
    """Points that this job finished in the process before; none when there is no document."""
    try:
        found = json.loads(job.result.read_bytes())["runs"]
    except (OSError, ValueError, KeyError):
        return []
    return list(found)
