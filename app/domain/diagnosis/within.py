"""What two runs say beyond their means: the step itself and the prompt pass itself, each without what the other does to it.

Under load a first token waits for others' passes and a token waits for others' prompts, so that one change moves both means. A run's own
rows tell them apart (`stream_readings`); what only rows give has no entry where a run has none.

    step itself      a + b n on both sides, at the number of sequences that both runs had
    extra            the same at one sequence and at the most that both had
    first itself     TTFT without a queue, less what up to two passes that got longer may have added to it
"""

from app.domain.diagnosis.changes import Seen, changed, moved
from app.domain.diagnosis.thresholds import MOSTLY, NOISE
from app.domain.diagnosis.times import first_tokens, stat_of
from app.domain.run import CANONICAL, Distribution, Run

# A prompt waits for the pass that runs when it comes, and shares its own with the others' steps.
PASSES_IN_FIRST_TOKEN = 2.0
# The standard error of a median, in those of a mean.
MEDIAN_ERROR = 1.25
# Runs whose numbers of sequences are this near need no line between them.
ALIKE = 0.25
# A step that grows less over the batch does not tell a constant from a factor, and neither does a share known no better than to 0.4.
GROWS, TELLS_APART = 0.05, 0.4
# Requests without a queue that a median needs.
ENOUGH = 5
# A slope counts from twice its standard error.
SURE = 2.0


def within_runs(base: Run, other: Run) -> Seen:
    """The observables that rows give, by name; empty where neither run has any."""
    steps = _step_itself(base, other)
    return {
        **steps,
        **_first_itself(base, other, steps),
        **_stalls(base, other),
        **_passed_over(base, other),
        **_bursts(base, other),
        **_batch(base, other),
    }


def _both(base: Run, other: Run, key: str, stat: str = "mean") -> tuple[float, float] | None:
    a, b = stat_of(base, key, stat), stat_of(other, key, stat)
    return None if a is None or b is None else (a, b)


def _line(run: Run, fixed: str, each: str) -> tuple[float, float, float] | None:
    """Intercept, slope and the slope's standard error of a fit that the run carries."""
    found = [run.distribution(fixed), run.distribution(each)]
    if found[0] is None or found[1] is None or found[0].mean is None or found[1].mean is None or run.withheld & {"itl_s", "chunk_gap_s"}:
        return None
    return found[0].mean, found[1].mean, found[1].std or 0.0


def _step_itself(base: Run, other: Run) -> dict[str, float]:
    """The step without prompts at one number of sequences on both sides, and how its fixed part and each sequence moved."""
    if _both(base, other, "itl_s", "p50") is None:
        # Gaps are those of tokens only where each brings one, as the median of ITL says.
        return {}
    a, b = _line(base, "step_fixed_s", "step_per_sequence_s"), _line(other, "step_fixed_s", "step_per_sequence_s")
    quiet, most = _both(base, other, "step_quiet_s"), _both(base, other, "decoding_requests", "max")
    usual = _both(base, other, "decoding_requests")
    if quiet is None or usual is None or most is None:
        return {}
    alike = abs(usual[1] / usual[0] - 1) <= ALIKE
    if a is None or b is None:
        return moved("step_itself", quiet) if alike else {}
    at = min(usual)
    found = moved("step_itself", (a[0] + a[1] * at, b[0] + b[1] * at))
    high = min(most)
    ends = [(b[0] - a[0]) + (b[1] - a[1]) * n for n in (1.0, high)]
    found |= {"extra_step_first_s": ends[0], "extra_step_last_s": ends[1], "extra_per_sequence_s": b[1] - a[1]}
    found |= changed("alone_itl", a[0] + a[1], b[0] + b[1])
    found |= _like_the_step(a, b, high, ends)
    if found["step_itself_added_s"] != 0:
        slope_share = (b[1] - a[1]) * at / found["step_itself_added_s"]
        unsure = SURE * (a[2] ** 2 + b[2] ** 2) ** 0.5 * at / abs(found["step_itself_added_s"])
        # Where the step itself is made by its sequences, a factor on it grows with them as well.
        like = slope_share > MOSTLY and MOSTLY <= found.get("extra_like_step", 0.0) <= 1 / MOSTLY
        if unsure < TELLS_APART and not like:
            found["sequences_share_of_step_change"] = slope_share
    return found


