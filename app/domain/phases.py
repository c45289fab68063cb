"""Both phases of a request priced together: prefill, the mean, first and last decode step, and how a served load mixes them.

One code path for one request and for a grid of them: every quantity is a float or an array. Source: the design's performance model,
section 4. Static batch of B: one pass with B sequences. Continuous batching at concurrency C, closed form:

    itl = t_decode(C, context = prompt + output/2) + interference · (C - 1)/output · (t_prefill - t_weights)

A newly admitted prompt rides along with a decode step, so what it adds is its pass without the weight read and the scheduler's step
that the decode step pays anyway; a pipeline of pp stages works on pp groups of C/pp sequences, and a prompt holds each stage for its
share of the work, also where its pieces are in several stages at once, and its own group until it is through all of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from app.domain.architecture import ModelArchitecture
from app.domain.constants import default
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.hardware import HardwareProfile
from app.domain.layers import Reach
from app.domain.memory import Footprint, footprint
from app.domain.pass_numbers import seen_so_far
from app.domain.prediction import Request
from app.domain.profile_choice import chosen
from app.domain.rates import Formats, Rates, resolve, resolve_textbook
from app.domain.request_rules import MODES, Load
from app.domain.roofline import Placement, PricedPass, attention_efficiency, overlapped, price, price_dense, stretched
from app.domain.schedule import Schedule
from app.domain.turn import Turn
from app.domain.under_load import chunk_prompts, in_waves, queue_s, waves_s
from app.domain.work import PassNumbers, Quantity, decode_steps, mean_decode_numbers, operators, pass_numbers


@dataclass(frozen=True)
class Question:
    """A request ready to be priced: its numbers (floats or arrays) and the rates they are priced at."""

    architecture: ModelArchitecture
    hardware: HardwareProfile
    formats: Formats
    rates: Rates
    load: Load
    textbook: bool
    schedule: Schedule = field(default_factory=Schedule)
    profile: EngineProfile | None = None

    def in_prefill(self) -> "Question":
        """The same question to a prefill replica of a disaggregated deployment, for one pass."""
        return replace(self, load=self.load.in_prefill())

    @classmethod
    def of(
        cls, architecture: ModelArchitecture, hardware: HardwareProfile, request: Request, load: Load, engine: EngineProfile | None
    ) -> "Question":
        """Formats and rates of a request resolved. Raises InvalidRequest for a format or device that cannot be priced."""
        if request.calibration not in MODES and (engine is None or engine.calibration != request.calibration):
            raise InvalidRequest("calibration", f"calibration {request.calibration} is not at hand here; /hardware lists what was fitted.")
        formats = Formats.of(request, architecture)
        textbook = request.calibration == "textbook"
        profile = None if textbook else chosen(engine, architecture, hardware, formats)
        rates = resolve_textbook(hardware, formats) if textbook else resolve(hardware, formats, profile)
        schedule = Schedule() if profile is None else profile.schedule
        return cls(architecture, hardware, formats, rates, load.averaged(), textbook, schedule, profile)


@dataclass(frozen=True)
class Handover:
    """The way from a prefill pool to a decode pool, floats or arrays; `prediction.Pools` has the meaning of each figure.

    `left` are the clients that no station has room for; `prefill_footprint` is a prefill replica's. What
    follows is None without clients; `at_most_per_s` are the requests a second that prefill, transfer and decode keep up with.
    """

    transfer_bytes: Quantity
    transfer_bytes_per_s: Quantity
    transfer_s: Quantity
    admission_s: Quantity
    left: Quantity
    prefill_footprint: Footprint
    requests_per_s: Quantity | None = None
    at_most_per_s: Mapping[str, Quantity] | None = None
    balanced_ratio: Quantity | None = None

    @property
    def seconds(self) -> Quantity:
        """From the first token to the step that brings the second."""
        return self.admission_s + self.transfer_s


@dataclass(frozen=True)
class PricedRequest:
    """Times of a request in seconds, floats or arrays. `running` sequences decode together; the rest of a load waits for memory.

    `step_factor` is what the remainder of a calibration made of a decode step.
    """

    prefill: PricedPass
    decode: PricedPass
    front_end_s: Quantity
    queue_s: Quantity
    interference_s: Quantity
    accepted: Quantity
    running: Quantity
    footprint: Footprint
    output_tokens: Quantity
    handover: Handover | None = None
    step_sequences: Quantity | None = None
    step_factor: Quantity = 1.0

    @property
    def together(self) -> Quantity:
        """Sequences in one decode step, those of one replica where there are several."""
        return self.running if self.step_sequences is None else self.step_sequences

    @property
    def ttft_s(self) -> Quantity:
        """Front-end, queue and prefill."""
        return self.front_end_s + self.queue_s + self.prefill.time_s

    @property
    def itl_s(self) -> Quantity:
        """The mean decode step over the tokens it brings, and what falls between two: others' prefills, or a share of the handover."""
        itl = self.decode.time_s / self.accepted + self.interference_s
        return itl if self.handover is None else itl + self.handover.seconds / decode_steps(self.output_tokens)

    @property
    def total_s(self) -> Quantity:
        """ttft + (output tokens - 1) · itl."""
        return total_s(self.ttft_s, self.itl_s, self.output_tokens)


