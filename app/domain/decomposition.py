"""Where the time of one request goes: blocks that add up exactly, with what nobody can explain as a block of its own.

    request = first token + (output tokens - 1) x further token
    first token   = outside the server + front-end + queue + prompt pass by part + not explained
    further token = decode step by part + other requests' prefill     + not explained

Without a run the blocks are the prediction and nothing is unexplained. With one, "not explained" is what was measured less the other
blocks; it is negative where the prediction overshoots, and says so: no predicted term is stretched until the sum fits.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from app.domain.hardware import HardwareProfile
from app.domain.observed import Observed, observed, observed_first_token, observed_step
from app.domain.prediction import Part, PassCost, Prediction
from app.domain.quantity import byte_rate, bytes_, flops, flops_rate, percent, seconds
from app.domain.request_parts import measured_parts
from app.domain.run import Run

Phase = Literal["prefill", "decode"]
Hue = Literal["prefill", "decode", "rest"]
BlockKind = Literal["measured", "predicted", "limit", "unexplained"]

# Below this share of its half a difference is the rounding of a sum, not a block.
_ROUNDING = 1e-9

_PARTS: tuple[Part, ...] = ("compute", "attention", "weights", "kv", "communication", "overhead")
_PARTS_OF_A_PHASE: frozenset[Part] = frozenset({"compute", "attention", "weights", "kv"})
_TITLES: dict[Phase, dict[Part, str]] = {
    "prefill": {
        "compute": "Arithmetic",
        "attention": "Attention",
        "weights": "Memory: weights",
        "kv": "Memory: KV cache",
        "communication": "Communication",
        "overhead": "Launches and scheduler",
    },
    "decode": {
        "compute": "Arithmetic",
        "attention": "Attention arithmetic",
        "weights": "Weights read",
        "kv": "KV cache read",
        "communication": "Communication",
        "overhead": "Launches and scheduler",
    },
}


@dataclass(frozen=True)
class Block:
    """One part of a request. `each_s` is one occurrence, `times` how often it occurs, `seconds` their product per request.

    `phase` is the half it stands in, `hue` the colour it takes ("rest": neither phase). `kind` is how sure it is: measured, predicted,
    limit (the part of a prediction that no software can beat) or unexplained, the only one whose seconds may be negative.
    """

    key: str
    title: str
    phase: Phase
    hue: Hue
    kind: BlockKind
    each_s: float
    times: float
    arithmetic: str

    @property
    def seconds(self) -> float:
        """Seconds per request."""
        return self.each_s * self.times

    @property
    def over_predicted(self) -> bool:
        """True for an unexplained block that is negative: the prediction is longer than what was measured."""
        return self.kind == "unexplained" and self.each_s < 0


@dataclass(frozen=True)
class Half:
    """One half of a request: its blocks, and what they add up to. `observed` is None where the total is a prediction."""

    phase: Phase
    total_s: float
    times: float
    blocks: tuple[Block, ...]
    observed: Observed | None = None

    @property
    def seconds(self) -> float:
        """Seconds per request."""
        return self.total_s * self.times

    @property
    def unexplained_s(self) -> float | None:
        """Measured less predicted, once; None where nothing was measured."""
        return next((block.each_s for block in self.blocks if block.kind == "unexplained"), None)

    @property
    def explained_share(self) -> float | None:
        """Predicted over measured, a fraction that passes 1 where the prediction overshoots; None where nothing was measured."""
        return None if self.unexplained_s is None or not self.total_s else 1 - self.unexplained_s / self.total_s


@dataclass(frozen=True)
class Decomposition:
    """Both halves of one request. Their blocks sum to `total_s`."""

    prefill: Half
    decode: Half

    @property
    def blocks(self) -> tuple[Block, ...]:
        """All blocks in the order of time."""
        return self.prefill.blocks + self.decode.blocks

    @property
    def total_s(self) -> float:
        """Seconds of the whole request."""
        return self.prefill.seconds + self.decode.seconds

    @property
    def measured(self) -> bool:
        """Whether any half was measured."""
        return self.prefill.observed is not None or self.decode.observed is not None


def decompose(prediction: Prediction, run: Run | None = None, hardware: HardwareProfile | None = None) -> Decomposition:
    """The blocks of one request, predicted or set against a measured run.

    `hardware` lets the weights be split into what full bandwidth needs and what is lost to bandwidth that is not reached.
    """
    return Decomposition(_first_token(prediction, run), _further_tokens(prediction, run, hardware))


def decomposition_blocks(prediction: Prediction, run: Run | None = None, hardware: HardwareProfile | None = None) -> tuple[Block, ...]:
    """The blocks of `decompose` alone, in the order of time; they sum to the total of the request."""
    return decompose(prediction, run, hardware).blocks


def _first_token(prediction: Prediction, run: Run | None) -> Half:
    """Front-end, queue and prompt pass; a tool that times the prompt pass in process has neither front-end nor queue in its figure."""
    measured = observed_first_token(run) if run is not None else None
    alone = measured is not None and measured.key == "prefill_s"
    blocks = [] if alone else [*_outside_the_server(run, measured), *_before_the_pass(prediction, run)]
    blocks += _pass_blocks("prefill", prediction.prefill, 1.0)
    expected = prediction.prefill.time_s if alone else prediction.ttft_s - prediction.queue_s + _beside_the_prediction(blocks)
    return _half("prefill", 1.0, blocks, expected, measured)


def _outside_the_server(run: Run | None, first: Observed | None) -> list[Block]:
    """Network, gateway and the client's host, where the server timed the first token too."""
    outside_s = None if run is None or first is None else measured_parts(run, first).get("transport")
    if not outside_s:
        return []
    words = f"measured, TTFT less the server's own, {first.words}" if first else ""
    return [Block("transport", "Outside the server", "prefill", "rest", "measured", outside_s, 1.0, words)]


