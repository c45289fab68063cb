"""A measured run beside its prediction: what the model expects there, and how far the run is from the physical limit."""

from dataclasses import dataclass, replace

from app.domain.architecture import ModelArchitecture
from app.domain.checks.physics import physics_flags
from app.domain.comparison import decode_time_s
from app.domain.dtypes import number_format
from app.domain.engine import EngineProfile
from app.domain.errors import PhaselineError
from app.domain.hardware import HardwareProfile
from app.domain.observed import observed
from app.domain.point import Place, Point, price_point
from app.domain.prediction import Prediction, Request
from app.domain.run import Flag, Run

_QUANTISED_MARKS = ("fp8", "fp4", "int8", "int4", "awq", "gptq", "gguf", "w4a16", "w8a8", "nvfp4", "mxfp4", "bnb", "4bit", "8bit")

# Tools whose decode test starts at the stated depth and not after the prompt of the other test.
PHASES_APART = frozenset({"llama_bench"})


@dataclass(frozen=True)
class Assessment:
    """What is known about a run's distance to the limit; every None has its reason in `reasons`. `point` is what it was priced by.

    `mbu` is the share of the specified bandwidth that the measured decode step used, `mfu` the share of the specified peak that the
    prompt pass used (a lower bound when only TTFT is known: `mfu_from_ttft`).
    """

    prediction: Prediction | None = None
    point: Point | None = None
    decode_floor_s: float | None = None
    prefill_floor_s: float | None = None
    mbu: float | None = None
    mfu: float | None = None
    mfu_from_ttft: bool = False
    measured_prefill_s: float | None = None
    measured_decode_s: float | None = None
    flags: tuple[Flag, ...] = ()
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def assess(
    run: Run, architecture: ModelArchitecture | None, hardware: HardwareProfile | None, engine: EngineProfile | None = None
) -> Assessment:
    """Price the run's own workload on its model and device and set the measured phases against it. Never raises for a priced model."""
    if run.labels.get("kind") == "device_microbench":
        return Assessment(reasons=("No model was run: this measures the device alone.",))
    reasons = _missing(run, architecture, hardware)
    if reasons or architecture is None or hardware is None:
        return Assessment(reasons=tuple(reasons))
    try:
        dtype, notes = weight_dtype_of(run, architecture)
        point = point_of(run, architecture, hardware, engine, request_of(run, architecture, engine, dtype))
        prediction = price_point(point)
    except PhaselineError as error:
        return Assessment(reasons=(f"No prediction: {error}",))
    return replace(_measure(run, hardware, prediction, notes), point=point)


def _missing(run: Run, architecture: ModelArchitecture | None, hardware: HardwareProfile | None) -> list[str]:
    reasons = []
    if architecture is None:
        what = f"the model “{run.model}” has no entry here" if run.model else "the file does not name the model"
        reasons.append(f"No prediction: {what}; choose one under Edit.")
    if hardware is None:
        what = f"the hardware “{run.hardware}” has no entry here" if run.hardware else "the file does not name the hardware"
        reasons.append(f"No prediction: {what}; choose one under Edit.")
    if run.requests.completed == 0:
        reasons.append("No prediction: no request was completed.")
    if run.workload.prompt_tokens_mean is None and run.workload.output_tokens_mean is None:
        reasons.append("No prediction: the file does not say how long prompts and outputs were.")
    return reasons


def weight_dtype_of(run: Run, architecture: ModelArchitecture) -> tuple[str, list[str]]:
    """The run's weight format; the model's own when the file says nothing and its name carries no sign of another."""
    if run.weight_dtype:
        return number_format(run.weight_dtype).key, []
    name = (run.model or "").lower()
    if any(mark in name for mark in _QUANTISED_MARKS):
        raise PhaselineError(f"“{run.model}” looks quantised and the file does not say how; set the weight format under Edit.")
    note = f"Weights taken as {architecture.native_dtype}, the model's own format, since the file does not say."
    return architecture.native_dtype, [note]


def _running(run: Run) -> int:
    """Sequences in one decode pass: out rate x ITL (Little's law) where both are known, at most the number of clients."""
    clients = run.workload.concurrency
    rate, step = run.rate("output_tokens_per_s"), decode_time_s(run)
    if clients == 1 or run.load_mode in ("single", "static_batch") or rate is None or step is None:
        return clients or 1
    in_flight = max(1, round(rate.value * step))
    return min(in_flight, clients) if clients else in_flight


def _rounds(run: Run, running: int) -> int:
    """Requests that each client sent: the burst at a run's start weighs the less in its mean TTFT, the more there were."""
    clients, sent = run.workload.concurrency or running, run.requests.completed
    return max(1, round(sent / clients)) if sent else Request.requests_per_client


