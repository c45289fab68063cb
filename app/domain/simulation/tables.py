"""The linear part of every pass a simulation can need, priced once: tables over token counts, and seconds a position, pair and sequence.

Whatever operators a model has, a pass is priced by the same functions as a prediction; here they are asked at the grid's token counts
with no attention, then with attention alone, so that the parts add up to what the whole pass would be priced at.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.domain.constants import default
from app.domain.memory import footprint
from app.domain.phases import Question, price_pass
from app.domain.roofline import PricedPass
from app.domain.schedule import Schedule, Speculation
from app.domain.simulation.load import Floats, Wholes
from app.domain.simulation.state import Costs, Limits
from app.domain.work import PassNumbers, Quantity

GRID_POINTS = 45
# Positions and pairs that a slope is taken over: far above what a launch or a rounding error weighs.
_MANY = 1e6
# Share of the pool that admission leaves free for the caches that grow, where it does not set the whole answer aside.
_WATERMARK = 0.01


@dataclass(frozen=True)
class KvSpace:
    """Bytes on each device: the pool for caches (inf where the device's memory is not known) and what one sequence takes of it."""

    pool_bytes: float
    position_bytes: float
    window_position_bytes: float
    sequence_bytes: float
    window: float

    def of(self, positions: float) -> float:
        """Bytes of a sequence of so many positions."""
        return self.sequence_bytes + self.position_bytes * positions + self.window_position_bytes * min(positions, self.window)


def token_grid(most: int) -> Floats:
    """About 45 whole token counts from 1 to `most`, closer together where they are small."""
    points = np.unique(np.rint(np.geomspace(1, max(most, 2), GRID_POINTS)))
    return points.astype(np.float64)


def costs_of(question: Question, schedule: Schedule, speculation: Speculation) -> Costs:
    """The tables of a question whose load is a single sequence (batch 1, no clients)."""
    grid = token_grid(max(schedule.chunk, schedule.cap * speculation.rows))
    rows = float(speculation.rows)
    sequences = np.maximum(grid / rows, 1.0)
    decode = _seconds(price_pass(question, _numbers(tokens=grid, rows=grid, sequences=sequences), prompt=None))
    prompt = _seconds(price_pass(question, _numbers(tokens=grid), prompt=question.load.prompt_tokens))
    one = _seconds(price_pass(question, _numbers(), prompt=question.load.prompt_tokens))
    logits = _seconds(price_pass(question, _numbers(rows=grid), prompt=question.load.prompt_tokens))
    crowd = _seconds(price_pass(question, _numbers(sequences=_MANY), prompt=question.load.prompt_tokens))
    window = question.architecture.sliding_window
    return Costs(
        tokens=grid,
        decode_s=_over(grid, decode),
        prompt_s=_over(grid, prompt),
        logits_s=_over(grid, logits - one),
        sequence_s=float(crowd - one) / _MANY,
        position_s=_decode_slope(question, rows, positions=1.0),
        window_position_s=_decode_slope(question, rows, window_positions=1.0),
        prompt_position_s=_prompt_slope(question, positions=1.0),
        prompt_window_position_s=_prompt_slope(question, window_positions=1.0),
        window=float("inf") if window is None else float(window),
        prompt_floor_s=0.0 if question.textbook else question.architecture.layers * float(question.rates.prefill_floor_per_layer_s),
    )


def pair_seconds(question: Question, prompt: Wholes) -> tuple[Floats, Floats]:
    """Seconds a pair of prompt attention for each prompt length, in layers that see everything and in those with a window."""
    lengths = prompt.astype(np.float64)
    return _pair_slope(question, lengths, pairs=1.0), _pair_slope(question, lengths, window_pairs=1.0)


def kv_space(question: Question, sequences: float) -> KvSpace:
    """The pool beside the weights and the activations of `sequences`, and a sequence's share of it, from the footprint's own figures."""
    window = question.architecture.sliding_window
    first, second = _cache_bytes(question, 1.0), _cache_bytes(question, 2.0)
    far = (window or 0) + 1.0
    position = _cache_bytes(question, far + 1.0) - _cache_bytes(question, far)
    windowed = max(second - first - position, 0.0)
    load = replace(question.load, batch=1.0, concurrency=sequences)
    space = footprint(question.architecture, question.hardware, question.formats.element_bytes(), load)
    free = float("inf")
    if space.capacity_bytes is not None:
        usable = (1.0 - default("memory_kept_for_runtime")) * space.capacity_bytes
        free = max(usable - float(space.weight_bytes) - float(space.activation_bytes), 0.0)
    return KvSpace(free, position, windowed, max(first - position - windowed, 0.0), float("inf") if window is None else float(window))


def limits_of(question: Question, schedule: Schedule, speculation: Speculation, space: KvSpace) -> Limits:
    """The engine's rules with the memory of this device."""
    rates = question.rates
    kept = 0.0 if schedule.reservation >= 1.0 else _WATERMARK
    return Limits(
        chunk_tokens=schedule.chunk,
        running_cap=schedule.cap,
        pool_bytes=space.pool_bytes,
        admit_bytes=space.pool_bytes * (1.0 - kept),
        kv_position=space.position_bytes,
        kv_window_position=space.window_position_bytes,
        kv_sequence=space.sequence_bytes,
        reserve=schedule.reservation,
        alone=schedule.prefill_alone,
        rows=speculation.rows,
        accepted=speculation.accepted,
        serial_s=float(rates.serial_front_end_s),
        parallel_s=float(rates.front_end_s),
    )


def _cache_bytes(question: Question, positions: float) -> float:
    load = replace(question.load, prompt_tokens=positions, output_tokens=0.0, cached_prefix_tokens=0.0, batch=1.0, concurrency=None)
    return float(footprint(question.architecture, question.hardware, question.formats.element_bytes(), load).kv_bytes)


def _numbers(**given: Quantity) -> PassNumbers:
    """A pass of one token and one row without attention, with the given numbers instead."""
    none: dict[str, Quantity] = {"pairs": 0.0, "positions": 0.0, "sequences": 0.0, "window_pairs": 0.0, "window_positions": 0.0}
    return PassNumbers(**{"tokens": 1.0, "rows": 1.0, **none, **given})


def _seconds(priced: PricedPass) -> Quantity:
    """The expected time without the least time of a pass with prompts, which the kernel applies to the whole pass."""
    missing = [term.time_s for term in priced.terms if term.name == "prefill_floor"]
    return priced.time_s - missing[0] if missing else priced.time_s


def _over(grid: Floats, values: Quantity) -> Floats:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.float64), grid.shape))