def _before_the_pass(prediction: Prediction, run: Run | None) -> list[Block]:
    blocks = []
    if prediction.front_end_s:
        blocks.append(Block("front_end", "Front-end", "prefill", "rest", "predicted", prediction.front_end_s, 1.0, "once per request"))
    queue = observed(run, "queue_s") if run is not None else None
    if queue is not None:
        blocks.append(Block("queue", "Queue", "prefill", "rest", "measured", queue.value_s, 1.0, f"measured, {queue.words}"))
    elif prediction.queue_s:
        words = "closed form: other requests' prompts, and a slot where not all clients run"
        blocks.append(Block("queue", "Queue", "prefill", "rest", "predicted", prediction.queue_s, 1.0, words))
    return blocks


def _beside_the_prediction(blocks: list[Block]) -> float:
    """Seconds that the prediction of a first token does not have in it: its queue is replaced, and it knows no network."""
    return math.fsum(block.each_s for block in blocks if block.key in ("queue", "transport"))


def _further_tokens(prediction: Prediction, run: Run | None, hardware: HardwareProfile | None) -> Half:
    measured = observed_step(run) if run is not None else None
    output = run.workload.output_tokens_mean if run is not None else None
    times = prediction.request.further_tokens if output is None else max(output - 1.0, 0.0)
    blocks = _pass_blocks("decode", prediction.decode, times)
    if hardware is not None:
        blocks = [part for block in blocks for part in _split_at_bandwidth(block, prediction.decode, hardware)]
    if prediction.interference_s:
        words = "a part of each prefill that runs between two steps"
        title = "Other requests’ prefill"
        blocks.append(Block("decode_interference", title, "decode", "rest", "predicted", prediction.interference_s, times, words))
    return _half("decode", times, blocks, prediction.itl_s, measured)


def _pass_blocks(phase: Phase, cost: PassCost, times: float) -> list[Block]:
    """One block for each part of a pass that takes time."""
    blocks = []
    for part in _PARTS:
        time_s = math.fsum(term.time_s for term in cost.terms if term.part == part)
        if time_s:
            hue: Hue = phase if part in _PARTS_OF_A_PHASE else "rest"
            words = _arithmetic(part, cost, time_s, phase)
            blocks.append(Block(f"{phase}_{part}", _TITLES[phase][part], phase, hue, "predicted", time_s, times, words))
    return blocks


