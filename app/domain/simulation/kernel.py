"""The step simulator: an engine's loop, one pass after another, from the first request to the last.

Clients send through a serial front-end; the scheduler knows of an arrived request some decode steps later, and takes it into the next
pass that has room for it: tokens within the chunk budget, sequences under the running cap, cache within the pool. A finished prompt gives
the first token and decodes on. While no prompt waits, several decode steps are taken at once: as many as no request finishes in, none
arrives in and the pool has room for; they read R + k·S/2 positions on average. Where the pool is full the request that was admitted last
is put back, and what it had is computed anew.

The same functions run as plain Python on lists and, compiled by numba, on arrays (`forms`). Source: the design's engine profiles,
section 2.
"""

import math

from app.domain.simulation.passes import count_gap, interpolated, prompt_attention_s
from app.domain.simulation.state import (
    BUSY_S,
    BY_BUDGET,
    BY_CAP,
    BY_POOL,
    FREE,
    GAP_N,
    GAP_S,
    PASSES,
    POOL_PEAK,
    PREEMPTIONS,
    PROMPT_S,
    RUNNING_S,
    Costs,
    Limits,
    Mutable,
    Records,
    Requests,
    Slots,
)

# Places in the loop's own counters (whole numbers) and clocks (seconds, and bytes of the pool in use).
# HELD are prompts that are computed and keep their place until another pool has taken them, NEW those that it just took; STEP are the
# seconds of the latest decode step.
RUNNING, HEAD, SENT, DONE, STACKED, DECODING, BLOCKED, STALLED, HELD, NEW = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
COUNTERS = 10
NOW, FRONT_END, USED, STEP = 0, 1, 2, 3
CLOCKS = 4

# Steps taken at once at most, so that the gaps that are counted keep their spread as caches grow.
LONGEST_JUMP = 64.0
# Tokens left are sums of accepted tokens, which need not be whole: less than this is none.
NO_TOKEN = 1e-9


def simulate(
    costs: Costs, limits: Limits, requests: Requests, records: Records, slots: Slots, n: Mutable, t: Mutable, clients: int
) -> None:
    """Run every request to its end. `clients` above 0: a closed loop of so many; 0: sent at the moments in records.send."""
    total = len(requests.prompt)
    for index in range(total if clients == 0 else min(clients, total)):
        send(limits, records, slots, n, t, records.send[index])
    while n[DONE] < total:
        if n[RUNNING] == 0 and n[STACKED] == 0 and records.arrive[slots.order[n[HEAD]]] > t[NOW]:
            t[NOW] = records.arrive[slots.order[n[HEAD]]]
        began = t[NOW]
        make_room(costs, limits, records, slots, n, t)
        new = plan(costs, limits, requests, records, slots, n, t)
        if new > 0:
            prompt_pass(costs, limits, requests, records, slots, n, t, new)
            records.sums[PROMPT_S] += t[NOW] - began
        else:
            decode_steps(costs, limits, records, slots, n, t)
        took = t[NOW] - began
        records.sums[BUSY_S] += took
        records.sums[RUNNING_S] += took * n[RUNNING]
        records.sums[POOL_PEAK] = max(records.sums[POOL_PEAK], t[USED])
        records.blocked_s[n[BLOCKED]] += took
        release(limits, records, slots, n, t, clients > 0)


def send(limits: Limits, records: Records, slots: Slots, n: Mutable, t: Mutable, at: float) -> None:
    """The next request leaves its client and reaches the engine through the front-end, which serves one after another."""
    index = n[SENT]
    slots.order[index] = index
    records.send[index] = at
    t[FRONT_END] = max(t[FRONT_END], at) + limits.serial_s
    records.arrive[index] = t[FRONT_END] + limits.parallel_s
    n[SENT] = index + 1


def held(costs: Costs, length: float) -> float:
    """Bytes of the pool that a sequence of `length` positions takes."""
    if costs.straight:
        return float(costs.kv_bytes[0] + costs.kv_each_bytes * (length - costs.lengths[0]))
    return interpolated(costs.lengths, costs.kv_bytes, length)