def _decode_slope(question: Question, rows: float, positions: float = 0.0, window_positions: float = 0.0) -> float:
    """Seconds a position that a decode row reads; `rows` rows of a verification pass share the read and pay the arithmetic each."""
    far = _numbers(
        positions=_MANY * positions,
        pairs=_MANY * rows * positions,
        window_positions=_MANY * window_positions,
        window_pairs=_MANY * rows * window_positions,
    )
    base = _seconds(price_pass(question, _numbers(), prompt=None))
    return max(float(_seconds(price_pass(question, far, prompt=None)) - base) / _MANY, 0.0)


def _prompt_slope(question: Question, positions: float = 0.0, window_positions: float = 0.0) -> float:
    prompt = question.load.prompt_tokens
    far = _numbers(positions=_MANY * positions, window_positions=_MANY * window_positions)
    base = _seconds(price_pass(question, _numbers(), prompt=prompt))
    return max(float(_seconds(price_pass(question, far, prompt=prompt)) - base) / _MANY, 0.0)


def _pair_slope(question: Question, prompt: Floats, pairs: float = 0.0, window_pairs: float = 0.0) -> npt.NDArray[np.float64]:
    many = _MANY * 1e3
    far = _numbers(pairs=many * pairs, window_pairs=many * window_pairs)
    more = _seconds(price_pass(question, far, prompt=prompt)) - _seconds(price_pass(question, _numbers(), prompt=prompt))
    return np.maximum(_over(prompt, more) / many, 0.0)