def _like_the_step(a: tuple[float, float, float], b: tuple[float, float, float], high: float, ends: list[float]) -> dict[str, float]:
    """How the added time grows from one sequence to the most, against how the base's step does: 1 like it, 0 not at all.

    No entry where the step hardly grows, or the slopes are not known well enough to tell 0 from 1.
    """
    low_step, high_step = a[0] + a[1], a[0] + a[1] * high
    if ends[0] <= 0 or low_step <= 0 or high_step / low_step - 1 < GROWS:
        return {}
    grown = high_step / low_step - 1
    unsure = SURE * (a[2] ** 2 + b[2] ** 2) ** 0.5 * (high - 1) / ends[0] / grown
    found = (ends[1] / ends[0] - 1) / grown
    return {"extra_like_step": found} if unsure < TELLS_APART * max(found, 1.0) else {}


def _first_itself(base: Run, other: Run, steps: Seen) -> dict[str, float]:
    """The first token without a queue and without the passes it waits for, and which part of it each prompt token has."""
    a_side, b_side = _lone(base), _lone(other)
    if a_side is None or b_side is None:
        return {}
    lone, errors = (a_side[0], b_side[0]), (a_side[1], b_side[1])
    found = moved("lone_ttft", lone)
    found["alone_ttft_change"] = found["lone_ttft_change"]
    whole = first_tokens(base, other)
    if whole is not None and whole[0] > 0 and whole[0] != whole[1]:
        found["alone_over_loaded_ttft"] = found["lone_ttft_change"] / (whole[1] / whole[0] - 1)
    # What the passes it waits for may have added is no word about the prompt pass itself.
    waits = PASSES_IN_FIRST_TOKEN * steps.get("step_itself_added_s", 0.0)
    explained = min(max(found["lone_ttft_added_s"], min(waits, 0.0)), max(waits, 0.0))
    found["first_itself_added_s"] = found["lone_ttft_added_s"] - explained
    found["first_itself_change"] = found["first_itself_added_s"] / lone[0]
    found["prompt_itself_change"] = found["first_itself_change"]
    noise = (errors[0] ** 2 + errors[1] ** 2) ** 0.5 / lone[0]
    found["lone_ttft_error_s"] = noise * lone[0]
    found["first_itself_change_noise"] = found["prompt_itself_change_noise"] = max(noise, NOISE)
    a, b = (_line(run, "prefill_fixed_s", "prefill_per_token_s") for run in (base, other))
    added = found["lone_ttft_added_s"]
    if a is not None and b is not None and added != 0 and base.workload.prompt_tokens_mean:
        unsure = SURE * (a[2] ** 2 + b[2] ** 2) ** 0.5 * base.workload.prompt_tokens_mean / abs(added)
        if unsure < TELLS_APART:
            found["tokens_share_of_first_change"] = (b[1] - a[1]) * base.workload.prompt_tokens_mean / added
        if a[1] > 0 and SURE * (a[2] ** 2 + b[2] ** 2) ** 0.5 / a[1] < TELLS_APART:
            found |= changed("prefill_per_token", a[1], b[1])
            found["prefill_per_token_change_noise"] = max(SURE * (a[2] ** 2 + b[2] ** 2) ** 0.5 / a[1], NOISE)
            # A line is steeper, too, where a prompt of its middle begins to fill the arithmetic: slower is what takes longer as a whole.
            found["prompt_pass_change"] = min(found["prefill_per_token_change"], found["first_itself_change"])
            found["prompt_itself_change"] = found["prompt_pass_change"]
    return found


