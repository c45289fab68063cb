"""Seconds and bytes inside the kernels: a pass from its parts, the cache that a sequence takes, the bin of a gap.

Written so that numba can compile them and plain Python can run them: scalars, indexing and arithmetic only.
"""

import math

from app.domain.simulation.state import BINS_PER_E_FOLD, FIRST_GAP_S, GAP_BINS, Column, Costs, Limits, Mutable


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


def reached(length: float, window: float) -> float:
    """Attention pairs of the first `length` tokens of a sequence: Σ min(j, window)."""
    inside = min(length, window)
    return inside * (inside + 1.0) / 2.0 + (length - inside) * inside


def held(limits: Limits, length: float, window: float) -> float:
    """Bytes of the pool that a sequence of `length` positions takes."""
    return limits.kv_sequence + limits.kv_position * length + limits.kv_window_position * min(length, window)


def prompt_attention_s(costs: Costs, new: float, context: float, pair_s: float, window_pair_s: float) -> float:
    """Attention of `new` prompt tokens after `context`: the longer of its arithmetic and its reads, layers with a window apart."""
    end = context + new
    arithmetic = (new * context + new * (new + 1.0) / 2.0) * pair_s
    seconds = max(arithmetic, end * costs.prompt_position_s)
    if costs.prompt_window_position_s > 0.0 or window_pair_s > 0.0:
        seen = min(end, new + costs.window - 1.0)
        pairs = reached(end, costs.window) - reached(context, costs.window)
        seconds += max(pairs * window_pair_s, seen * costs.prompt_window_position_s)
    return seconds


def count_gap(gaps: Mutable, gap: float, times: float) -> None:
    """Count `times` gaps of `gap` seconds."""
    place = 0
    if gap > FIRST_GAP_S:
        place = min(int(math.log(gap / FIRST_GAP_S) * BINS_PER_E_FOLD), GAP_BINS - 1)
    gaps[place] += times
