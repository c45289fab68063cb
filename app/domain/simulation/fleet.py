"""Several engines at once: pools of prefill and decode replicas, attention ranks in lock-step, the stages of a pipeline.

Whatever runs passes is a unit: an engine, or one of the groups of sequences that a pipeline's stages work on at the same time. Its rows
are the attention ranks, each with sequences and a pool of its own; a pass of a unit takes as long as its fullest rank and what the
tokens of all need together. Events are taken in the order of time: the end of a unit's pass, the first request that reaches an idle one,
a moment at which the first stage of its pipeline is free. A pass goes through the stages one after another, each of which takes one pass
(or piece of a prompt) at a time.

A request goes to the row with the fewest inside, of several in turn. A prefill replica gives the first token and keeps the cache until it
has crossed; it crosses, first come first served, once a decode row has set room aside: the one whose link is free first, of several the
emptiest. What a row does with its sequences are the functions of `kernel`; like them these run as plain Python on lists or compiled on
arrays.
"""

import math

from app.domain.simulation.crossing import hand_over, join, let_go, second_tokens
from app.domain.simulation.kernel import (
    BLOCKED,
    DECODING,
    HEAD,
    HELD,
    NO_TOKEN,
    NOW,
    RUNNING,
    SENT,
    STACKED,
    STALLED,
    STEP,
    USED,
    after_prompts,
    count_steps,
    grow,
    growth,
    in_pass,
    make_room,
    noticed_after_s,
    plan,
    read_s,
    steps_to_an_end,
)
from app.domain.simulation.passes import interpolated, shared_s
from app.domain.simulation.state import (
    BUSY_S,
    BY_POOL,
    DECODE,
    DONE_SO_FAR,
    FREE,
    LAST_WAITING,
    NEXT_ROW,
    PASSES,
    POOL_PEAK,
    PREFILL,
    PROMPT_S,
    RUNNING_S,
    SENT_SO_FAR,
    Costs,
    Fleet,
    Limits,
    Mutable,
    Records,
    Requests,
    Slots,
    Traffic,
)

NEVER = math.inf
UNSET = -1.0


def serve(
    entry_costs: Costs,
    entry_limits: Limits,
    decode_costs: Costs,
    decode_limits: Limits,
    fleet: Fleet,
    requests: Requests,
    records: Records,
    traffic: Traffic,
    slots: Slots,
    n: Mutable,
    t: Mutable,
    clients: int,
) -> None:
    """Run every request to its end; `clients` as for one engine. The entry rows have the first costs and limits, decode rows the others."""
    total = len(requests.prompt)
    if clients > 0:
        for _ in range(min(clients, total)):
            send(entry_limits, fleet, records, traffic, slots, n, 0.0)
    while traffic.marks[DONE_SO_FAR] < total:
        unit, at = 0, NEVER
        for other in range(len(fleet.unit_engine)):
            moment = next_at(fleet, records, traffic, slots, n, t, other)
            if moment < at:
                unit, at = other, moment
        coming = traffic.marks[SENT_SO_FAR]
        if at == NEVER and coming == total:
            break
        if clients == 0 and coming < total and records.send[coming] <= at:
            send(entry_limits, fleet, records, traffic, slots, n, records.send[coming])
            continue
        limits = decode_limits if fleet.unit_role[unit] == DECODE else entry_limits
        if traffic.wakes[unit] < 0.0:
            end_pass(entry_limits, limits, fleet, records, traffic, slots, n, t, unit, at, clients > 0)
            hand_over(decode_costs, decode_limits, fleet, requests, records, traffic, slots, n, t, at)
        free = traffic.stage_free[fleet.unit_engine[unit]][0]
        if free > at:
            traffic.wakes[unit] = free
            continue
        traffic.wakes[unit] = UNSET
        costs = decode_costs if fleet.unit_role[unit] == DECODE else entry_costs
        until = NEVER
        if fleet.unit_role[unit] != PREFILL:
            until = soonest(entry_costs, entry_limits, fleet, records, traffic, slots, n, t, unit, clients)
        begin_pass(costs, limits, fleet, requests, records, traffic, slots, n, t, unit, at, until)


def row_of(slots: Slots, row: int) -> Slots:
    """The sequences of one row."""
    return Slots(
        slots.request[row],
        slots.context[row],
        slots.left[row],
        slots.prompt_left[row],
        slots.taken[row],
        slots.last[row],
        slots.chunk[row],
        slots.stack[row],
        slots.kept,
        slots.kept_left,
        slots.kept_last,
        slots.order[row],
    )


