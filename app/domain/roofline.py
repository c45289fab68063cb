"""From work to seconds: operator times, floor, attainable and expected time, bound, intensity, MFU and MBU.

Per operator t = max(FLOPs / (e_c·peak), bytes / (e_b·bandwidth)) plus its launches: a sum of maxima over operators, not a maximum
of sums. Three times are kept and always stand in this order:

    floor       max(Σ FLOPs/peak, Σ bytes/bandwidth)                at specified rates, no overhead: nothing can beat it
    attainable  max(Σ FLOPs/(e_c·peak), Σ bytes/(e_b·bandwidth))    the same at achieved rates
    expected    Σ max(…) + launches, layer kernels, collectives, scheduler

Every function takes floats or numpy arrays. Source: the design's performance model, section 3.
"""

from dataclasses import dataclass, replace

import numpy as np

from app.domain.architecture import ModelArchitecture
from app.domain.constants import default
from app.domain.prediction import Bound, Part, PassCost, Term
from app.domain.rates import Rates
from app.domain.work import (
    ElementBytes,
    Kind,
    OperatorWork,
    PassNumbers,
    Placement,
    Quantity,
    all_reduce_bytes,
    all_to_all_bytes,
    routed_elements,
)

__all__ = [
    "Placement",
    "PricedPass",
    "PricedTerm",
    "attention_efficiency",
    "bound",
    "bus_bytes_per_s",
    "overlapped",
    "price",
    "price_dense",
]

_PARTS: dict[Kind, tuple[Part, Part]] = {
    "linear": ("compute", "weights"),
    "expert": ("compute", "weights"),
    "attention": ("attention", "kv"),
    "index": ("attention", "kv"),
    "elementwise": ("overhead", "overhead"),
}


def attention_efficiency(prompt: Quantity, limit: Quantity | None = None) -> Quantity:
    """e_c of prefill attention, limit·s/(s + 1000), by default 0.6 at most: short prompts fill the units badly."""
    most = default("attention_efficiency.limit") if limit is None else limit
    return most * prompt / (prompt + default("attention_efficiency.half_length_tokens"))


@dataclass(frozen=True)
class PricedTerm:
    """One operator or overhead of a pass: its work, the two times its work implies, and the expected time. Arrays or floats."""

    name: str
    kind: Kind | None
    part: Part
    flops: Quantity
    bytes: Quantity
    compute_s: Quantity
    memory_s: Quantity
    time_s: Quantity


@dataclass(frozen=True)
class PricedPass:
    """The cost of a pass, or of an array of passes; fields as in PassCost.

    `compute_s` and `memory_s` are the operators' work at achieved rates, `overhead_s` the fixed times and the element-wise kernels.
    `weight_read_s` is one read of the weights alone, `step_s` the scheduler's part.
    """

    terms: tuple[PricedTerm, ...]
    time_s: Quantity
    floor_s: Quantity
    attainable_s: Quantity
    compute_s: Quantity
    memory_s: Quantity
    comm_s: Quantity
    overhead_s: Quantity
    flops: Quantity
    bytes: Quantity
    weight_read_s: Quantity
    step_s: Quantity

    def cost(self) -> PassCost:
        """The same as plain numbers, for a pass of scalars. The terms add up to time_s."""
        terms = tuple(_plain(term) for term in self.terms)
        time = float(sum(term.time_s for term in terms))
        attainable = min(float(self.attainable_s), time)
        return PassCost(
            time_s=time,
            floor_s=min(float(self.floor_s), attainable),
            attainable_s=attainable,
            compute_s=float(self.compute_s),
            memory_s=float(self.memory_s),
            comm_s=float(self.comm_s),
            overhead_s=float(self.overhead_s),
            bound=bound(float(self.compute_s), float(self.memory_s), float(self.comm_s), float(self.overhead_s)),
            flops=float(self.flops),
            bytes=float(self.bytes),
            intensity_flops_per_byte=float(self.flops) / float(self.bytes),
            terms=terms,
        )