def total_s(ttft_s: Quantity, itl_s: Quantity, output_tokens: Quantity) -> Quantity:
    """Seconds from request to last token: ttft + (output tokens - 1) · itl."""
    return ttft_s + (output_tokens - 1.0) * itl_s


def price_request(question: Question) -> PricedRequest:
    """Prefill, mean decode step and interference of a request or a grid of them."""
    load, element, reservation = question.load, question.formats.element_bytes(), question.schedule.mean_reservation
    space = footprint(question.architecture, question.hardware, element, load, reservation)
    running = _running_sequences(load, space, question.schedule)
    alone = _stage_by_stage(question)
    prefill = _over_stages(question, alone)
    decode = price_step(question, running)
    turn = _turn(question, running, prefill, decode)
    interference = _interference(alone, prefill, decode, question, running, turn)
    itl = decode.time_s / load.accepted + interference
    found = PricedRequest(
        prefill=prefill,
        decode=decode,
        front_end_s=question.rates.front_end_s + question.rates.serial_front_end_s,
        queue_s=0.0 if turn is None else queue_s(load, question.schedule, question.rates, running, turn, itl),
        interference_s=interference,
        accepted=load.accepted,
        running=running,
        footprint=space,
        output_tokens=question.load.output_tokens,
    )
    remainder = None if question.profile is None else question.profile.remainder
    return found if remainder is None else _near_measured(found, remainder.factors(question.architecture.name, load))


def _near_measured(found: PricedRequest, factors: tuple[Quantity, Quantity]) -> PricedRequest:
    """Every part of the two phases as much longer or shorter as measured points near the question say."""
    first, further = factors
    decode = stretched(found.decode, further)
    return replace(
        found,
        prefill=stretched(found.prefill, first),
        decode=decode,
        front_end_s=found.front_end_s * first,
        queue_s=found.queue_s * first,
        interference_s=found.interference_s * further,
        step_factor=decode.time_s / found.decode.time_s,
    )


def price_prompt(question: Question) -> PricedPass:
    """The prompt pass of all sequences of a batch, its pieces in several pipeline stages at once."""
    return _over_stages(question, _stage_by_stage(question))


def price_step(question: Question, running: Quantity) -> PricedPass:
    """The mean decode step of `running` sequences."""
    return _decode(question, running, _mean_step(question, running))


def decode_step_s(question: Question, running: Quantity, step: Quantity) -> Quantity:
    """Seconds of decode step 1, 2, … of a request; it reads prompt + step positions."""
    context = question.load.prompt_tokens + step - 1.0
    numbers = step_numbers(question, running, context)
    return _decode(question, running, numbers).time_s


def last_step(output_tokens: Quantity) -> Quantity:
    """The number of a request's last decode step, at least 1."""
    return decode_steps(output_tokens)


def _running_sequences(load: Load, space: Footprint, schedule: Schedule) -> Quantity:
    """Sequences that decode at once: the batch, or the clients that the cap and the pool let run (all where not even one fits)."""
    if load.concurrency is None:
        return load.batch
    admitted = np.minimum(load.concurrency, float(schedule.cap) * load.dp)
    if space.pool_sequences is None or space.served_sequences is None:
        return admitted
    pool: Quantity = np.where(space.pool_sequences >= 1.0, np.maximum(space.served_sequences, 1.0), load.concurrency)
    return np.minimum(admitted, pool)


