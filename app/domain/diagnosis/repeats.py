"""Repeats of one operating point: their spread, the one that stands apart, and where its time went."""

from collections.abc import Mapping, Sequence

import numpy as np

from app.domain.checks.evidence import Evidence
from app.domain.checks.stability import bimodal_runs
from app.domain.diagnosis.thresholds import REPEATS_FOR_A_SPREAD
from app.domain.diagnosis.times import rate_of, stat_of, step
from app.domain.run import Flag, Run


def spread(runs: Sequence[Run], values: Sequence[float | None]) -> float | None:
    """Standard deviation between repeats as a share of their mean; None with fewer than three."""
    known = np.array([value for value in values if value is not None])
    if known.size < REPEATS_FOR_A_SPREAD or known.size != len(runs):
        return None
    return float(known.std(ddof=1) / known.mean())


def apart(runs: Sequence[Run]) -> Flag | None:
    """The flag of repeats that fall into two groups, by their output rate, else by their duration."""
    for values in ([rate_of(run, "output_tokens_per_s") for run in runs], [run.duration_s for run in runs]):
        known = tuple(value for value in values if value is not None)
        if len(known) == len(runs):
            return bimodal_runs(runs[0], Evidence(repeats=known))
    return None


def repeats(runs: Sequence[Run]) -> Mapping[str, float]:
    """Of three or more repeats: the median, and of the one furthest off, where it stands apart, the excess of each of its times."""
    found: dict[str, float] = {}
    durations = [run.duration_s for run in runs]
    rates = [rate_of(run, "output_tokens_per_s") for run in runs]
    if len(runs) < REPEATS_FOR_A_SPREAD:
        return found
    judged = rates if None not in rates else durations
    known = np.array([np.nan if value is None else value for value in judged], dtype=np.float64)
    if not bool(np.isfinite(known).all()):
        return found
    if None not in rates:
        found["median_output_tokens_per_s"] = float(np.median(known))
    flag = apart(runs)
    if flag is None:
        return found
    index = int(flag.figures["outlier_index"])
    off = known / float(np.median(known)) - 1
    found |= {"repeats": float(len(runs)), "outlier_index": float(index), "outlier_change": float(off[index])}
    for name, values in (
        ("outlier_duration_s", durations),
        ("outlier_first_token_s", _first_tokens(runs)),
        ("outlier_step_s", [step(run) for run in runs]),
    ):
        column = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
        if bool(np.isfinite(column).all()):
            centre = float(np.median(column))
            found[name] = float(column[index]) - centre
            found[f"{name.removesuffix('_s')}_change"] = float(column[index]) / centre - 1
    if found.get("outlier_duration_s") and "outlier_first_token_s" in found:
        found["outlier_first_token_share"] = found["outlier_first_token_s"] / found["outlier_duration_s"]
    return found


def _first_tokens(runs: Sequence[Run]) -> list[float | None]:
    """The highest percentile of TTFT that every repeat has: a stall of a few requests shows there first."""
    for stat in ("p90", "p95", "p99", "mean", "p50"):
        values = [stat_of(run, "ttft_s", stat) for run in runs]
        if None not in values:
            return values
    return [None] * len(runs)