def prompt_floor_s(architecture: ModelArchitecture, rates: Rates) -> Quantity:
    """The least seconds of a pass with prompt tokens, which is not captured as a graph: the launches of its layers."""
    found: Quantity = architecture.depth * rates.prefill_floor_per_layer_s
    return found + architecture.expert_layers * rates.prefill_floor_per_expert_layer_s


def price(
    architecture: ModelArchitecture,
    work: tuple[OperatorWork, ...],
    numbers: PassNumbers,
    element: ElementBytes,
    rates: Rates,
    attention_share: Quantity,
    placement: Placement,
    with_prompt: bool,
) -> PricedPass:
    """Seconds of a pass from its work. `attention_share` is e_c of attention, `with_prompt` applies the engine's prefill floor."""
    fill = _fill(numbers, rates) if with_prompt else 1.0
    operator_terms = [_operator(one, rates, attention_share, fill) for one in work]
    fixed, step = _fixed_terms(architecture, work, numbers, rates)
    traffic = _expert_traffic(architecture, numbers, rates, placement)
    links = _link_terms(architecture, numbers, element, rates, placement)
    terms = [*operator_terms, *fixed, *traffic, *links]
    time = _total([term.time_s for term in terms])
    least = prompt_floor_s(architecture, rates) if with_prompt else 0.0
    if np.any(np.asarray(least) > 0):
        missing: Quantity = np.maximum(least - time, 0.0)
        terms.append(_overhead("prefill_floor", missing))
        time = time + missing
    compute = _total([term.compute_s for term in operator_terms])
    memory = _total([term.memory_s for term in operator_terms])
    arithmetic = _total([one.flops / _peak(one, rates) for one in work])
    moved = _total([one.bytes for one in work])
    return PricedPass(
        terms=tuple(terms),
        time_s=time,
        floor_s=np.maximum(arithmetic, moved / rates.bandwidth_bytes_per_s),
        attainable_s=np.maximum(compute, memory),
        compute_s=compute,
        memory_s=memory,
        comm_s=_total([term.time_s for term in links]),
        overhead_s=_total([term.time_s for term in terms if term.part == "overhead"]),
        flops=_total([one.flops for one in work]),
        bytes=moved,
        weight_read_s=_total([one.weight_bytes / (_read_share(one, rates) * rates.bandwidth_bytes_per_s) for one in work]),
        step_s=step,
    )


def overlapped(priced: PricedPass, gain: Quantity) -> PricedPass:
    """A pass whose stages work at once on pieces of it: the same work, every time shorter by `gain`."""
    times = [name for name in PricedPass.__dataclass_fields__ if name.endswith("_s")]
    terms = tuple(
        replace(term, compute_s=term.compute_s / gain, memory_s=term.memory_s / gain, time_s=term.time_s / gain) for term in priced.terms
    )
    return replace(priced, terms=terms, **{name: getattr(priced, name) / gain for name in times})


def stretched(priced: PricedPass, factor: Quantity) -> PricedPass:
    """A pass whose expected times are `factor` times as long, but no shorter than the floor; its work and floor stay.

    Where that is shorter than the attainable time, the rates that were reached are better than those assumed: compute, memory and
    attainable times are as much shorter.
    """
    longer = np.maximum(factor, priced.floor_s / priced.time_s)
    better = np.minimum(1.0, longer * priced.time_s / priced.attainable_s)
    times = {name: getattr(priced, name) * longer for name in ("time_s", "comm_s", "overhead_s", "step_s")}
    rates = {name: getattr(priced, name) * better for name in ("attainable_s", "compute_s", "memory_s")}
    terms = tuple(
        replace(term, time_s=term.time_s * longer, compute_s=term.compute_s * better, memory_s=term.memory_s * better)
        for term in priced.terms
    )
    return replace(priced, terms=terms, **times, **rates)