def growth(costs: Costs, slots: Slots, n: Mutable, tokens: float) -> float:
    """Bytes that the decoding sequences take beyond what they hold, `tokens` later."""
    first = costs.kv_bytes[0] - costs.kv_each_bytes * costs.lengths[0]
    more = 0.0
    for slot in range(n[RUNNING]):
        if slots.prompt_left[slot] == 0:
            if costs.straight:
                taken = first + costs.kv_each_bytes * (slots.context[slot] + tokens)
            else:
                taken = interpolated(costs.lengths, costs.kv_bytes, slots.context[slot] + tokens)
            more += max(taken - slots.taken[slot], 0.0)
    return more


def grow(costs: Costs, slots: Slots, n: Mutable, t: Mutable, tokens: float) -> None:
    """Every decoding sequence is `tokens` longer, and so is its cache."""
    first = costs.kv_bytes[0] - costs.kv_each_bytes * costs.lengths[0]
    for slot in range(n[RUNNING]):
        if slots.prompt_left[slot] == 0:
            slots.context[slot] += tokens
            slots.left[slot] -= tokens
            slots.last[slot] = t[NOW]
            if costs.straight:
                taken = first + costs.kv_each_bytes * slots.context[slot]
            else:
                taken = interpolated(costs.lengths, costs.kv_bytes, slots.context[slot])
            if taken > slots.taken[slot]:
                t[USED] += taken - slots.taken[slot]
                slots.taken[slot] = taken


def make_room(costs: Costs, limits: Limits, records: Records, slots: Slots, n: Mutable, t: Mutable) -> None:
    """Put back the requests admitted last until the pool can hold what the next decode step adds. One always stays."""
    while n[RUNNING] > 1 and t[USED] + growth(costs, slots, n, limits.accepted) > limits.pool_bytes:
        slot = n[RUNNING] - 1
        index = slots.request[slot]
        slots.stack[n[STACKED]] = index
        n[STACKED] += 1
        if slots.prompt_left[slot] == 0:
            slots.kept[index] = int(slots.context[slot]) + 1
            slots.kept_left[index] = slots.left[slot]
            slots.kept_last[index] = slots.last[slot]
            n[DECODING] -= 1
        t[USED] -= slots.taken[slot]
        n[RUNNING] = slot
        records.sums[PREEMPTIONS] += 1.0


def plan(costs: Costs, limits: Limits, requests: Requests, records: Records, slots: Slots, n: Mutable, t: Mutable) -> int:
    """Prompt tokens of the next pass: prompts under way first, then those that wait, as far as budget, cap and pool allow."""
    budget = limits.chunk_tokens
    if not limits.alone:
        budget -= n[DECODING] * limits.rows
    new = 0
    for slot in range(n[RUNNING]):
        slots.chunk[slot] = min(slots.prompt_left[slot], max(budget - new, 0))
        new += slots.chunk[slot]
    n[BLOCKED] = FREE
    arrived = t[NOW] - noticed_after_s(limits, n, t)
    while n[STACKED] > 0 or (n[HEAD] < n[SENT] and records.arrive[slots.order[n[HEAD]]] <= arrived):
        again = n[STACKED] > 0
        index = slots.stack[n[STACKED] - 1] if again else slots.order[n[HEAD]]
        length = max(slots.kept[index], requests.prompt[index])
        room = requests.prompt[index] + limits.reserve * requests.output[index]
        taken = held(costs, max(float(length), room))
        if new >= budget:
            n[BLOCKED] = BY_BUDGET
        elif n[RUNNING] >= limits.running_cap:
            n[BLOCKED] = BY_CAP
        elif t[USED] + taken > limits.admit_bytes and n[RUNNING] + n[HELD] > 0:
            n[BLOCKED] = BY_POOL
        if n[BLOCKED] != FREE:
            break
        if again:
            n[STACKED] -= 1
        else:
            records.start[index] = t[NOW]
            n[HEAD] += 1
        t[USED] += taken
        new += admit(requests, slots, n, index, length, taken, budget - new)
    return new


def admit(requests: Requests, slots: Slots, n: Mutable, index: int, length: int, taken: float, budget: int) -> int:
    """Give a request a slot and `length` tokens to compute, those in the cache aside; how many of them the next pass computes."""
    slot = n[RUNNING]
    cached = min(requests.cached[index], length - 1)
    slots.request[slot] = index
    slots.context[slot] = float(cached)
    slots.prompt_left[slot] = length - cached
    slots.left[slot] = slots.kept_left[index] if slots.kept[index] > 0 else float(requests.output[index])
    slots.last[slot] = slots.kept_last[index]
    slots.taken[slot] = taken
    chunk: int = min(length - cached, budget)
    slots.chunk[slot] = chunk
    n[RUNNING] = slot + 1
    return chunk


