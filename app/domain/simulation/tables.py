"""The passes a simulation can need, priced once: tables over the tokens of a pass and over the length of a sequence.

Whatever operators a model has, its passes are priced by the functions of a prediction, here for whole sets of sequences at once; the
parts that the kernel adds up (linear layers, reads of caches, prompt attention, sequences) are differences between such passes.
"""

from dataclasses import dataclass, replace

import numpy as np

from app.domain.constants import default
from app.domain.memory import footprint
from app.domain.phases import Question, price_pass
from app.domain.pools import Transfer
from app.domain.roofline import PricedPass, attention_efficiency, prompt_floor_s
from app.domain.schedule import Schedule
from app.domain.simulation.load import Floats, Wholes
from app.domain.simulation.state import Costs, Limits
from app.domain.under_load import looked_for_after
from app.domain.work import Quantity, pass_numbers

_TOKEN_POINTS = 45
_LENGTH_POINTS = 80
_LONGEST = 1e6
# Sequences that a share of one is taken from: far above what rounding weighs, and ranks share them evenly enough.
_MANY = 1e6
# e_c of attention at which its arithmetic, or its reads, are all that is seen.
_ALL_ARITHMETIC, _NO_ARITHMETIC = 1e-9, 1e12
# Share of the pool that admission leaves free for the caches that grow, where it does not set the whole answer aside.
_WATERMARK = 0.01
_STRAIGHT = 1e-9


def grid_to(most: float, points: int) -> Floats:
    """About so many whole numbers from 1 to `most`, closer together where they are small."""
    return np.unique(np.rint(np.geomspace(1.0, max(most, 2.0), points)))


def costs_of(question: Question, schedule: Schedule) -> Costs:
    """The tables of a question whose load is a single sequence (batch 1, no clients), of one attention rank where there are several."""
    rows, ranks = int(question.load.rows), int(question.load.dp)
    tokens = grid_to(max(schedule.chunk, schedule.cap * rows), _TOKEN_POINTS)
    lengths = grid_to(_LONGEST, _LENGTH_POINTS)
    passes = _Passes(question)
    read = ranks * passes.decode_read(lengths, rows)
    kept = _cache_bytes(question, lengths)
    prompt_read = ranks * passes.prompt_read(lengths)
    each = float(question.rates.per_sequence_s + question.architecture.depth * question.rates.sequence_layer_s)
    shared = passes.shared(tokens)
    return Costs(
        tokens=tokens,
        decode_s=passes.decode(ranks * tokens, rows) - shared,
        prompt_s=passes.prompt(tokens) - np.interp(tokens, lengths, prompt_read) - ranks * each - shared,
        logits_s=passes.logits(tokens),
        sequence_s=each,
        prompt_floor_s=float(prompt_floor_s(question.architecture, question.rates)),
        lengths=lengths,
        read_s=read,
        pair_s=passes.prompt_arithmetic(lengths) / lengths,
        prompt_read_s=prompt_read,
        kv_bytes=kept,
        straight=_is_straight(lengths, read) and _is_straight(lengths, kept),
        read_each_s=_slope(lengths, read),
        kv_each_bytes=_slope(lengths, kept),
        shared_s=shared,
        ranks=ranks,
    )


