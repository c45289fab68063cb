"""One prediction: a model, a device and a request to seconds, bytes and sentences, in `textbook` or `default` mode.

The arithmetic stands in `work`, `rates`, `roofline` and `phases`; here a request is checked, priced and told. Grids of requests go
through the same functions (`grid`).
"""

from collections.abc import Mapping

from app.domain.architecture import ModelArchitecture
from app.domain.assumptions import sentences
from app.domain.constants import default
from app.domain.engine import EngineProfile
from app.domain.grid import Grid, Refusal, predict_grid
from app.domain.hardware import HardwareProfile
from app.domain.memory import Footprint
from app.domain.phases import Handover, PricedRequest, Question, attention_flops_textbook, decode_step_s, last_step, total_s
from app.domain.pools import price
from app.domain.prediction import Binding, Pool, Pools, Prediction, Request, ServedLimits, Term
from app.domain.request_rules import check
from app.domain.under_load import Bound, bounds
from app.domain.weight_reads import weight_reads
from app.domain.work import Quantity, decode_steps

__all__ = ["MODEL_VERSION", "Grid", "Refusal", "attention_flops_textbook", "predict", "predict_grid", "total_s"]

MODEL_VERSION = "layers-9"


def predict(
    architecture: ModelArchitecture, hardware: HardwareProfile, request: Request, *, engine: EngineProfile | None = None
) -> Prediction:
    """Both phases of `request` on `hardware`. Raises InvalidRequest, with the field, for what cannot be priced.

    `engine` is the profile that request.engine names, None where it names none; `textbook` mode does not look at it.
    """
    load = check(request, architecture, hardware)
    question = Question.of(architecture, hardware, request, load, engine)
    priced = price(question)
    beside = _attention_beside(question) if question.textbook else None
    said = sentences(question, request, question.profile, priced, beside)
    return _prediction(request, question, priced, question.profile, beside, said)


def _prediction(
    request: Request, question: Question, priced: PricedRequest, engine: EngineProfile | None, beside: Term | None, said: tuple[str, ...]
) -> Prediction:
    prefill, decode = priced.prefill.cost(), priced.decode.cost()
    ttft = float(priced.front_end_s) + float(priced.queue_s) + prefill.time_s
    itl = decode.time_s / float(priced.accepted) + float(priced.interference_s)
    pools = None if priced.handover is None else _pools(question, priced, priced.handover, decode.time_s)
    if pools is not None:
        itl += pools.handover_s / float(decode_steps(priced.output_tokens))
    total = float(total_s(ttft, itl, priced.output_tokens))
    together = priced.together
    return Prediction(
        request=request,
        prefill=prefill,
        decode=decode,
        first_step_s=float(decode_step_s(question, together, 1.0) * priced.step_factor),
        last_step_s=float(decode_step_s(question, together, last_step(request.output_tokens)) * priced.step_factor),
        front_end_s=float(priced.front_end_s),
        queue_s=float(priced.queue_s),
        interference_s=float(priced.interference_s),
        ttft_s=ttft,
        itl_s=itl,
        total_s=total,
        prefill_share=prefill.time_s / total,
        ridge_peak=float(question.rates.ridge_peak),
        ridge_achieved=float(question.rates.ridge_achieved),
        request_tokens_per_s=1.0 / itl,
        aggregate_tokens_per_s=float(priced.running) / itl,
        memory=priced.footprint.memory(),
        ttft_range_s=_range(ttft, prefill.floor_s, engine.ttft_range if engine else None, default("unknown_engine_ttft_factor")),
        itl_range_s=_range(itl, decode.floor_s, engine.itl_range if engine else None, default("unknown_engine_itl_factor")),
        assumptions=said,
        model_version=MODEL_VERSION,
        attention_beside=beside,
        served=_served(question, priced),
        weights=weight_reads(question, together),
        pools=pools,
    )


def _pools(question: Question, priced: PricedRequest, way: Handover, step_s: float) -> Pools:
    """The pools of a disaggregated deployment as plain numbers."""
    load, at_most = question.load, way.at_most_per_s
    ahead = load.in_prefill()
    pace = None if way.requests_per_s is None else float(way.requests_per_s)
    keep_up = {} if at_most is None else {name: float(value) for name, value in at_most.items()}

    def pool(name: str, replicas: Quantity, each: Quantity, space: Footprint) -> Pool:
        rate = keep_up.get(name)
        busy = None if rate is None or pace is None else min(pace / rate, 1.0)
        return Pool(int(replicas), int(replicas * each * load.pp), space.memory(), rate, busy)

    return Pools(
        prefill=pool("prefill", load.prefill_replicas or 1.0, ahead.tp * ahead.dp, way.prefill_footprint),
        decode=pool("decode", load.decode_replicas, load.tp * load.dp, priced.footprint),
        transfer_bytes=float(way.transfer_bytes),
        transfer_bytes_per_s=float(way.transfer_bytes_per_s),
        transfer_s=float(way.transfer_s),
        admission_s=float(way.admission_s),
        first_gap_s=float(way.seconds) + step_s,
        requests_per_s=pace,
        transfer_requests_per_s=keep_up.get("transfer"),
        binds=None if pace is None else _binding(keep_up, pace, float(way.left)),
        balanced_ratio=None if way.balanced_ratio is None else float(way.balanced_ratio),
    )


def _binding(keep_up: Mapping[str, float], pace: float, left: float) -> Binding:
    """The station that sets the pace, where clients are left over; else they do themselves."""
    if left <= 1e-6:
        return "clients"
    stations: tuple[Binding, ...] = ("prefill", "transfer", "decode")
    return min(stations, key=lambda name: keep_up[name])


def _served(question: Question, priced: PricedRequest) -> ServedLimits | None:
    """What bounds a closed loop; None for another load, and in textbook arithmetic, which schedules nothing."""
    load, space = question.load, priced.footprint
    if load.concurrency is None or question.textbook:
        return None
    replicas = 1.0 if priced.handover is None else float(load.decode_replicas)
    pool = None if space.served_sequences is None else replicas * float(space.served_sequences)
    found = bounds(load, question.schedule, pool)
    if priced.handover is not None:  # a decode pool carries no prompts
        found = tuple(Bound(bound.name, replicas * bound.clients) if bound.name == "running cap" else bound for bound in found)
        found = tuple(bound for bound in found if bound.name != "tokens of a pass")
    return ServedLimits(int(load.concurrency), float(priced.running), tuple((bound.name, bound.clients) for bound in found))


def _range(value: float, floor: float, factors: tuple[float, float] | None, unknown: float) -> tuple[float, float]:
    """The band around a prediction: the engine class's own factors, else a factor for the unknown; never below the floor."""
    low, high = factors if factors is not None else (1.0 / unknown, unknown)
    return max(value * low, floor), value * high


def _attention_beside(question: Question) -> Term:
    """Prefill attention at the achieved rate: the line textbook mode shows beside its figures and never adds to them."""
    load = question.load
    flops = float(attention_flops_textbook(question.architecture, load.prompt_tokens, load.cached_prefix_tokens, load.batch, load.tp))
    return Term("causal_attention", "attention", flops, 0.0, flops / float(question.rates.achieved_flops_per_s), "compute")
