"""Passes of many rows as arrays: what `app.domain.roofline.price` computes, for every row at once and with its derivatives.

The work of a pass does not depend on the fitted constants, so it is taken once from the domain. What depends on them is

    Σ max(fill · F/(e_c·peak), bytes/(e·bandwidth)) + layers·o + expert layers·o_x + α·collectives + volume + κ·weights/fp32

with e_b, e_bx, e_kv the shares of the bandwidth by kind of operator, and the limit of e_c of attention to prompts. A test holds the
result to the domain's own to twelve digits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.domain.constants import default
from app.domain.engine import EngineProfile
from app.domain.pass_numbers import PassNumbers
from app.domain.rates import Formats, Rates, resolve
from app.domain.roofline import Placement, attention_efficiency, price
from app.domain.work import operators, routed_elements
from benchmarks.asked import Asked

Floats = npt.NDArray[np.float64]

LINEAR, EXPERT, ATTENTION, ELEMENTWISE, NOTHING = range(5)
_KINDS = {"linear": LINEAR, "expert": EXPERT, "attention": ATTENTION, "index": ATTENTION, "elementwise": ELEMENTWISE}
WIDTH = 24  # operators of a pass at most; more is an error, not a loss
DECODE_ATTENTION = 0.45  # e_c of attention in a decode pass, as in the domain's constants
PROMPT_ATTENTION = default("attention_efficiency.limit")  # most that e_c of attention in a prompt pass reaches, before a fit
LAUNCH_S, QUANTISED_LAUNCH_S = 2e-6, 2e-6  # t0 per GEMM, and more where activations are quantised: held, not fitted

# With this profile every fitted constant is neutral, so that `resolve` gives what a device and a format bring along.
NEUTRAL = EngineProfile(
    "neutral",
    "Neutral",
    weight_bandwidth_efficiency={"any": 1.0},
    kv_bandwidth_efficiency=1.0,
    compute_efficiency={"any": 1.0},
    expert_bandwidth_efficiency={"any": 1.0},
    expert_compute_efficiency={"any": 1.0},
    launch_s=LAUNCH_S,
    quantised_launch_s=QUANTISED_LAUNCH_S,
    per_layer_s=0.0,
    per_expert_layer_s=0.0,
    step_s=0.0,
    per_sequence_s=0.0,
    sequence_layer_s=0.0,
    all_reduce_alpha_s=0.0,
    send_s=0.0,
    expert_traffic=0.0,
)


@dataclass(frozen=True)
class Passes:
    """One pass for each of n rows. `compute`, `memory` [n, WIDTH] are seconds at e_c = the device's and e = 1; `most` is 1/e_c.

    `sequences` are counted once in each layer. `with_prompt` is 1 for passes with prompts, else 0.
    """

    kind: npt.NDArray[np.int64]
    compute: Floats
    memory: Floats
    weight: Floats
    most: Floats
    fixed: Floats
    depth: Floats
    expert_layers: Floats
    collectives: Floats
    sends: Floats
    volume: Floats
    traffic: Floats
    unpack: Floats
    sequences: Floats
    pieces: Floats
    with_prompt: Floats


def rates_of(asked: Asked) -> Rates:
    """What device and formats bring along, with nothing of an engine."""
    return resolve(asked.hardware, Formats.of(asked.request, asked.architecture), NEUTRAL)


def passes(rows: Sequence[tuple[Asked, PassNumbers, bool, float]]) -> Passes:
    """The arrays of one pass a row: its question, what the pass carries, whether prompts are in it, and how long those are."""
    filled = [_row(*row) for row in rows]
    return Passes(**{name: np.array([row[name] for row in filled]) for name in Passes.__dataclass_fields__})


def _row(asked: Asked, numbers: PassNumbers, with_prompt: bool, prompt: float) -> dict[str, Floats | float]:
    request, model = asked.request, asked.architecture
    element = Formats.of(request, model).element_bytes()
    placement = Placement(float(request.tp), float(request.pp), float(request.ep), float(request.dp))
    rates = rates_of(asked)
    work = operators(model, numbers, element, placement)
    share = float(attention_efficiency(float(prompt), rates.attention_limit)) if with_prompt else DECODE_ATTENTION
    priced = price(model, work, numbers, element, rates, share, placement, with_prompt)
    one_alpha = price(model, work, numbers, element, replace(rates, all_reduce_alpha_s=1.0, send_s=0.0), share, placement, with_prompt)
    one_send = price(model, work, numbers, element, replace(rates, send_s=1.0), share, placement, with_prompt)
    columns: dict[str, Floats | float] = {name: np.zeros(WIDTH) for name in ("compute", "memory", "weight")}
    kind, most = np.full(WIDTH, NOTHING), np.ones(WIDTH)
    for place, (one, term) in enumerate(zip(work, priced.terms, strict=False)):
        kind[place] = _KINDS[one.kind]
        columns["compute"][place] = float(term.compute_s)  # type: ignore[index]
        columns["memory"][place] = float(term.memory_s)  # type: ignore[index]
        columns["weight"][place] = float(one.weight_bytes) / asked.hardware.bandwidth_bytes_per_s  # type: ignore[index]
        usual = rates.expert_efficiency if one.kind == "expert" else rates.gemm_efficiency
        most[place] = 1.0 / float(rates.wide.efficiency if one.wide and rates.wide is not None else usual)
    scalar = asked.hardware.peak("fp32")
    return {
        **columns,
        "kind": kind,
        "most": most,
        "fixed": sum(float(term.time_s) for term in priced.terms if term.name in ("gemm_launches", "recurrent_layer_kernels")),
        "depth": float(model.depth),
        "expert_layers": float(model.expert_layers),
        "collectives": float(one_alpha.comm_s) - float(priced.comm_s),
        "sends": float(one_send.comm_s) - float(priced.comm_s),
        "volume": float(priced.comm_s),
        "traffic": float(routed_elements(model, numbers.tokens, placement.ep)) / asked.hardware.bandwidth_bytes_per_s,
        "unpack": sum(float(one.weights) for one in work) / scalar if scalar else 0.0,
        "sequences": float(numbers.sequences) * float(model.depth),
        "pieces": float(numbers.tokens),
        "with_prompt": float(with_prompt),
    }


@dataclass(frozen=True)
class Timed:
    """Seconds of each row's pass without scheduler and floor, of one read of its weights, and derivatives by constant."""

    time: Floats
    weights: Floats
    by: dict[str, Floats]
    weights_by: dict[str, Floats]


