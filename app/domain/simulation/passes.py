"""Seconds and bytes inside the kernels: a pass from its parts, the cache that a sequence takes, the bin of a gap.

Written so that numba can compile them and plain Python can run them: scalars, indexing and arithmetic only.
"""

import math

from app.domain.simulation.state import BINS_PER_E_FOLD, FIRST_GAP_S, GAP_BINS, Column, Costs, Mutable


def interpolated(grid: Column, values: Column, at: float) -> float:
    """The value at `at` on the straight lines between grid points; the last line is continued."""
    low, high = 0, len(grid) - 1
    if at <= grid[0]:
        return float(values[0])
    while high - low > 1:
        middle = (low + high) // 2
        if grid[middle] <= at:
            low = middle
        else:
            high = middle
    share = (at - grid[low]) / (grid[high] - grid[low])
    return float(values[low] + share * (values[high] - values[low]))


def shared_s(costs: Costs, together: float) -> float:
    """What the tokens of all attention ranks take where they meet; one token alone is in the ranks' own time."""
    if together < costs.ranks:
        return float(costs.shared_s[0] * max(together - 1.0, 0.0) / (costs.ranks - 1.0))
    return interpolated(costs.tokens, costs.shared_s, together / costs.ranks)


def prompt_attention_s(costs: Costs, new: float, context: float, efficiency: float) -> float:
    """Attention of `new` prompt tokens after `context`: the longer of its arithmetic, Σ to the end less Σ to the context, and its reads."""
    end = context + new
    pairs_s = end * interpolated(costs.lengths, costs.pair_s, end)
    if context > 0.0:
        pairs_s -= context * interpolated(costs.lengths, costs.pair_s, context)
    return max(pairs_s / efficiency, interpolated(costs.lengths, costs.prompt_read_s, end))


def count_gap(gaps: Mutable, gap: float, times: float) -> None:
    """Count `times` gaps of `gap` seconds."""
    place = 0
    if gap > FIRST_GAP_S:
        place = min(int(math.log(gap / FIRST_GAP_S) * BINS_PER_E_FOLD), GAP_BINS - 1)
    gaps[place] += times