def _lone(run: Run) -> tuple[float, float] | None:
    """TTFT without a queue and its standard error; None where it is not known.

    A fit is not known where it is not told from nothing, or is shorter than any step: a prompt's pass reads the weights as a step does.
    """
    found = run.distribution("lone_ttft_s")
    if found is None or found.p50 is None or (found.n or 0) < ENOUGH or run.withheld & {"ttft_s"}:
        return None
    quiet, error = run.distribution("step_quiet_s"), _error(found)
    shortest = (quiet.min or 0.0) if quiet is not None and not run.withheld & {"itl_s", "chunk_gap_s"} else 0.0
    return None if found.p50 <= max(SURE * error, shortest) else (found.p50, error)


def _error(lone: Distribution) -> float:
    """Standard error of a median of as many requests, or that of a fit."""
    return (lone.std or 0.0) if lone.definition != CANONICAL else MEDIAN_ERROR * (lone.std or 0.0) / (lone.n or 1) ** 0.5


def _stalls(base: Run, other: Run) -> dict[str, float]:
    """How often and how long a token waited for something other than a step."""
    found: dict[str, float] = {}
    shares = []
    for name, run in (("base", base), ("other", other)):
        gaps, stalls, quiet = (run.distribution(key) for key in ("chunk_gap_s", "stall_s", "step_quiet_s"))
        if gaps is None or not gaps.n or quiet is None:
            return {}
        shares.append((stalls.n or 0) / gaps.n if stalls is not None else 0.0)
        found[f"stall_share_{name}"] = shares[-1]
    found["stall_share_added"] = shares[1] - shares[0]
    # Where one side has no stall, its longest gap is the longest wait of a token.
    held = _both(base, other, "stall_s") or _both(base, other, "chunk_gap_s", "max")
    return {**found, **moved("held_up", held), **changed("stall_share", shares[0], shares[1])}


def _passed_over(base: Run, other: Run) -> dict[str, float]:
    """How often a sequence was put out while others went on, for each request."""
    shares = []
    for run in (base, other):
        if run.distribution("step_quiet_s") is None or not run.requests.completed:
            return {}
        passed = run.distribution("passed_over_s")
        shares.append((passed.n or 0) / run.requests.completed if passed is not None else 0.0)
    return {
        "passed_over_share_base": shares[0],
        "passed_over_share_other": shares[1],
        "passed_over_share_added": shares[1] - shares[0],
        **moved("passed_over", _both(base, other, "passed_over_s")),
    }


def _bursts(base: Run, other: Run) -> dict[str, float]:
    """The median gap, and how far below the mean it is: tokens that come together leave next to no time between most of them."""
    found: dict[str, float] = {}
    medians, means = _both(base, other, "chunk_gap_s", "p50"), _both(base, other, "chunk_gap_s")
    if medians is not None and means is not None and min(means) > 0:
        found |= {"gap_median_over_mean_base": medians[0] / means[0], "gap_median_over_mean_other": medians[1] / means[1]}
        found |= moved("gap_median", medians)
    return found


def _batch(base: Run, other: Run) -> dict[str, float]:
    """How many requests decoded at once, beside the clients that there were."""
    usual, top = _both(base, other, "decoding_requests"), _both(base, other, "decoding_requests", "max")
    high = _both(base, other, "decoding_requests", "p50")
    if usual is None or top is None or high is None:
        return {}
    found = {"decoding_base": usual[0], "decoding_other": usual[1], "decoding_most_base": top[0], "decoding_most_other": top[1]}
    found |= changed("decoding", usual[0], usual[1])
    found |= {"decoding_flatness_base": high[0] / top[0], "decoding_flatness_other": high[1] / top[1]}
    clients = base.workload.concurrency, other.workload.concurrency
    if clients[0] and clients[0] == clients[1]:
        found |= {"decoding_share_of_clients_base": usual[0] / clients[0], "decoding_share_of_clients_other": usual[1] / clients[1]}
        found["room_left_other"] = clients[1] - top[1]
    return found
