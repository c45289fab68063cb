"""What a pass carries: sets of equal sequences, and the numbers its work depends on.

Whatever the phase, a pass is a set of sequences, each with n new tokens after c tokens of context:

    T = Σ n                       tokens through every linear layer
    A = Σ n·c + n·(n+1)/2         causal attention pairs
    R = Σ (c + n)                 cached positions read
    S                             rows of logits wanted

A and R as a layer of limited reach sees them: a window clips both, a chunk starts anew, sparse attention picks the best positions.
Prefill is n = prompt, decode is n = 1; chunks, prefix hits and mixed steps are several sets in one pass. Everything takes floats or
numpy arrays that broadcast against each other. Source: the design's performance model, section 1.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from app.domain.layers import FULL, Reach

Quantity = float | npt.NDArray[np.float64]


def seen_so_far(positions: Quantity, reach: Reach) -> Quantity:
    """Attention pairs of the first `positions` tokens of a sequence: the sum of what token 1, 2, … sees."""
    if reach.span is None:
        return positions * (positions + 1.0) / 2.0
    span = float(reach.span)
    if reach.kind == "chunk":
        whole = np.floor(positions / span)
        rest = positions - whole * span
        of_chunks: Quantity = whole * (span * (span + 1.0) / 2.0) + rest * (rest + 1.0) / 2.0
        return of_chunks
    inside = np.minimum(positions, span)
    clipped: Quantity = inside * (inside + 1.0) / 2.0 + (positions - inside) * inside
    return clipped


@dataclass(frozen=True)
class Sequences:
    """`batch` equal sequences with `new` tokens after `context`, and `rows` of logits for each.

    With `steps` it is the mean over that many decode steps of one token, the first of which comes after `context`.
    """

    new: Quantity
    context: Quantity
    batch: Quantity
    rows: Quantity
    steps: Quantity | None = None

    @property
    def tokens(self) -> Quantity:
        """New tokens of all sequences."""
        return self.batch * self.new

    def pairs(self, reach: Reach) -> Quantity:
        """Attention pairs of all sequences, at this reach."""
        if self.steps is not None:
            return self.batch * self._mean_seen(self.steps, reach)
        if reach.span is None:
            return self.batch * (self.new * self.context + self.new * (self.new + 1.0) / 2.0)
        return self.batch * (seen_so_far(self.new + self.context, reach) - seen_so_far(self.context, reach))

    def positions(self, reach: Reach) -> Quantity:
        """Cached positions that all sequences read, at this reach.

        In a window the new tokens together read the last new + span - 1 at most; sparse attention reads at most span for each of them.
        """
        if self.steps is not None:
            return self.batch * self._mean_seen(self.steps, reach)
        end = self.new + self.context
        if reach.span is None:
            return self.batch * end
        span = float(reach.span)
        if reach.kind == "chunk":
            return self.batch * (np.mod(self.context, span) + self.new)
        return self.batch * np.minimum(end, self.new * span if reach.kind == "top" else self.new + (span - 1.0))

    def _mean_seen(self, steps: Quantity, reach: Reach) -> Quantity:
        if reach.span is None:
            return self.context + (steps + 1.0) / 2.0
        return (seen_so_far(self.context + steps, reach) - seen_so_far(self.context, reach)) / steps


@dataclass(frozen=True)
class PassNumbers:
    """The sets of sequences of one pass. Passes add up: the sum is one pass that carries both.

    `rank` are the sequences of the fullest attention rank, where they are not an even share.
    """

    parts: tuple[Sequences, ...]
    rank: tuple[Sequences, ...] | None = None

    def __add__(self, other: "PassNumbers") -> "PassNumbers":
        return PassNumbers(self.parts + other.parts)

    @property
    def tokens(self) -> Quantity:
        """T: tokens through every linear layer."""
        return _sum([part.tokens for part in self.parts])

    @property
    def rows(self) -> Quantity:
        """S: rows of logits."""
        return _sum([part.batch * part.rows for part in self.parts])

    @property
    def sequences(self) -> Quantity:
        """Sequences of all sets."""
        return _sum([part.batch for part in self.parts])

    @property
    def pairs(self) -> Quantity:
        """A: attention pairs of layers that see all positions."""
        return self.pairs_at(FULL)

    @property
    def positions(self) -> Quantity:
        """R: cached positions that layers read which see all of them."""
        return self.positions_at(FULL)

    def pairs_at(self, reach: Reach) -> Quantity:
        """Attention pairs at this reach."""
        return _sum([part.pairs(reach) for part in self.parts])

    def positions_at(self, reach: Reach) -> Quantity:
        """Cached positions read at this reach."""
        return _sum([part.positions(reach) for part in self.parts])

    def of_one_rank(self, ranks: Quantity) -> "PassNumbers":
        """The sequences of the fullest of `ranks` attention ranks that share them (attention data parallel)."""
        if not np.any(np.asarray(ranks) > 1):
            return self
        if self.rank is not None:
            return PassNumbers(self.rank)
        return PassNumbers(tuple(replace(part, batch=np.ceil(part.batch / ranks)) for part in self.parts))


def pass_numbers(new: Quantity, context: Quantity = 0.0, batch: Quantity = 1.0, rows: Quantity = 1.0) -> PassNumbers:
    """The numbers of `batch` equal sequences with `new` tokens after `context`; `rows` of logits per sequence."""
    return PassNumbers((Sequences(new, context, batch * 1.0, rows),))


def decode_steps(output: Quantity) -> Quantity:
    """Decode passes of a request: one less than its output tokens, since prefill makes the first; at least one is priced."""
    steps: Quantity = np.maximum(output - 1.0, 1.0)
    return steps


def mean_decode_numbers(prompt: Quantity, output: Quantity, batch: Quantity = 1.0) -> PassNumbers:
    """The mean over a request's decode steps, in closed form: step i = 1..output-1 reads prompt + i positions.

    Exact where a window clips part-way: the mean of what the steps see is a difference of two sums. Since every operator's
    time is linear in these numbers within a phase, the cost at the mean is the mean of the costs.
    """
    return PassNumbers((Sequences(1.0, prompt, batch * 1.0, 1.0, decode_steps(output)),))


def _sum(values: list[Quantity]) -> Quantity:
    """The sum in the given order, so that scalars and arrays agree to the last bit."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total