def send(limits: Limits, fleet: Fleet, records: Records, traffic: Traffic, slots: Slots, n: Mutable, at: float) -> None:
    """The next request leaves its client for the entry row with the fewest inside, through the front-end of that engine."""
    index = traffic.marks[SENT_SO_FAR]
    row = traffic.marks[NEXT_ROW]
    for place in range(fleet.entries):
        other = (traffic.marks[NEXT_ROW] + place) % fleet.entries
        if traffic.inside[other] < traffic.inside[row]:
            row = other
    traffic.marks[NEXT_ROW] = (row + 1) % fleet.entries
    engine = fleet.unit_engine[fleet.row_unit[row]]
    records.send[index] = at
    traffic.front_end[engine] = max(traffic.front_end[engine], at) + limits.serial_s
    records.arrive[index] = traffic.front_end[engine] + limits.parallel_s
    slots.order[row][n[row][SENT]] = index
    n[row][SENT] += 1
    traffic.inside[row] += 1
    traffic.row[index] = row
    traffic.marks[SENT_SO_FAR] = index + 1


def next_at(fleet: Fleet, records: Records, traffic: Traffic, slots: Slots, n: Mutable, t: Mutable, unit: int) -> float:
    """The next moment at which a unit can do something: its pass ends, its stage is free, or a request reaches it while it is idle."""
    if traffic.wakes[unit] >= 0.0:
        return float(traffic.wakes[unit])
    first = fleet.unit_first[unit]
    soonest_s, now = NEVER, t[first][NOW]
    for row in range(first, first + fleet.unit_rows[unit]):
        counts = n[row]
        if counts[RUNNING] + counts[STACKED] > 0:
            return float(now)
        if counts[HEAD] < counts[SENT]:
            if counts[BLOCKED] == BY_POOL and counts[HELD] > 0:
                # The pool is full of prompts that wait for another pool: the first that has crossed makes room.
                for place in range(counts[HELD]):
                    soonest_s = min(soonest_s, traffic.landed_at[traffic.held[row][place]])
            else:
                soonest_s = min(soonest_s, records.arrive[slots.order[row][counts[HEAD]]])
        if traffic.landed_head[row] < traffic.landed_sent[row]:
            soonest_s = min(soonest_s, traffic.landed_at[slots.order[row][traffic.landed_head[row]]])
    return float(max(soonest_s, now))


def soonest(
    costs: Costs,
    limits: Limits,
    fleet: Fleet,
    records: Records,
    traffic: Traffic,
    slots: Slots,
    n: Mutable,
    t: Mutable,
    unit: int,
    clients: int,
) -> float:
    """No request can reach the unit before this moment, beyond those whose arrival stands in its own rows."""
    until = NEVER
    coming = traffic.marks[SENT_SO_FAR]
    if clients == 0 and coming < len(records.send):
        until = records.send[coming] + limits.serial_s
    for other in range(len(fleet.unit_engine)):
        if other == unit:
            continue
        moment = next_at(fleet, records, traffic, slots, n, t, other)
        if fleet.unit_role[other] == DECODE:
            # What ends there comes back through the front-end, a prompt's pass and the way between the pools.
            moment += limits.serial_s + limits.parallel_s + costs.prompt_s[0]
        until = min(until, moment)
    return float(until)


def end_pass(
    entry_limits: Limits,
    limits: Limits,
    fleet: Fleet,
    records: Records,
    traffic: Traffic,
    slots: Slots,
    n: Mutable,
    t: Mutable,
    unit: int,
    at: float,
    closed: bool,
) -> None:
    """Complete requests leave, computed prompts wait to be taken over, and those that have crossed leave their place."""
    prefill = fleet.unit_role[unit] == PREFILL
    first = fleet.unit_first[unit]
    for row in range(first, first + fleet.unit_rows[unit]):
        mine, counts, clocks = row_of(slots, row), n[row], t[row]
        clocks[NOW] = max(clocks[NOW], at)
        if prefill:
            let_go(traffic, row, counts, clocks, at)
        kept = 0
        for slot in range(counts[RUNNING]):
            index = mine.request[slot]
            if mine.prompt_left[slot] == 0 and (mine.left[slot] <= NO_TOKEN or prefill):
                counts[DECODING] -= 1
                traffic.inside[row] -= 1
                if mine.left[slot] > NO_TOKEN:
                    traffic.held[row][counts[HELD]] = index
                    counts[HELD] += 1
                    traffic.held_bytes[index] = mine.taken[slot]
                    traffic.waiting[traffic.marks[LAST_WAITING]] = index
                    traffic.marks[LAST_WAITING] += 1
                    continue
                clocks[USED] -= mine.taken[slot]
                records.finish[index] = at
                traffic.marks[DONE_SO_FAR] += 1
                if closed and traffic.marks[SENT_SO_FAR] < len(records.send):
                    send(entry_limits, fleet, records, traffic, slots, n, at)
                continue
            if kept < slot:
                move(mine, slot, kept)
            kept += 1
        counts[RUNNING] = kept


