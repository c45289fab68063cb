"""Whether a run was one situation: drift, two modes, repeats that differ, clocks that fell, a device that had gone to sleep."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.checks.evidence import Evidence, in_send_order, median_of
from app.domain.derive import tpot_values
from app.domain.readings import idle_before
from app.domain.run import Flag, Floats, RequestSamples, Run
from app.domain.stream_readings import jump, passes_of, step_curve
from app.domain.text import duration, percent

DRIFT = 0.05
BLOCKS = 10
BLOCK_REQUESTS = 5
IN_ORDER = 0.8
STALLS_MATTER = 0.005
MODES_APART = 2.0
TWO_MODES = 0.85
VALLEY = 0.2
LEAST_GAPS = 100
JUMPED = 1.15
REPEATS = 5
REPEATS_APART = 0.15
REPEATS_SPREADS = 5.0
CLOCK_FELL = 0.05
IDLE_MATTERS_S = 0.5
IDLE_REQUESTS = 5
WOKEN_RATIO = 1.5
SAME_DECODE = 0.2


@dataclass(frozen=True)
class Trend:
    """Blocks of a run in order: the first, the best and the last value, and the change from best to last (a fraction)."""

    first: float
    best: float
    last: float
    order: float

    @property
    def change(self) -> float:
        """From the best block to the last, a fraction of the best."""
        return self.last / self.best - 1


def trend(blocks: Sequence[float], better: str = "higher") -> Trend | None:
    """The trend of equal stretches of a run; None below three blocks. `order` is Spearman's rank correlation with time, -1 to 1."""
    values = np.asarray(blocks, dtype=np.float64)
    if values.size < 3 or not bool((np.isfinite(values) & (values > 0)).all()):
        return None
    best = float(values.max() if better == "higher" else values.min())
    ranks = np.argsort(np.argsort(values))
    order = 0.0 if float(np.ptp(values)) == 0 else float(np.corrcoef(np.arange(values.size), ranks)[0, 1])
    return Trend(float(values[0]), best, float(values[-1]), order)


def _block_tpots(run: Run) -> list[float] | None:
    """Median TPOT of ten equal stretches in send order, the opening and the closing wave left out."""
    samples = run.samples
    if samples is None:
        return None
    _, tpot = in_send_order(samples)
    edge = run.workload.concurrency or 1
    kept = tpot[edge:-edge]
    kept = kept[np.isfinite(kept)]
    if kept.size < BLOCKS * BLOCK_REQUESTS:
        return None
    return [float(np.median(block)) for block in np.array_split(kept, BLOCKS)]


def drift_within_run(run: Run, evidence: Evidence) -> Flag | None:
    """The run did not stay what it was: its last stretch differs from its first or its best by more than 5 %, in one direction."""
    found = trend(evidence.rate_blocks)
    if found is not None and found.change < -DRIFT and found.order < -IN_ORDER:
        return Flag(
            "drift_within_run",
            f"The rate falls within the run, from {found.best:.4g} at best to {found.last:.4g} at the end ({percent(found.change)}): "
            "one mean for all of it describes neither.",
            (),
            {"first": found.first, "best": found.best, "last": found.last, "change": found.change},
        )
    blocks = _block_tpots(run)
    found = trend(blocks, "lower") if blocks is not None else None
    if found is None or abs(found.order) < IN_ORDER or abs(found.last / found.first - 1) <= DRIFT:
        return None
    return Flag(
        "drift_within_run",
        f"TPOT drifts within the run, from a median of {duration(found.first)} in its first tenth to {duration(found.last)} in its last "
        f"({percent(found.last / found.first - 1)}).",
        (),
        {"first": found.first, "best": found.best, "last": found.last, "change": found.last / found.first - 1},
    )