def price_dense(flops: Quantity, read: Quantity, floor_flops: Quantity, floor_read: Quantity, rates: Rates) -> PricedPass:
    """Seconds of a textbook pass: one term, FLOPs against one read of the weights, at achieved rates."""
    compute = flops / rates.achieved_flops_per_s
    memory = read / rates.achieved_bytes_per_s
    time: Quantity = np.maximum(compute, memory)
    floor = np.maximum(floor_flops / rates.gemm.peak_flops_per_s, floor_read / rates.bandwidth_bytes_per_s)
    term = PricedTerm("dense_weights", "linear", "compute", flops, read, compute, memory, time)
    return PricedPass((term,), time, floor, time, compute, memory, 0.0, 0.0, flops, read, memory, 0.0)


def _fill(numbers: PassNumbers, rates: Rates) -> Quantity:
    """How much longer products take in a prompt pass cut into pieces of u tokens, n0 of which are lost in each: (u + n0)/u."""
    piece = np.minimum(numbers.tokens, rates.micro_batch_tokens)
    longer: Quantity = 1.0 + rates.fill_tokens / piece
    return longer


def _operator(work: OperatorWork, rates: Rates, attention_share: Quantity, fill: Quantity) -> PricedTerm:
    """t = max(FLOPs / (e_c·peak), bytes / (e_b·bandwidth)) of one operator; its launches are a term of their own."""
    peak = _peak(work, rates)
    if work.kind in ("attention", "index"):
        compute = work.flops / (attention_share * peak)
    else:
        compute = fill * (work.flops / (_efficiency(work, rates) * peak))
    memory = work.bytes / (_read_share(work, rates) * rates.bandwidth_bytes_per_s)
    return PricedTerm(work.name, work.kind, _PARTS[work.kind][0], work.flops, work.bytes, compute, memory, np.maximum(compute, memory))


def _peak(work: OperatorWork, rates: Rates) -> float:
    """The specified rate of the units an operator runs on; an indexer's scores take the faster of the narrow and the wide ones."""
    if work.kind == "attention":
        return rates.attention.peak_flops_per_s
    if work.kind == "index":
        return max(rates.gemm.peak_flops_per_s, rates.expert_units.peak_flops_per_s, rates.attention.peak_flops_per_s)
    if work.wide and rates.wide is not None:
        return rates.wide.units.peak_flops_per_s
    return (rates.expert_units if work.kind == "expert" else rates.gemm).peak_flops_per_s


def _efficiency(work: OperatorWork, rates: Rates) -> Quantity:
    """e_c of a matrix product: of experts, of a product kept at 16 bit, of the rest."""
    if work.wide and rates.wide is not None:
        return rates.wide.efficiency
    return rates.expert_efficiency if work.kind == "expert" else rates.gemm_efficiency


def _read_share(work: OperatorWork, rates: Rates) -> Quantity:
    """The share of the bandwidth that an operator's reads keep: e_kv of caches and states, e_bx of experts, e_b of the rest."""
    if work.kind in ("attention", "index"):
        return rates.kv_efficiency
    if work.wide and rates.wide is not None:
        return rates.wide.read_efficiency
    return rates.expert_weight_efficiency if work.kind == "expert" else rates.weight_efficiency


def _launch(work: OperatorWork, rates: Rates) -> Quantity:
    """t0 of one matrix product of an operator."""
    if work.wide and rates.wide is not None:
        return rates.wide.launch_s
    return rates.expert_launch_s if work.kind == "expert" else rates.launch_s


def _fixed_terms(
    architecture: ModelArchitecture, work: tuple[OperatorWork, ...], numbers: PassNumbers, rates: Rates
) -> tuple[list[PricedTerm], Quantity]:
    """Times beside the work: GEMM launches, small kernels and attention launches, the scheduler's step, the unpacking of weights."""
    launches = _total([one.launches * _launch(one, rates) for one in work if one.launches])
    step = rates.step_s + (rates.per_sequence_s + architecture.depth * rates.sequence_layer_s) * numbers.sequences
    terms = [_overhead("gemm_launches", launches), _overhead("layer_kernels", architecture.depth * rates.per_layer_s)]
    if architecture.expert_layers and np.any(np.asarray(rates.per_expert_layer_s) > 0):
        terms.append(_overhead("expert_layer_kernels", architecture.expert_layers * rates.per_expert_layer_s))
    if architecture.recurrent_layers and np.any(np.asarray(rates.recurrent_layer_s) > 0):
        terms.append(_overhead("recurrent_layer_kernels", architecture.recurrent_layers * rates.recurrent_layer_s))
    terms.append(_overhead("scheduler", step))
    if rates.scalar_flops_per_s is not None and np.any(np.asarray(rates.alu_operations_per_weight) > 0):
        weights = _total([one.weights for one in work])
        terms.append(_overhead("weight_unpacking", weights * rates.alu_operations_per_weight / rates.scalar_flops_per_s))
    return terms, step