def move(slots: Slots, slot: int, to: int) -> None:
    """A sequence closes ranks."""
    slots.request[to] = slots.request[slot]
    slots.context[to] = slots.context[slot]
    slots.left[to] = slots.left[slot]
    slots.prompt_left[to] = slots.prompt_left[slot]
    slots.taken[to] = slots.taken[slot]
    slots.last[to] = slots.last[slot]


def begin_pass(
    costs: Costs,
    limits: Limits,
    fleet: Fleet,
    requests: Requests,
    records: Records,
    traffic: Traffic,
    slots: Slots,
    n: Mutable,
    t: Mutable,
    unit: int,
    at: float,
    until: float,
) -> None:
    """Admit, and run what is there: a pass with prompts, or decode steps up to the moment at which a request may come."""
    role, first = fleet.unit_role[unit], fleet.unit_first[unit]
    last = first + fleet.unit_rows[unit]
    new, running, blocked = 0, 0, FREE
    for row in range(first, last):
        mine = row_of(slots, row)
        t[row][NOW] = max(t[row][NOW], at)
        if role == DECODE:
            join(costs, limits, requests, records, traffic, mine, n[row], row, at)
        if role != PREFILL:
            make_room(costs, limits, records, mine, n[row], t[row])
        new += plan(costs, limits, requests, records, mine, n[row], t[row])
        if fleet.stages > 1:
            # A group waits for the first stage between its passes: its gaps are longer than they.
            n[row][STALLED] = 1
        running += n[row][RUNNING]
        blocked = max(blocked, n[row][BLOCKED])
    if running == 0:
        return
    if new > 0:
        pass_with_prompts(costs, limits, fleet, requests, records, traffic, slots, n, t, unit, at)
    else:
        steps(costs, limits, fleet, records, traffic, slots, n, t, unit, at, until)
    took = t[first][NOW] - at
    units = len(fleet.unit_engine)
    if new > 0:
        records.sums[PROMPT_S] += took / units
    records.sums[BUSY_S] += took / units
    records.sums[RUNNING_S] += took * running
    records.blocked_s[blocked] += took / units
    traffic.busy_s[role] += took
    if limits.pool_bytes > 0.0:
        for row in range(first, last):
            records.sums[POOL_PEAK] = max(records.sums[POOL_PEAK], t[row][USED] / limits.pool_bytes)


def pass_with_prompts(
    costs: Costs,
    limits: Limits,
    fleet: Fleet,
    requests: Requests,
    records: Records,
    traffic: Traffic,
    slots: Slots,
    n: Mutable,
    t: Mutable,
    unit: int,
    at: float,
) -> None:
    """One pass with prompt tokens on any of the ranks; the others take their steps in it, or wait."""
    first = fleet.unit_first[unit]
    last = first + fleet.unit_rows[unit]
    most, together, rows, sequences, attention = 0.0, 0.0, 0.0, 0.0, 0.0
    for row in range(first, last):
        mine = row_of(slots, row)
        chunk = 0
        for slot in range(n[row][RUNNING]):
            chunk += mine.chunk[slot]
        carried = in_pass(costs, limits, requests, mine, n[row], chunk)
        most = max(most, carried[0])
        together += carried[0]
        rows = max(rows, carried[1])
        sequences += carried[2]
        attention = max(attention, carried[3])
    seconds = interpolated(costs.tokens, costs.prompt_s, most)
    seconds += interpolated(costs.tokens, costs.logits_s, rows) + costs.sequence_s * sequences + attention
    if costs.ranks > 1:
        seconds += shared_s(costs, together)
    pieces = max(1.0, math.ceil(together / fleet.piece_tokens)) if fleet.stages > 1 else 1.0
    ends = through(fleet, traffic, unit, at, max(seconds, costs.prompt_floor_s), pieces)
    records.sums[PASSES] += 1.0
    for row in range(first, last):
        mine = row_of(slots, row)
        t[row][NOW] = ends
        second_tokens(traffic, mine, n[row], ends, not limits.alone)
        after_prompts(costs, limits, records, mine, n[row], t[row], at)