def clock_throttle(run: Run, evidence: Evidence) -> Flag | None:
    """The device's core clock fell while the run lasted, or its rate fell and stayed down as it does when a limit of power sets in."""
    clock = run.distribution("sm_clock_hz")
    if clock is not None and clock.min is not None and clock.max and clock.min < clock.max * (1 - CLOCK_FELL):
        text = (
            f"The core clock fell from {clock.max / 1e6:.0f} to {clock.min / 1e6:.0f} MHz during the run: prefill, limited by "
            "arithmetic, follows it; decode hardly does."
        )
        return Flag("clock_throttle", text, (), {"highest_hz": clock.max, "lowest_hz": clock.min, "change": clock.min / clock.max - 1})
    found = trend(evidence.rate_blocks)
    if found is None or found.change >= -DRIFT or found.order >= -IN_ORDER:
        return None
    late = evidence.rate_blocks[-max(2, len(evidence.rate_blocks) // 4) :]
    if max(late) > found.best * (1 - DRIFT):
        return None
    text = (
        f"The device's rate falls by {percent(-found.change)} and stays down, as under a limit of power or heat; "
        "the clocks of the run would settle it."
    )
    return Flag("clock_throttle", text, (), {"best": found.best, "last": found.last, "change": found.change})


def bimodal_itl(run: Run, evidence: Evidence) -> Flag | None:
    """The gaps of the stream are of two kinds, with next to none between: an ordinary step, and something that stalls or slows it."""
    if run.samples is not None and (found := _jump_over_batch(run.samples)) is not None:
        return found
    gaps = np.empty(0) if run.samples is None else run.samples.chunk_gaps_s
    modes = two_modes(gaps)
    if modes is None:
        return None
    text = (
        f"{percent(modes.share)} of the gaps are about {duration(modes.high)} where the others are about {duration(modes.low)}, with next "
        f"to none between. They hold {percent(modes.time_share)} of the decode time, so that neither mean nor median describes a step."
    )
    figures = {"usual_s": modes.low, "other_s": modes.high, "other_share": modes.share, "other_time_share": modes.time_share}
    return Flag("bimodal_itl", text, (), figures)


def _jump_over_batch(samples: RequestSamples) -> Flag | None:
    """Two kinds of steps, told apart by how many sequences decode."""
    passes = passes_of(samples)
    curve = None if passes is None else step_curve(passes)
    figures = {} if curve is None else jump(curve)
    if figures.get("step_ratio", 1.0) < JUMPED:
        return None
    text = (
        f"Up to {figures['step_from_batch']:,.0f} decoding requests a step is of one kind, from {figures['step_to_batch']:,.0f} on it "
        f"takes {figures['step_ratio']:.3g} times as long. Neither mean nor median of the run describes a step."
    )
    return Flag("bimodal_itl", text, (), figures)


@dataclass(frozen=True)
class Modes:
    """Two kinds of values: their medians, and the share of values and of their sum that the higher kind has."""

    low: float
    high: float
    share: float
    time_share: float


def two_modes(values: Floats) -> Modes | None:
    """Split positive values in two by Otsu's threshold on their logarithms (1979); None unless the two are apart with a valley between."""
    kept = np.sort(values[np.isfinite(values) & (values > 1e-3)])
    if kept.size < LEAST_GAPS:
        return None
    logs = np.log(kept)
    count = np.arange(1, kept.size)
    sums = np.cumsum(logs)[:-1]
    total = float(logs.sum())
    # Variance between the two parts for every place of the cut.
    between = (total * count / kept.size - sums) ** 2 / (count * (kept.size - count))
    cut = int(np.argmax(between)) + 1
    low, high, share = float(np.median(logs[:cut])), float(np.median(logs[cut:])), (kept.size - cut) / kept.size
    spread = float(logs.var())
    if spread == 0 or high - low < np.log(MODES_APART) or min(share, 1 - share) < STALLS_MATTER:
        return None
    third = (high - low) / 3
    valley = int(((logs > low + third) & (logs < high - third)).sum())
    if float(between.max()) / spread < TWO_MODES or valley > VALLEY * min(cut, kept.size - cut):
        return None
    return Modes(float(np.exp(low)), float(np.exp(high)), share, float(kept[cut:].sum() / kept.sum()))


def bimodal_runs(run: Run, evidence: Evidence) -> Flag | None:
    """Repeats of one measurement that fall into two groups: most alike, a few far from them."""
    values = np.asarray(evidence.repeats, dtype=np.float64)
    if values.size < REPEATS or not bool((np.isfinite(values) & (values > 0)).all()):
        return None
    median = float(np.median(values))
    off = np.abs(values / median - 1)
    usual = float(np.median(off))
    outliers = np.flatnonzero((off > REPEATS_APART) & (off > REPEATS_SPREADS * usual))
    if outliers.size == 0 or outliers.size * 2 >= values.size:
        return None
    shown = ", ".join(f"{values[index]:.4g}" for index in outliers[:5])
    text = f"{outliers.size} of {values.size} repeats stand apart: {shown} where the median is {median:.4g}. Read the median of repeats."
    return Flag("bimodal_runs", text, (), {"median": median, "outliers": int(outliers.size), "outlier_index": int(outliers[0])})


def idle_wakeup(run: Run, evidence: Evidence) -> Flag | None:
    """Requests that follow a pause wait longer for their first token and decode alike: the device or its host had gone to sleep."""
    samples = run.samples
    idle = None if samples is None else idle_before(samples)
    if samples is None or idle is None:
        return None
    known = samples.ok & np.isfinite(idle) & np.isfinite(samples.ttft_s)
    after, soon = known & (idle >= IDLE_MATTERS_S), known & (idle < IDLE_MATTERS_S)
    if int(after.sum()) < IDLE_REQUESTS or int(soon.sum()) < IDLE_REQUESTS:
        return None
    woken, awake = float(np.median(samples.ttft_s[after])), float(np.median(samples.ttft_s[soon]))
    tpot = tpot_values(samples)
    decodes = (median_of(tpot[after]), median_of(tpot[soon]))
    if woken <= WOKEN_RATIO * awake or (decodes[0] and decodes[1] and abs(decodes[0] / decodes[1] - 1) > SAME_DECODE):
        return None
    pause = float(np.median(idle[after]))
    text = (
        f"After a pause (of {duration(pause)}) the first token takes {duration(woken)}, back to back {duration(awake)}, and decode is the "
        f"same: {duration(woken - awake)} are waking up, not prefill. State the arrival pattern with the number."
    )
    return Flag("idle_wakeup", text, (), {"ttft_after_pause_s": woken, "ttft_back_to_back_s": awake, "wakeup_s": woken - awake})