def _together(question: Question, running: Quantity) -> Quantity:
    """Sequences in one decode pass: a served load on a pipeline is split over its stages, a static batch stays whole."""
    return running if question.load.concurrency is None else np.ceil(running / question.load.pp)


def _mean_step(question: Question, running: Quantity) -> PassNumbers:
    load = question.load
    if np.any(np.asarray(load.draft_tokens) > 0):
        return step_numbers(question, running, load.prompt_tokens + (decode_steps(load.output_tokens) - 1.0) / 2.0)
    return mean_decode_numbers(load.prompt_tokens, load.output_tokens, _together(question, running))


def step_numbers(question: Question, running: Quantity, context: Quantity) -> PassNumbers:
    """A decode pass of all running sequences after `context` positions: a row each, and one for each drafted token."""
    rows = question.load.rows
    return pass_numbers(rows, context, _together(question, running), rows=rows)


def _turn(question: Question, running: Quantity, prefill: PricedPass, decode: PricedPass) -> Turn | None:
    """The passes of a served load; None for another, and in textbook arithmetic, which has no queue."""
    load = question.load
    if load.concurrency is None or question.textbook:
        return None
    prompts = chunk_prompts(load, question.schedule, running / load.dp)
    ranks = np.minimum(load.dp, np.ceil(running))
    return Turn(prefill.time_s, full_pass_s(question, prompts, ranks), prompts, decode.time_s)


def full_pass_s(question: Question, prompts: Quantity, ranks: Quantity) -> Quantity:
    """Seconds of a pass with so many whole prompts on each of so many attention ranks, one stage after the other."""
    load = question.load
    numbers = pass_numbers(load.prompt_tokens - load.cached_prefix_tokens, load.cached_prefix_tokens, ranks * prompts)
    share = attention_efficiency(load.prompt_tokens, question.rates.attention_limit)
    return _operator_pass(question, numbers, share, with_prompt=True).time_s


def _stage_by_stage(question: Question) -> PricedPass:
    """The prompt pass of all sequences of a batch, one pipeline stage after the other; a cached prefix is context, not work."""
    load = question.load
    new = load.prompt_tokens - load.cached_prefix_tokens
    if question.textbook:
        return _dense_pass(question, load.batch * new)
    numbers = pass_numbers(new, load.cached_prefix_tokens, load.batch)
    return _operator_pass(question, numbers, attention_efficiency(load.prompt_tokens, question.rates.attention_limit), with_prompt=True)


def _over_stages(question: Question, priced: PricedPass) -> PricedPass:
    """The same pass where its pieces are in several stages at once."""
    load, pieces = question.load, question.rates.micro_batch_tokens
    if question.textbook or not np.any(np.asarray(load.pp) > 1) or not np.all(np.isfinite(np.asarray(pieces))):
        return priced
    return overlapped(priced, pipeline_gain(load.batch * (load.prompt_tokens - load.cached_prefix_tokens), pieces, load.pp))


def pipeline_gain(tokens: Quantity, piece: Quantity, stages: Quantity) -> Quantity:
    """How much sooner a prompt in m pieces is through s stages than one stage after the other: m·s / (m + s - 1)."""
    pieces = np.maximum(np.ceil(tokens / piece), 1.0)
    gain: Quantity = pieces * stages / (pieces + stages - 1.0)
    return gain


def _decode(question: Question, running: Quantity, numbers: PassNumbers) -> PricedPass:
    if question.textbook:
        return _dense_pass(question, running)
    return _operator_pass(question, numbers, default("attention_efficiency.decode"), with_prompt=False)


def price_pass(question: Question, numbers: PassNumbers, attention_share: Quantity, with_prompt: bool) -> PricedPass:
    """A pass of any sequences, at e_c `attention_share` of attention, by the mode of the question."""
    if question.textbook:
        return _dense_pass(question, numbers.tokens)
    return _operator_pass(question, numbers, attention_share, with_prompt)