def _arithmetic(part: Part, cost: PassCost, time_s: float, phase: Phase) -> str:
    """The formula with the numbers put in; the rate is the effective one, so that it divides out."""
    work = math.fsum(term.flops for term in cost.terms if term.part == part)
    moved = math.fsum(term.bytes for term in cost.terms if term.part == part)
    if part in ("compute", "attention") and work:
        return f"{flops(work)} ÷ {flops_rate(work / time_s)}"
    if part in ("weights", "kv") and moved:
        return f"{bytes_(moved)} ÷ {byte_rate(moved / time_s)}"
    named = [f"{term.name.replace('_', ' ')} {seconds(term.time_s)}" for term in cost.terms if term.part == part and term.time_s]
    return " + ".join(named) + (" per step" if phase == "decode" else " per prompt")


def _split_at_bandwidth(block: Block, cost: PassCost, hardware: HardwareProfile) -> tuple[Block, ...]:
    """The weights as two blocks: the read at full bandwidth, a limit, and what is lost because it is not reached."""
    if block.key != "decode_weights":
        return (block,)
    moved = math.fsum(term.bytes for term in cost.terms if term.part == "weights")
    floor_s = moved / hardware.bandwidth_bytes_per_s
    lost_s = block.each_s - floor_s
    if not floor_s or lost_s < -_ROUNDING * block.each_s:
        return (block,)
    words = f"{bytes_(moved)} ÷ {byte_rate(hardware.bandwidth_bytes_per_s)}"
    limit = replace(block, key="decode_weights_floor", title="Weights at full bandwidth", kind="limit", arithmetic=words)
    if lost_s <= _ROUNDING * block.each_s:
        return (limit,)
    reached = f"at {percent(floor_s / block.each_s)} of {byte_rate(hardware.bandwidth_bytes_per_s)}"
    lost = replace(block, key="decode_weights_lost", title="Bandwidth not reached", each_s=lost_s, arithmetic=reached)
    return (replace(limit, each_s=floor_s), lost)


def _half(phase: Phase, times: float, blocks: list[Block], expected_s: float, measured: Observed | None) -> Half:
    """Close a half: what the parts leave of the expected time, then what the expectation leaves of the measurement."""
    left_s = expected_s - math.fsum(block.each_s for block in blocks)
    if abs(left_s) > _ROUNDING * abs(expected_s):
        title = "Other predicted time" if left_s > 0 else "Parts that overlap"
        words = "the pass takes longer than its parts" if left_s > 0 else "parts that run at the same time"
        blocks = [*blocks, Block(f"{phase}_other", title, phase, "rest", "predicted", left_s, times, words)]
    if measured is None:
        return Half(phase, math.fsum(block.each_s for block in blocks), times, tuple(blocks))
    rest_s = measured.value_s - math.fsum(block.each_s for block in blocks)
    return Half(phase, measured.value_s, times, (*blocks, _unexplained(phase, rest_s, times)), measured)


def _unexplained(phase: Phase, rest_s: float, times: float) -> Block:
    if rest_s < 0:
        words = f"over-predicted by {seconds(-rest_s)}: the terms above are longer than what was measured"
        return Block(f"{phase}_unexplained", "Over-predicted", phase, "rest", "unexplained", rest_s, times, words)
    words = "measured less the terms above"
    return Block(f"{phase}_unexplained", "Not explained", phase, "rest", "unexplained", rest_s, times, words)


def explanation(half: Half) -> str:
    """What a half says about itself: the explained share, by how much the prediction overshoots, or that it is a prediction."""
    share, rest_s = half.explained_share, half.unexplained_s
    if share is None or rest_s is None:
        return "predicted"
    return f"over-predicted by {seconds(-rest_s)}" if rest_s < 0 else f"explained {percent(share)}"