def prompt_pass(costs: Costs, limits: Limits, requests: Requests, records: Records, slots: Slots, n: Mutable, t: Mutable, new: int) -> None:
    """One pass with prompt tokens; under the mixed policy every decoding sequence takes its step in it."""
    tokens, rows, sequences, attention = in_pass(costs, limits, requests, slots, n, new)
    seconds = interpolated(costs.tokens, costs.prompt_s, tokens)
    seconds += interpolated(costs.tokens, costs.logits_s, rows) + costs.sequence_s * sequences + attention
    began = t[NOW]
    t[NOW] += max(seconds, costs.prompt_floor_s)
    records.sums[PASSES] += 1.0
    after_prompts(costs, limits, records, slots, n, t, began)


def in_pass(costs: Costs, limits: Limits, requests: Requests, slots: Slots, n: Mutable, new: int) -> tuple[float, float, float, float]:
    """What a pass with `new` prompt tokens carries: tokens, rows of logits, sequences, and the seconds of its attention."""
    decoding = 0 if limits.alone else n[DECODING]
    sequences, rows, attention = decoding, decoding * limits.rows, 0.0
    for slot in range(n[RUNNING]):
        if slots.chunk[slot] > 0:
            index = slots.request[slot]
            sequences += 1
            rows += 1 if slots.chunk[slot] == slots.prompt_left[slot] else 0
            chunk, context = float(slots.chunk[slot]), slots.context[slot]
            attention += prompt_attention_s(costs, chunk, context, requests.efficiency[index])
    if decoding > 0:
        attention += read_s(costs, limits, slots, n, 0.0)
    return float(new + decoding * limits.rows), float(rows), float(sequences), attention


def after_prompts(costs: Costs, limits: Limits, records: Records, slots: Slots, n: Mutable, t: Mutable, began: float) -> None:
    """What a pass with prompts that began at `began` and ends now has brought: steps of decoding sequences, pieces of prompts."""
    decoding = 0 if limits.alone else n[DECODING]
    if decoding > 0:
        # Under the mixed policy no pass leaves a decoding sequence out, so all of them wait as long as the pass takes.
        count_steps(records.gaps, records.sums, slots.prompt_left, slots.last, n, began, t[NOW] - began, t[NOW] - began, 1.0)
        grow(costs, slots, n, t, limits.accepted)
    n[STALLED] = 1 if limits.alone else 0
    for slot in range(n[RUNNING]):
        if slots.chunk[slot] > 0:
            slots.context[slot] += slots.chunk[slot]
            slots.prompt_left[slot] -= slots.chunk[slot]
            if slots.prompt_left[slot] == 0:
                first_of_prompt(records, slots, slot, n, t)


def first_of_prompt(records: Records, slots: Slots, slot: int, n: Mutable, t: Mutable) -> None:
    """A prompt is computed and brings a token: the request's first, or the next one of a request that had been put back."""
    index = slots.request[slot]
    if records.first[index] < 0.0:
        records.first[index] = t[NOW]
    else:
        count(records.gaps, records.sums, t[NOW] - slots.last[slot], 1.0)
    slots.left[slot] -= 1.0
    slots.last[slot] = t[NOW]
    n[DECODING] += 1


def count(gaps: Mutable, sums: Mutable, gap: float, times: float) -> None:
    """Record `times` gaps between deliveries."""
    count_gap(gaps, gap, times)
    sums[GAP_S] += gap * times
    sums[GAP_N] += times


def read_s(costs: Costs, limits: Limits, slots: Slots, n: Mutable, ahead: float) -> float:
    """Seconds in which the decoding sequences read their caches in one step, `ahead` tokens from now."""
    seconds, positions = 0.0, 0.0
    for slot in range(n[RUNNING]):
        if slots.prompt_left[slot] == 0:
            length = slots.context[slot] + ahead + limits.rows
            if costs.straight:
                positions += length - costs.lengths[0]
            else:
                seconds += interpolated(costs.lengths, costs.read_s, length)
    if costs.straight:
        seconds = costs.read_s[0] * n[DECODING] + costs.read_each_s * positions
    return float(seconds)