def request_of(run: Run, architecture: ModelArchitecture, engine: EngineProfile | None, dtype: str) -> Request:
    """The request that a run measured: one alone, a static batch in one pass, or a server's clients, or an open loop."""
    workload, running = run.workload, _running(run)
    tp, ep, dp = _spread(run, architecture)
    together = run.load_mode == "static_batch"
    asked = Request(
        batch=running if together else 1,
        concurrency=running if running > 1 and not together else None,
        requests_per_client=_rounds(run, running),
        tp=tp,
        pp=run.pp or 1,
        ep=ep,
        dp=dp,
        weight_dtype=dtype,
        kv_dtype=number_format(run.kv_dtype, "kv_dtype").key if run.kv_dtype else "bf16",
        engine=engine.slug if engine else None,
        calibration=_mode(architecture),
        shortest_length=1.0 if workload.shortest_length is None else workload.shortest_length,
        open_loop=run.load_mode == "open" and running > 1,
    )
    return asked.with_mean_lengths(workload.prompt_tokens_mean or 1, workload.output_tokens_mean or 1)


def price_like(
    run: Run, architecture: ModelArchitecture, hardware: HardwareProfile, request: Request, engine: EngineProfile | None
) -> Prediction:
    """`request` priced the way that the run's tool measured: phases in two tests, in the process, or by clients of a server."""
    return price_point(point_of(run, architecture, hardware, engine, request))


def point_of(run: Run, architecture: ModelArchitecture, hardware: HardwareProfile, engine: EngineProfile | None, request: Request) -> Point:
    """`request` as the run's tool would have measured it."""
    place: Place = "apart" if run.format in PHASES_APART else "in_process" if run.measured_at == "in_process" else "served"
    return Point(
        architecture=architecture,
        hardware=hardware,
        engine=engine,
        request=request,
        steps=max((run.workload.output_tokens_mean or 1.0) - 1.0, 0.0),
        place=place,
        depth=run.workload.context_depth_tokens if place == "apart" else 0,
    )


def _spread(run: Run, architecture: ModelArchitecture) -> tuple[int, int, int]:
    """Devices of an attention rank, ranks with experts of their own, and attention ranks that share the sequences.

    Ranks share sequences where experts are spread over them; elsewhere `dp` counts copies of the model. A tool whose tp counts all
    devices of a stage (SGLang with attention data parallelism) has tp of them in dp ranks.
    """
    tp, ep, dp = run.tp or 1, run.ep or 1, run.dp or 1
    if not architecture.expert_layers or ep == 1:
        return tp, 1, 1
    stage = run.devices // (run.pp or 1) if run.devices else None
    if stage == tp and tp % dp == 0:
        tp //= dp
    return tp, ep, dp


def _mode(architecture: ModelArchitecture) -> str:
    """A model that a text states by a round figure is priced the way that text does; its shapes are only nominal."""
    return "textbook" if architecture.declared_parameters is not None else "default"


def _measure(run: Run, hardware: HardwareProfile, prediction: Prediction, notes: list[str]) -> Assessment:
    reasons: list[str] = []
    decode = decode_time_s(run)
    alone = run.workload.concurrency == 1 or run.load_mode == "single"
    prefill = observed(run, "prefill_s") or (observed(run, "ttft_s") if alone else None)
    measured_prefill = prefill.value_s if prefill else None
    from_ttft = prefill is not None and prefill.key == "ttft_s"
    if measured_prefill is None and run.workload.prompt_tokens_mean is not None:
        reasons.append("No share of the prefill peak: TTFT under load holds queueing, and the file has no prefill time of its own.")
    if decode is None:
        reasons.append("No share of the decode floor: the file has no time per output token.")
    mbu = prediction.decode.bytes / (decode * hardware.bandwidth_bytes_per_s) if decode else None
    peak = prediction.ridge_peak * hardware.bandwidth_bytes_per_s
    mfu = prediction.prefill.flops / (measured_prefill * peak) if measured_prefill else None
    flags = physics_flags(run, prediction, peak)
    withheld = run.withheld.union(*(flag.withholds for flag in flags))
    return Assessment(
        prediction=prediction,
        decode_floor_s=prediction.decode.floor_s,
        prefill_floor_s=prediction.prefill.floor_s,
        mbu=None if "mbu" in withheld else mbu,
        mfu=None if "mfu" in withheld else mfu,
        mfu_from_ttft=from_ttft,
        measured_prefill_s=measured_prefill,
        measured_decode_s=decode,
        flags=flags,
        reasons=tuple(reasons),
        notes=(*notes, *prediction.assumptions),
    )