def timed(one: Passes, values: dict[str, Floats], micro_batch: float = np.inf) -> Timed:
    """Times and derivatives at the constants' values, each of shape [n]. A constant that is absent keeps its neutral value."""
    unit = np.ones(len(one.depth))
    e_b, e_bx, e_kv = values["e_b"], values.get("e_bx", values["e_b"]), values["e_kv"]
    e, e_x = values["e"], values.get("e_x", values["e"])
    n0 = values.get("fill")
    piece = np.minimum(one.pieces, micro_batch)
    fill = unit if n0 is None else 1.0 + n0 / piece
    linear, expert, attention = one.kind == LINEAR, one.kind == EXPERT, one.kind == ATTENTION
    elementwise = one.kind == ELEMENTWISE
    wanted = np.where(expert, e_x[:, None], np.where(attention, 1.0, e[:, None]))
    factor = np.minimum(wanted, np.where(attention, 1.0, one.most))
    share = np.where(expert, e_bx[:, None], np.where(attention, e_kv[:, None], e_b[:, None]))
    reached = np.where(one.with_prompt > 0, values.get("attention", unit * PROMPT_ATTENTION) / PROMPT_ATTENTION, 1.0)
    slow = np.where(attention, 1.0 / reached[:, None], fill[:, None])
    compute, memory = slow * one.compute / factor, one.memory / share
    bound_by_compute = compute > memory
    time = np.where(bound_by_compute, compute, memory)
    total = time.sum(1) + one.fixed + one.volume
    by: dict[str, Floats] = {}
    loose = bound_by_compute & (wanted < one.most)
    by["e"] = -(np.where(loose & (linear | elementwise), compute, 0.0)).sum(1) / e
    by["e_x"] = -(np.where(loose & expert, compute, 0.0)).sum(1) / e_x
    read = np.where(~bound_by_compute, memory, 0.0)
    by["e_b"] = -(np.where(linear | elementwise, read, 0.0)).sum(1) / e_b
    by["e_bx"] = -(np.where(expert, read, 0.0)).sum(1) / e_bx
    by["e_kv"] = -(np.where(attention, read, 0.0)).sum(1) / e_kv
    if "attention" in values:
        paced = np.where(bound_by_compute & attention, compute, 0.0).sum(1)
        by["attention"] = -np.where(one.with_prompt > 0, paced, 0.0) / values["attention"]
    if n0 is not None:
        by["fill"] = np.where(bound_by_compute & ~attention, one.compute / factor, 0.0).sum(1) / piece
    for name, amount in (
        ("layer", one.depth),
        ("expert_layer", one.expert_layers),
        ("alpha", one.collectives),
        ("send", one.sends),
        ("unpack", one.unpack),
    ):
        if name in values:
            total = total + amount * values[name]
            by[name] = amount
    if "traffic" in values:
        moved = one.traffic * values["traffic"] / e_bx
        total = total + moved
        by["traffic"] = one.traffic / e_bx
        by["e_bx"] = by["e_bx"] - moved / e_bx
    plain, experts = np.where(linear | elementwise, one.weight, 0.0).sum(1), np.where(expert, one.weight, 0.0).sum(1)
    # Where experts have no constant of their own, what theirs would do is done by the common one.
    for own, common in (("e_bx", "e_b"), ("e_x", "e")):
        if own not in values:
            by[common] = by[common] + by.pop(own)
    weights = plain / e_b + experts / e_bx
    return Timed(total, weights, by, {"e_b": -plain / e_b**2, "e_bx": -experts / e_bx**2})