def decode_steps(costs: Costs, limits: Limits, records: Records, slots: Slots, n: Mutable, t: Mutable) -> None:
    """Decode steps of all running sequences, as many at once as nothing else happens in."""
    linear = interpolated(costs.tokens, costs.decode_s, float(n[DECODING] * limits.rows))
    step = linear + read_s(costs, limits, slots, n, 0.0)
    t[STEP] = step
    steps = steps_to_an_end(slots.prompt_left, slots.left, n[RUNNING], limits.accepted)
    if n[BLOCKED] == FREE and n[HEAD] < n[SENT]:
        noticed = records.arrive[slots.order[n[HEAD]]] + noticed_after_s(limits, n, t)
        steps = min(steps, math.ceil((noticed - t[NOW]) / step))
    steps = max(steps, 1.0)
    spare = limits.pool_bytes - t[USED]
    while steps > 1.0 and growth(costs, slots, n, steps * limits.accepted) > spare:
        steps = math.floor(steps / 2.0)
    mean = linear + read_s(costs, limits, slots, n, limits.accepted * (steps - 1.0) / 2.0)
    began = t[NOW]
    t[NOW] += mean * steps
    records.sums[PASSES] += steps
    count_steps(records.gaps, records.sums, slots.prompt_left, slots.last, n, began, step, mean, steps)
    grow(costs, slots, n, t, steps * limits.accepted)


def noticed_after_s(limits: Limits, n: Mutable, t: Mutable) -> float:
    """Seconds from a request's arrival until the scheduler knows of it, beyond the half step until the next pass; 0 where nothing runs."""
    if n[RUNNING] == 0:
        return 0.0
    return float(max(limits.look_steps * float(n[RUNNING]) ** limits.look_power - 0.5, 0.0) * t[STEP])


# What follows is called for every few steps: columns alone are handed over, since a compiled call counts the owners of every array.


def steps_to_an_end(prompt_left: Mutable, left: Mutable, running: int, accepted: float) -> float:
    """Steps until the first of the decoding sequences is complete."""
    steps = LONGEST_JUMP
    for slot in range(running):
        if prompt_left[slot] == 0:
            steps = min(steps, math.ceil((left[slot] - NO_TOKEN) / accepted))
    return float(steps)


def count_steps(
    gaps: Mutable, sums: Mutable, prompt_left: Mutable, last: Mutable, n: Mutable, began: float, step: float, mean: float, steps: float
) -> None:
    """Record the gaps of so many decode steps from `began` on; the first of them took `step` seconds, all of them `mean` on average."""
    if n[STALLED] == 1:
        for slot in range(n[RUNNING]):
            if prompt_left[slot] == 0:
                count(gaps, sums, began + step - last[slot], 1.0)
        n[STALLED] = 0
        if steps > 1.0:
            count(gaps, sums, (mean * steps - step) / (steps - 1.0), (steps - 1.0) * n[DECODING])
    else:
        count(gaps, sums, mean, steps * n[DECODING])


def release(limits: Limits, records: Records, slots: Slots, n: Mutable, t: Mutable, closed: bool) -> None:
    """Requests that are complete leave, and with closed loops their clients send the next; the others close ranks."""
    kept = 0
    for slot in range(n[RUNNING]):
        if slots.prompt_left[slot] == 0 and slots.left[slot] <= NO_TOKEN:
            records.finish[slots.request[slot]] = t[NOW]
            t[USED] -= slots.taken[slot]
            n[DONE] += 1
            n[DECODING] -= 1
            if closed and n[SENT] < len(records.send):
                send(limits, records, slots, n, t, t[NOW])
            continue
        if kept < slot:
            slots.request[kept] = slots.request[slot]
            slots.context[kept] = slots.context[slot]
            slots.left[kept] = slots.left[slot]
            slots.prompt_left[kept] = slots.prompt_left[slot]
            slots.taken[kept] = slots.taken[slot]
            slots.last[kept] = slots.last[slot]
        kept += 1
    n[RUNNING] = kept