def _expert_traffic(architecture: ModelArchitecture, numbers: PassNumbers, rates: Rates, placement: Placement) -> list[PricedTerm]:
    """What permuting tokens to their experts, quantising and combining them moves: every tensor-parallel rank touches every token."""
    if not architecture.expert_layers or not np.any(np.asarray(rates.expert_traffic) > 0):
        return []
    moved = rates.expert_traffic * routed_elements(architecture, numbers.tokens, placement.ep)
    time = moved / (rates.expert_weight_efficiency * rates.bandwidth_bytes_per_s)
    return [PricedTerm("expert_traffic", None, "overhead", 0.0, moved, 0.0, time, time)]


def _link_terms(
    architecture: ModelArchitecture, numbers: PassNumbers, element: ElementBytes, rates: Rates, placement: Placement
) -> list[PricedTerm]:
    """Collectives after each mixer and each feed-forward part, one send between pipeline stages; none on one device.

    A mixer's tensor-parallel ranks reduce the tokens of their attention rank, a feed-forward part all G devices all tokens; with
    attention data parallelism that is a gather and a scatter, or an all-to-all exchange where devices hold different experts.
    """
    terms: list[PricedTerm] = []
    tp, dp, devices = (np.asarray(size) for size in (placement.tp, placement.dp, placement.devices))
    bus = bus_bytes_per_s(rates, devices)
    if np.any(devices > 1):
        local = numbers.of_one_rank(placement.dp).tokens
        alone = _collective(rates, all_reduce_bytes(architecture, local, element, placement.tp), bus_bytes_per_s(rates, tp), tp)
        together = _collective(rates, all_reduce_bytes(architecture, numbers.tokens, element, placement.devices), bus, devices)
        shared = np.where(dp > 1, 0.0, together)
        gathered = np.where(dp > 1, together, 0.0)
        spread = np.asarray((dp > 1) & (np.asarray(placement.ep) > 1))
        mixing, dense = architecture.expert_layers, architecture.feed_forwards - architecture.expert_layers
        terms.append(_communication("all_reduce", architecture.mixers * alone + architecture.feed_forwards * shared))
        if np.any(dp > 1):
            terms.append(_communication("gather_scatter", (dense + np.where(spread, 0.0, mixing)) * gathered))
        if np.any(spread) and mixing:
            exchanged = sum(
                group.count * all_to_all_bytes(architecture, numbers.tokens, group.experts.chosen, element, placement.devices)
                for group in architecture.groups
                if group.experts
            )
            twice = 2.0 * mixing * rates.all_reduce_alpha_s * _rounds(devices) + exchanged / bus
            terms.append(_communication("all_to_all", np.where(spread, twice, 0.0)))
    if np.any(np.asarray(placement.pp) > 1):
        stage_link = bus_bytes_per_s(rates, devices * np.asarray(placement.pp))
        send = rates.send_s + numbers.tokens * architecture.hidden * element.message / stage_link
        terms.append(_communication("stage_send", np.where(np.asarray(placement.pp) > 1, (placement.pp - 1.0) * send, 0.0)))
    return terms


def _collective(rates: Rates, moved: Quantity, bus: Quantity, devices: Quantity) -> Quantity:
    """Seconds of one all-reduce between so many devices, 0 for one: α·log2(G) + bytes over the bus."""
    time: Quantity = np.where(np.asarray(devices) > 1, rates.all_reduce_alpha_s * _rounds(devices) + moved / bus, 0.0)
    return time