def limits_of(question: Question, schedule: Schedule, sequences: float) -> Limits:
    """The engine's rules for one attention rank, with the memory of a device beside the weights and the activations of `sequences` in all.

    The groups of sequences that the stages of a pipeline work on have an even share of the pool and of the cap each.
    """
    kept = 0.0 if schedule.reservation >= 1.0 else _WATERMARK
    groups = int(question.load.pp)
    pool = _pool_bytes(question, sequences) / groups
    return Limits(
        chunk_tokens=schedule.chunk,
        running_cap=max(schedule.cap // groups, 1),
        pool_bytes=pool,
        admit_bytes=pool * (1.0 - kept),
        reserve=schedule.reservation,
        alone=schedule.alone,
        rows=int(question.load.rows),
        accepted=float(question.load.accepted),
        serial_s=float(question.rates.serial_front_end_s),
        parallel_s=float(question.rates.front_end_s),
        look_steps=float(looked_for_after(question.load, question.rates, question.load.dp)),
        look_power=float(question.rates.admission_running_power),
    )


def cost_of_crossing(question: Question, lengths: Floats) -> Floats:
    """Seconds in which the cache of a sequence of each length crosses from the prefill pool to the decode pool."""
    load = replace(question.load, prompt_tokens=lengths, cached_prefix_tokens=0.0)
    return _over(lengths, Transfer.of(replace(question, load=load)).seconds)


def prompt_efficiency(question: Question, prompt: Wholes) -> Floats:
    """e_c of prompt attention for each prompt length."""
    lengths = prompt.astype(np.float64)
    return _over(lengths, attention_efficiency(lengths, question.rates.attention_limit))


@dataclass(frozen=True)
class _Passes:
    """Passes of one question as the expected seconds of whole sets of sequences."""

    question: Question

    def _seconds(self, new: Quantity, context: Quantity, batch: Quantity, rows: Quantity, share: float, with_prompt: bool) -> Quantity:
        numbers = pass_numbers(new, context, batch, rows)
        return _without_floor(price_pass(self.question, numbers, share, with_prompt))

    def decode(self, tokens: Floats, rows: int) -> Floats:
        """Decode passes of so many rows, `rows` to a sequence, each at its first position."""
        return _over(tokens, self._step(float(rows), 0.0, np.maximum(tokens / rows, 1.0)))

    def _step(self, rows: float, context: Quantity, batch: Quantity) -> Quantity:
        return self._seconds(rows, context, batch, rows, default("attention_efficiency.decode"), False)

    def decode_read(self, lengths: Floats, rows: int) -> Floats:
        """What a decode row's sequence of each length adds to a step beyond one at its first position."""
        context = np.maximum(lengths - rows, 0.0)
        return _over(lengths, self._step(float(rows), context, _MANY) - self._step(float(rows), 0.0, _MANY)) / _MANY

    def prompt(self, tokens: Floats) -> Floats:
        """A prompt of so many tokens on every attention rank, the attention's arithmetic left out."""
        return _over(tokens, self._seconds(tokens, 0.0, self.question.load.dp, 1.0, _NO_ARITHMETIC, True))

    def shared(self, tokens: Floats) -> Floats:
        """What so many tokens on each of several attention ranks take where all ranks' tokens meet: experts, and the way to them."""
        ranks = self.question.load.dp
        if ranks == 1:
            return np.zeros_like(tokens)

        def seconds(everywhere: Quantity) -> Quantity:
            one = pass_numbers(1.0).parts
            numbers = replace(pass_numbers(everywhere), rank=one)
            return _without_floor(price_pass(self.question, numbers, _NO_ARITHMETIC, False))

        return _over(tokens, seconds(ranks * tokens) - seconds(1.0))

    def prompt_read(self, lengths: Floats) -> Floats:
        """The read of a context while a prompt is computed."""
        far = self._seconds(1.0, lengths - 1.0, _MANY, 1.0, _NO_ARITHMETIC, True)
        return _over(lengths, far - self._seconds(1.0, 0.0, _MANY, 1.0, _NO_ARITHMETIC, True)) / _MANY

    def prompt_arithmetic(self, lengths: Floats) -> Floats:
        """Attention of whole prompts at e_c 1."""
        slow = self._seconds(lengths, 0.0, 1.0, 1.0, _ALL_ARITHMETIC, True) - self._seconds(lengths, 0.0, 1.0, 1.0, _NO_ARITHMETIC, True)
        return _over(lengths, slow) * _ALL_ARITHMETIC

    def logits(self, rows: Floats) -> Floats:
        """What more rows of logits than one add."""
        more = self._seconds(1.0, 0.0, 1.0, rows, _NO_ARITHMETIC, True) - self._seconds(1.0, 0.0, 1.0, 1.0, _NO_ARITHMETIC, True)
        return _over(rows, more)


def _without_floor(priced: PricedPass) -> Quantity:
    """The expected time without the least time of a pass with prompts, which the kernel applies to the whole pass."""
    missing = [term.time_s for term in priced.terms if term.name == "prefill_floor"]
    return priced.time_s - missing[0] if missing else priced.time_s


def _pool_bytes(question: Question, sequences: float) -> float:
    """Bytes of the pool on one device, from the footprint's own figures; inf where the device's memory is not known."""
    space = footprint(
        question.architecture, question.hardware, question.formats.element_bytes(), replace(question.load, batch=1.0, concurrency=sequences)
    )
    if space.capacity_bytes is None:
        return float("inf")
    usable = (1.0 - default("memory_kept_for_runtime")) * space.capacity_bytes
    return max(usable - float(space.weight_bytes) - float(space.activation_bytes), 0.0)


def _cache_bytes(question: Question, lengths: Floats) -> Floats:
    """Bytes of the cache of one sequence of each length."""
    load = replace(question.load, prompt_tokens=lengths, output_tokens=0.0, cached_prefix_tokens=0.0, batch=1.0, concurrency=None)
    return _over(lengths, footprint(question.architecture, question.hardware, question.formats.element_bytes(), load).kv_bytes)


def _is_straight(lengths: Floats, values: Floats) -> bool:
    """Whether the values lie on one straight line over the lengths."""
    line = values[0] + (lengths - lengths[0]) * _slope(lengths, values)
    return bool(np.all(np.abs(values - line) <= _STRAIGHT * np.abs(values[-1])))


def _slope(lengths: Floats, values: Floats) -> float:
    return float((values[-1] - values[0]) / (lengths[-1] - lengths[0]))


def _over(grid: Floats, values: Quantity) -> Floats:
    # A copy: what is broadcast cannot be written, which numba takes for another type, to be compiled anew.
    return np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), grid.shape), order="C")