def _operator_pass(question: Question, numbers: PassNumbers, attention_share: Quantity, with_prompt: bool) -> PricedPass:
    """A pass of the full operator model."""
    element = question.formats.element_bytes()
    load = question.load
    placement = Placement(load.tp, load.pp, load.ep, load.dp)
    work = operators(question.architecture, numbers, element, placement)
    return price(question.architecture, work, numbers, element, question.rates, attention_share, placement, with_prompt)


def _dense_pass(question: Question, tokens: Quantity) -> PricedPass:
    """The founding text's pass: two FLOPs per active parameter and token, one read of the weights it touches, whatever it carries.

    The bits of a weight alone are read, without block scales. The floor leaves out an untied input table, which is looked up. Of routed
    experts the distinct ones that so many tokens touch are read.
    """
    model, width, devices = question.architecture, question.formats.weight.payload_bytes, question.load.tp * question.load.dp
    counted, needed = model.active_parameters / devices, model.decode_weight_parameters / devices
    more = question.formats.expert.payload_bytes * _further_experts(model, tokens) / devices
    chosen = sum(group.count * group.chosen_parameters(model.hidden) for group in model.groups) / devices
    other = (question.formats.expert.payload_bytes - width) * chosen + more
    read, least = width * counted + other, width * needed + other
    return price_dense(2.0 * counted * tokens, read, 2.0 * needed * tokens, least, question.rates)


def _further_experts(model: ModelArchitecture, tokens: Quantity) -> Quantity:
    """Parameters of the distinct experts that `tokens` tokens touch beyond those that one goes through; 0 without experts."""
    further: Quantity = 0.0
    for group in model.groups:
        if group.experts is not None:
            part = group.experts
            touched = part.count * (1.0 - (1.0 - part.chosen / part.count) ** tokens)
            further = further + group.count * part.one_expert(model.hidden) * (touched - part.chosen)
    return further


def _interference(
    prefill: PricedPass, overlapped_s: PricedPass, decode: PricedPass, question: Question, running: Quantity, turn: Turn | None
) -> Quantity:
    """A prompt in the sequence's own group of a pipeline delays it until it is through all stages, one in another group by one stage."""
    load, share = question.load, question.rates.interference
    if turn is None:
        return 0.0
    added: Quantity = np.maximum(prefill.time_s - prefill.step_s - decode.weight_read_s, 0.0)
    in_own = overlapped_s.time_s / prefill.time_s
    # Equal requests come in waves, in which the sequences of a group are prompts together.
    apart = np.where(load.in_step, 1.0, in_own + (load.pp - 1.0) / load.pp)
    each = added * apart / load.pp
    beside = share * np.maximum(running / load.dp - 1.0, 0.0) / load.output_tokens * each
    waves = in_waves(load, question.schedule)
    found: Quantity = np.where(waves > 0, waves_s(load, running / load.dp, turn), beside)
    return found


def attention_flops_textbook(
    architecture: ModelArchitecture, prompt: Quantity, cached: Quantity = 0.0, batch: Quantity = 1.0, tp: Quantity = 1.0
) -> Quantity:
    """FLOPs of causal attention over a prompt as a continuous sum, 4·layers·heads·head_dim·(n·c + n²/2) for n new tokens after c.

    Without a cached prefix that is 2·layers·h·D·S², the line that textbook mode shows beside its figures (founding claims 11 and 12):
    3.3 % of the weights' work at 2,000 tokens of an 8-billion model, 52 % at 32,000. A windowed layer's pairs stop growing at its window.
    """
    flops: Quantity = 0.0
    for group in architecture.groups:
        part = group.attention or group.latent
        if part is not None:
            pairs = _triangle(prompt, part.reach) - _triangle(cached, part.reach)
            flops = flops + 2.0 * group.count * (part.query_size + part.output_size) / tp * batch * pairs
    return flops


def _triangle(positions: Quantity, reach: Reach) -> Quantity:
    if reach.span is None:
        return positions * positions / 2.0
    if reach.kind == "chunk":
        return seen_so_far(positions, reach)
    inside: Quantity = np.minimum(positions, float(reach.span))
    return inside * inside / 2.0 + (positions - inside) * inside