def _rounds(devices: Quantity) -> Quantity:
    """Rounds in which every device has heard of every other, log2(G): what has no bytes to move still waits so often."""
    rounds: Quantity = np.log2(np.maximum(devices, 1.0))
    return rounds


def bus_bytes_per_s(rates: Rates, devices: Quantity) -> Quantity:
    """The usable rate between so many devices: the link's inside a node, the network's beyond it.

    A placement that needs an unknown link was refused before, so its cells are NaN, never a guess.
    """
    inside = float("nan") if rates.bus_bytes_per_s is None else rates.bus_bytes_per_s
    if rates.devices_per_node is None:
        return inside
    beyond = float("nan") if rates.network_bytes_per_s is None else rates.network_bytes_per_s
    return np.where(np.asarray(devices) > rates.devices_per_node, beyond, inside)


def _overhead(name: str, time: Quantity) -> PricedTerm:
    return PricedTerm(name, None, "overhead", 0.0, 0.0, 0.0, 0.0, time)


def _communication(name: str, time: Quantity) -> PricedTerm:
    return PricedTerm(name, None, "communication", 0.0, 0.0, 0.0, 0.0, time)


def _total(values: list[Quantity]) -> Quantity:
    """The sum, always in the given order, so that scalars and arrays agree to the last bit and sums of larger terms stay larger."""
    total: Quantity = 0.0
    for value in values:
        total = total + value
    return total


def _plain(term: PricedTerm) -> Term:
    compute, memory = float(term.compute_s), float(term.memory_s)
    if term.kind is None:
        pace: Bound = "communication" if term.part == "communication" else "overhead"
        part = term.part
    else:
        pace = "compute" if compute > memory else "memory"
        part = _PARTS[term.kind][0 if pace == "compute" else 1]
    return Term(term.name, part, float(term.flops), float(term.bytes), float(term.time_s), pace)


def seconds_by_part(priced: PricedPass) -> dict[Part, Quantity]:
    """Expected seconds of a pass, or of an array of them, by block of a decomposition; each operator goes where its pace is set."""
    found: dict[Part, Quantity] = dict.fromkeys(("compute", "attention", "weights", "kv", "communication", "overhead"), 0.0)
    for term in priced.terms:
        if term.kind is None:
            found[term.part] = found[term.part] + term.time_s
            continue
        busy, reading = _PARTS[term.kind]
        paced = np.asarray(term.compute_s) > np.asarray(term.memory_s)
        found[busy] = found[busy] + np.where(paced, term.time_s, 0.0)
        found[reading] = found[reading] + np.where(paced, 0.0, term.time_s)
    return found


def bound(compute_s: float, memory_s: float, comm_s: float = 0.0, overhead_s: float = 0.0) -> Bound:
    """What sets the pace of a pass: the largest of its four times; memory where another only equals it."""
    times: dict[Bound, float] = {"memory": memory_s, "compute": compute_s, "communication": comm_s, "overhead": overhead_s}
    return max(times, key=lambda name: times[name])


def mfu(flops: float, time_s: float, peak_flops_per_s: float) -> float:
    """Model FLOP utilisation, a fraction: the pass's FLOPs over what the peak would do in the time it took."""
    return flops / (time_s * peak_flops_per_s)


def mbu(moved_bytes: float, time_s: float, bandwidth_bytes_per_s: float) -> float:
    """Model bandwidth utilisation, a fraction: the pass's bytes over what the bandwidth would move in the time it took."""
    return moved_bytes / (time_s * bandwidth_bytes_per_s)


def share_of_floor(floor_s: float, measured_s: float) -> float:
    """How close a measurement comes to what nothing can beat, a fraction (143 tokens/s against 209 is 0.68)."""
    return floor_s / measured_s


def idle_share(cost: PassCost) -> float:
    """The fraction of a pass during which the arithmetic waits: 1 - compute / time."""
    return 1.0 - min(cost.compute_s / cost.time_s, 1.0)


def intensity(flops: float, moved_bytes: float) -> float:
    """Work per byte in FLOP/byte; at 2 bytes per weight and weights alone it is the token count of the pass."""
    return flops / moved_bytes