def steps(
    costs: Costs,
    limits: Limits,
    fleet: Fleet,
    records: Records,
    traffic: Traffic,
    slots: Slots,
    n: Mutable,
    t: Mutable,
    unit: int,
    at: float,
    until: float,
) -> None:
    """Decode steps of all ranks, as many at once as nothing else happens in; one where other groups are in the pipeline."""
    first = fleet.unit_first[unit]
    last = first + fleet.unit_rows[unit]
    most, together, reading, ahead = 0.0, 0.0, 0.0, NEVER
    for row in range(first, last):
        mine, counts = row_of(slots, row), n[row]
        rows = float(counts[DECODING] * limits.rows)
        most = max(most, rows)
        together += rows
        reading = max(reading, read_s(costs, limits, mine, counts, 0.0))
        ahead = min(ahead, steps_to_an_end(mine.prompt_left, mine.left, counts[RUNNING], limits.accepted))
    linear = interpolated(costs.tokens, costs.decode_s, most)
    if costs.ranks > 1:
        linear += shared_s(costs, together)
    step = linear + reading
    for row in range(first, last):
        t[row][STEP] = step
        until = min(until, comes_to(limits, records, traffic, slots, n[row], t[row], row))
    if until < NEVER:
        ahead = min(ahead, math.ceil((until - at) / step))
    if others_run(fleet, n, unit):
        ahead = 1.0
    ahead = max(ahead, 1.0)
    for row in range(first, last):
        mine = row_of(slots, row)
        while ahead > 1.0 and t[row][USED] + growth(costs, mine, n[row], ahead * limits.accepted) > limits.pool_bytes:
            ahead = math.floor(ahead / 2.0)
    reading = 0.0
    for row in range(first, last):
        reading = max(reading, read_s(costs, limits, row_of(slots, row), n[row], limits.accepted * (ahead - 1.0) / 2.0))
    mean = linear + reading
    if fleet.stages == 1:
        ends = through(fleet, traffic, unit, at, mean * ahead, 1.0)
    else:
        ends = through(fleet, traffic, unit, at + mean * (ahead - 1.0), mean, 1.0)
        if ahead == 1.0:
            step = ends - at
            mean = step
    records.sums[PASSES] += ahead
    for row in range(first, last):
        mine = row_of(slots, row)
        t[row][NOW] = ends
        second_tokens(traffic, mine, n[row], at + step, True)
        count_steps(records.gaps, records.sums, mine.prompt_left, mine.last, n[row], at, step, mean, ahead)
        grow(costs, mine, n[row], t[row], ahead * limits.accepted)


def comes_to(limits: Limits, records: Records, traffic: Traffic, slots: Slots, counts: Mutable, clocks: Mutable, row: int) -> float:
    """When the next request can join a rank, by a landing from another pool or by an arrival that is noticed."""
    comes = NEVER
    if counts[BLOCKED] == FREE and counts[HEAD] < counts[SENT]:
        comes = records.arrive[slots.order[row][counts[HEAD]]] + noticed_after_s(limits, counts, clocks)
    if traffic.landed_head[row] < traffic.landed_sent[row]:
        comes = min(comes, traffic.landed_at[slots.order[row][traffic.landed_head[row]]])
    return comes


def others_run(fleet: Fleet, n: Mutable, unit: int) -> bool:
    """Whether another group of sequences is in the same pipeline."""
    for other in range(len(fleet.unit_engine)):
        if other != unit and fleet.unit_engine[other] == fleet.unit_engine[unit]:
            first = fleet.unit_first[other]
            for row in range(first, first + fleet.unit_rows[other]):
                if n[row][RUNNING] > 0:
                    return True
    return False


def through(fleet: Fleet, traffic: Traffic, unit: int, at: float, seconds: float, pieces: float) -> float:
    """When a pass that begins at `at` has gone through all stages, each of which takes its share of it, piece by piece."""
    free = traffic.stage_free[fleet.unit_engine[unit]]
    if fleet.stages == 1:
        free[0] = at + seconds
        return float(at + seconds)
    share, moment = seconds / (fleet.stages * pieces), at
    for _ in range(int(pieces)):
        moment = at
        for stage in range(fleet.stages):
            moment = max(moment, free[stage]) + share
            free[stage] = moment
    return float(moment)
