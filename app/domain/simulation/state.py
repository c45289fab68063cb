"""What the step simulator's kernels read and write: named columns of plain numbers.

Each tuple holds lists when the kernel runs as plain Python and numpy arrays when numba has compiled it; the code is the same. Times are
seconds, lengths tokens, memory bytes (of one device, or of one attention rank where there are several).
"""

from typing import Any, NamedTuple

Column = Any  # a list or an array of numbers: the kernels index it and nothing else
Mutable = Any  # the same, written to

# Why a request that had arrived was not taken into the next pass; the place of each in Records.blocked_s.
FREE, BY_CAP, BY_POOL, BY_BUDGET = 0, 1, 2, 3
LIMITS = ("none", "cap", "pool", "budget")

# Gaps between deliveries are counted in bins of one percent from a microsecond up: ten decades.
FIRST_GAP_S = 1e-6
BINS_PER_E_FOLD = 100.0
GAP_BINS = 2303


class Costs(NamedTuple):
    """The seconds of a pass in parts that add up, and the bytes of a sequence.

    By `tokens` of the pass, from 1 up: `decode_s`, a decode pass of so many rows without the reads of their caches; `prompt_s`, a pass
    with so many prompt tokens, one row of logits wanted, without attention. `logits_s` is what more rows of logits add, `sequence_s`
    each further sequence, `prompt_floor_s` the least time of a pass with prompt tokens.
    By `lengths` of a sequence, from 1 up: `read_s`, the read of its cache in one decode step; `pair_s`, the attention of a whole prompt
    of that length at an efficiency of 1, per token of it; `prompt_read_s`, its read while a prompt is computed; `kv_bytes`, its cache.
    Where `ranks` attention ranks share the experts all of this is one rank's, and `shared_s` is what a pass adds for the tokens of all of
    them, by their mean: the ranks wait for each other.
    `straight`: `read_s` and `kv_bytes` grow by the same for every token, so that `read_each_s` and `kv_each_bytes` beyond the first one
    tell all.
    """

    tokens: Column
    decode_s: Column
    prompt_s: Column
    logits_s: Column
    sequence_s: float
    prompt_floor_s: float
    lengths: Column
    read_s: Column
    pair_s: Column
    prompt_read_s: Column
    kv_bytes: Column
    straight: bool
    read_each_s: float
    kv_each_bytes: float
    shared_s: Column
    ranks: int


class Limits(NamedTuple):
    """How an engine schedules. `pool_bytes` holds the caches of all sequences.

    A pass carries at most `chunk_tokens` tokens and `running_cap` sequences. Admission sets room aside for the prompt and the share
    `reserve` of the answer, and fills the pool to `admit_bytes`; what grows beyond it may need a preemption. `alone`: passes with
    prompts carry no decode rows.
    A decode row is `rows` tokens wide and brings `accepted` of them (1 and 1.0 without speculation). `serial_s` is the front-end's time
    one request after another, `parallel_s` the rest of it. A request is in a pass `look_steps` decode steps after it has arrived on
    average, times the power `look_power` of the sequences that run, and at once where nothing runs.
    """

    chunk_tokens: int
    running_cap: int
    pool_bytes: float
    admit_bytes: float
    reserve: float
    alone: bool
    rows: int
    accepted: float
    serial_s: float
    parallel_s: float
    look_steps: float
    look_power: float


class Requests(NamedTuple):
    """One entry a request, in the order of sending: token counts, tokens already cached, and the efficiency of its prompt attention."""

    prompt: Column
    output: Column
    cached: Column
    efficiency: Column


class Records(NamedTuple):
    """What happened, one entry a request: moments in seconds. `gaps` counts gaps between deliveries by bin.

    `blocked_s` is the time in which a waiting request was held back by each of LIMITS. `sums`: see the places below.
    """

    send: Mutable
    arrive: Mutable
    start: Mutable
    first: Mutable
    finish: Mutable
    gaps: Mutable
    blocked_s: Mutable
    sums: Mutable


class Fleet(NamedTuple):
    """The engines that serve together, as units that run passes and rows of sequences.

    A unit is an engine, or one of the groups of sequences that the stages of its pipeline work on at the same time: `unit_engine`,
    `unit_first` (its first row), `unit_rows` (attention ranks, which wait for each other), `unit_role` (one of the places below).
    `row_unit` is the unit of each row and `row_link` its place among those that send or take caches over the same link; the first
    `entries` rows take requests. Stages of a pipeline: `stages`; a prompt goes through them in pieces of `piece_tokens`.
    `crossing_s`, by lengths of a sequence, is how long its cache takes from one pool to the other.
    """

    unit_engine: Column
    unit_first: Column
    unit_rows: Column
    unit_role: Column
    row_unit: Column
    row_link: Column
    entries: int
    stages: int
    piece_tokens: float
    lengths: Column
    crossing_s: Column


BOTH, PREFILL, DECODE = 0, 1, 2


class Traffic(NamedTuple):
    """What the units of a fleet do at the moment; the kernel's own memory, and what it records of caches that crossed.

    By unit: `wakes`, the moment at which the first stage is free for it (below 0: it does not wait for that). By engine: `stage_free`,
    `front_end`; by link: `link_free`. By row: `inside`, requests that were given to it and are not done with; `landed_head` and
    `landed_sent`, of those that cross to it; `held`, of those that it keeps until they have. `waiting` lists prompts that no decode row
    has taken yet; `marks` has its first and last place, the requests sent and done, and the row that is next in turn. By request: `row`,
    the row that has it; `held_bytes` of the prefill pool; `left_at`, `landed_at`, `second_at`, the moments at which its cache sets off
    and arrives and at which its second token comes. `busy_s` are seconds of passes by role, all units together.
    """

    wakes: Mutable
    stage_free: Mutable
    front_end: Mutable
    link_free: Mutable
    inside: Mutable
    landed_head: Mutable
    landed_sent: Mutable
    held: Mutable
    waiting: Mutable
    marks: Mutable
    row: Mutable
    held_bytes: Mutable
    left_at: Mutable
    landed_at: Mutable
    second_at: Mutable
    busy_s: Mutable


# Places in Traffic.marks.
FIRST_WAITING, LAST_WAITING, SENT_SO_FAR, DONE_SO_FAR, NEXT_ROW = 0, 1, 2, 3, 4

# Places in Records.sums: of the gaps their seconds and number; sequence-seconds of running; seconds of passes, and of those with prompts;
# preemptions, passes, and the most bytes of the pool that were in use.
GAP_S, GAP_N, RUNNING_S, BUSY_S, PROMPT_S, PREEMPTIONS, PASSES, POOL_PEAK = 0, 1, 2, 3, 4, 5, 6, 7
SUMS = 8


class Slots(NamedTuple):
    """The running sequences in the order of admission, and what preempted ones had made; the kernel's own memory.

    By slot: `request`; `context`, positions in the cache; `left`, tokens to come; `prompt_left`, tokens to compute before the next one
    comes; `taken`, bytes of the pool; `last`, moment of the last delivery; `chunk`, prompt tokens in the pass at hand.
    `stack` lists preempted requests, `order` those that came, in order of arrival. By request: `kept`, the
    tokens to compute anew (0: never preempted), `kept_left`, `kept_last`.
    """

    request: Mutable
    context: Mutable
    left: Mutable
    prompt_left: Mutable
    taken: Mutable
    last: Mutable
    chunk: Mutable
    stack: Mutable
    kept: Mutable
    kept_left: Mutable
    kept_last: Mutable
    order: Mutable
