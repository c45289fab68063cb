"""Data flags of two runs set against each other: what no run shows alone.

A flag never decides which phase moved; it says why a difference is not what it looks like.
"""

from app.domain.observed import observed, observed_first_token, observed_step
from app.domain.run import Flag, Run
from app.domain.text import duration, percent

LENGTHS_DIFFER = 0.05
NOISE = 0.03
CLOCKS_DIFFER = 0.02
PAUSE_S = 0.5


def pair_flags(base: Run, other: Run) -> tuple[Flag, ...]:
    """Every flag that the two runs give rise to together."""
    found = (
        not_comparable_workload(base, other),
        short_outputs_eos(base, other),
        idle_wakeup(base, other),
        clock_throttle(base, other),
    )
    return tuple(flag for flag in found if flag is not None)


def _change(base: float | None, other: float | None) -> float | None:
    return other / base - 1 if base and other is not None else None


def _apart(base: float | None, other: float | None, by: float) -> bool:
    change = _change(base, other)
    return change is not None and abs(change) > by


def not_comparable_workload(base: Run, other: Run) -> Flag | None:
    """Mean prompt or output lengths differ by more than 5 %, or one side had context before the measured tokens."""
    a, b = base.workload, other.workload
    parts, figures = [], dict[str, float]()
    for word, before, after in (
        ("prompts", a.prompt_tokens_mean, b.prompt_tokens_mean),
        ("outputs", a.output_tokens_mean, b.output_tokens_mean),
    ):
        if before and after and _apart(before, after, LENGTHS_DIFFER):
            parts.append(f"{word} of {before:,.5g} against {after:,.5g} tokens")
            figures |= {f"{word}_base": before, f"{word}_other": after}
    if a.context_depth_tokens != b.context_depth_tokens:
        parts.append(f"{a.context_depth_tokens:,} against {b.context_depth_tokens:,} tokens of context before")
        figures |= {"depth_base": a.context_depth_tokens, "depth_other": b.context_depth_tokens}
    if not parts:
        return None
    text = f"The two did different work: {'; '.join(parts)}. Compare what is per token, not totals or requests per second."
    return Flag("not_comparable_workload", text, (), figures)


def short_outputs_eos(base: Run, other: Run) -> Flag | None:
    """The same prompts were answered at another length: one side stopped by itself, or ignored its stop token."""
    a, b = base.workload, other.workload
    if not a.output_tokens_mean or not b.output_tokens_mean or not _apart(a.output_tokens_mean, b.output_tokens_mean, LENGTHS_DIFFER):
        return None
    if _apart(a.prompt_tokens_mean, b.prompt_tokens_mean, LENGTHS_DIFFER) or base.measured_at == "in_process":
        return None
    shorter = min(a.output_tokens_mean, b.output_tokens_mean)
    text = (
        f"Answers of {a.output_tokens_mean:,.5g} against {b.output_tokens_mean:,.5g} tokens: those of {shorter:,.5g} ended early, or the "
        "others ran on past their stop token."
    )
    return Flag("short_outputs_eos", text, (), {"output_base": a.output_tokens_mean, "output_other": b.output_tokens_mean})


def idle_wakeup(base: Run, other: Run) -> Flag | None:
    """TTFT is longer on the side whose requests follow pauses, and decode is the same: waking up, not prefill."""
    idle = [observed(run, "idle_before_s") for run in (base, other)]
    first, step = [observed_first_token(run) for run in (base, other)], [observed_step(run) for run in (base, other)]
    if idle[0] is None or idle[1] is None or first[0] is None or first[1] is None:
        return None
    rested, back = (1, 0) if idle[1].value_s > idle[0].value_s else (0, 1)
    pauses, waits = (idle[rested], idle[back]), (first[rested], first[back])
    if pauses[0] is None or pauses[1] is None or waits[0] is None or waits[1] is None:
        return None
    if pauses[0].value_s - pauses[1].value_s < PAUSE_S or not _change(waits[1].value_s, waits[0].value_s):
        return None
    if waits[0].value_s <= waits[1].value_s * (1 + NOISE):
        return None
    if step[0] is not None and step[1] is not None and _apart(step[0].value_s, step[1].value_s, NOISE):
        return None
    woken = waits[0].value_s - waits[1].value_s
    text = (
        f"After pauses of {duration(pauses[0].value_s)} the first token takes {duration(woken)} longer and decode is the same: the device "
        "or its host wakes up. The arrival pattern belongs to the number."
    )
    return Flag("idle_wakeup", text, (), {"wakeup_s": woken, "pause_s": pauses[0].value_s})


def clock_throttle(base: Run, other: Run) -> Flag | None:
    """The core clock of the two differs: prefill follows it, decode follows the memory clock."""
    core = [observed_clock(run, "sm_clock_hz") for run in (base, other)]
    change = _change(core[0], core[1])
    if change is None or abs(change) <= CLOCKS_DIFFER:
        return None
    memory = _change(observed_clock(base, "memory_clock_hz"), observed_clock(other, "memory_clock_hz"))
    text = f"The core clock differs by {percent(change)}: prefill follows it, whatever else was changed"
    text += f"; the memory clock, which decode follows, by {percent(memory)}." if memory is not None else "."
    return Flag("clock_throttle", text, (), {"core_change": change, **({} if memory is None else {"memory_change": memory})})


def observed_clock(run: Run, key: str) -> float | None:
    """The mean clock of a run in Hz, None where nobody noted it."""
    found = run.distribution(key)
    return None if found is None else found.mean if found.mean is not None else found.p50
