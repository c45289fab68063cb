"""The way from a prefill pool to a decode pool: who crosses when, who takes them, and when their second token comes.

First come first served: a computed prompt crosses once a decode row has set room aside for it, the one whose link is free first, of several
the emptiest; until it has landed it keeps its place in the prefill pool. Like `kernel`, for plain Python and numba.
"""

import math

from app.domain.simulation.kernel import DECODING, HELD, NEW, RUNNING, STALLED, USED, held
from app.domain.simulation.passes import interpolated
from app.domain.simulation.state import FIRST_WAITING, LAST_WAITING, Costs, Fleet, Limits, Mutable, Records, Requests, Slots, Traffic

NEVER = math.inf


def let_go(traffic: Traffic, row: int, counts: Mutable, clocks: Mutable, at: float) -> None:
    """Prompts whose caches have crossed give back their place in the prefill pool."""
    kept = 0
    for place in range(counts[HELD]):
        index = traffic.held[row][place]
        if traffic.landed_at[index] <= at:
            clocks[USED] -= traffic.held_bytes[index]
        else:
            traffic.held[row][kept] = index
            kept += 1
    counts[HELD] = kept


def hand_over(
    costs: Costs,
    limits: Limits,
    fleet: Fleet,
    requests: Requests,
    records: Records,
    traffic: Traffic,
    slots: Slots,
    n: Mutable,
    t: Mutable,
    at: float,
) -> None:
    """Caches set off to decode rows that have room, those first that have waited longest."""
    while traffic.marks[FIRST_WAITING] < traffic.marks[LAST_WAITING]:
        index = traffic.waiting[traffic.marks[FIRST_WAITING]]
        length = float(requests.prompt[index])
        taken = held(costs, length + limits.reserve * requests.output[index])
        out = fleet.row_link[traffic.row[index]]
        row, begins = -1, NEVER
        for other in range(fleet.entries, len(fleet.row_unit)):
            inside = traffic.inside[other]
            if inside > 0 and (inside >= limits.running_cap or t[other][USED] + taken > limits.admit_bytes):
                continue
            could = max(at, max(traffic.link_free[out], traffic.link_free[fleet.row_link[other]]))
            if could < begins or (could == begins and inside < traffic.inside[row]):
                row, begins = other, could
        if row < 0:
            break
        traffic.marks[FIRST_WAITING] += 1
        into = fleet.row_link[row]
        ends = begins + interpolated(fleet.lengths, fleet.crossing_s, length)
        traffic.link_free[out] = ends
        traffic.link_free[into] = ends
        traffic.left_at[index] = begins
        traffic.landed_at[index] = ends
        traffic.row[index] = row
        t[row][USED] += taken
        traffic.inside[row] += 1
        slots.order[row][traffic.landed_sent[row]] = index
        traffic.landed_sent[row] += 1


def join(
    costs: Costs, limits: Limits, requests: Requests, records: Records, traffic: Traffic, slots: Slots, counts: Mutable, row: int, at: float
) -> None:
    """Requests whose caches have landed decode from the next pass on."""
    while traffic.landed_head[row] < traffic.landed_sent[row]:
        index = slots.order[traffic.landed_head[row]]
        if traffic.landed_at[index] > at:
            break
        traffic.landed_head[row] += 1
        slot = counts[RUNNING]
        length = float(requests.prompt[index])
        slots.request[slot] = index
        slots.context[slot] = length
        slots.prompt_left[slot] = 0
        slots.chunk[slot] = 0
        slots.left[slot] = requests.output[index] - 1.0
        slots.last[slot] = records.first[index]
        slots.taken[slot] = held(costs, length + limits.reserve * requests.output[index])
        counts[RUNNING] = slot + 1
        counts[DECODING] += 1
        counts[STALLED] = 1
        counts[NEW] += 1


def second_tokens(traffic: Traffic, slots: Slots, counts: Mutable, at: float, decoded: bool) -> None:
    """The requests that this pool has just taken over get their second token."""
    if counts[NEW] == 0 or not decoded:
        return
    for slot in range(counts[RUNNING]):
        index = slots.request[slot]
        if slots.prompt_left[slot] == 0 and traffic.second_at[index] < 0.0:
            traffic.second_at[index] = at
    counts[NEW] = 0
