"""Figures that cannot be what they say: no number, a time that runs backwards, a unit in doubt, a mean that few requests set."""

import numpy as np

from app.domain.checks.evidence import Evidence, centre, listed
from app.domain.run import Flag, Run
from app.domain.text import duration

TOKENS_PER_CHUNK = 1.05
MEANS_DIFFER = 0.02
OUTLIER_RATIO = 1.5
SHORTEST_TOKEN_S, LONGEST_TOKEN_S = 5e-5, 60.0
BEYOND_DURATION = 1.05


def nan_values(run: Run, evidence: Evidence) -> Flag | None:
    """Figures that are NaN or infinite in the file are left out."""
    if not evidence.not_numbers:
        return None
    return Flag("nan_values", f"Not a finite number in the file, left out: {listed(evidence.not_numbers)}.")


def negative_duration(run: Run, evidence: Evidence) -> Flag | None:
    """Time that runs backwards: a stepped clock, or an end before the first token."""
    parts = list(evidence.negative)
    if run.samples is not None:
        with np.errstate(invalid="ignore"):
            inverted = int((run.samples.ok & (run.samples.e2e_s < run.samples.ttft_s)).sum())
        if inverted:
            parts.append(f"{inverted} requests end before their first token; they have no TPOT")
    return Flag("negative_duration", f"{'; '.join(parts)}.") if parts else None


def unit_mismatch(run: Run, evidence: Evidence) -> Flag | None:
    """A figure so far from plausible that its unit is in doubt. The unit is fixed by the format and never guessed again."""
    odd: list[str] = []
    withheld: list[str] = []
    for key in ("tpot_s", "itl_s"):
        value = centre(run.distribution(key))
        if value is not None and not SHORTEST_TOKEN_S <= value <= LONGEST_TOKEN_S:
            odd.append(f"{key} is {value:.3g} s per token, outside {SHORTEST_TOKEN_S * 1e3:g} ms to {LONGEST_TOKEN_S:g} s")
            withheld.append(key)
    for key in ("ttft_s", "e2e_s"):
        value = centre(run.distribution(key))
        if value is not None and run.duration_s and value > run.duration_s * BEYOND_DURATION:
            odd.append(f"{key} is {value:.4g} s in a run that lasted {run.duration_s:.4g} s")
            withheld.append(key)
    return Flag("unit_mismatch", f"{'; '.join(odd)}.", tuple(withheld)) if odd else None


def metric_bug(run: Run, evidence: Evidence) -> Flag | None:
    """A figure of the file contradicts the file's own samples, and not because empty outputs were counted in it."""
    if not evidence.contradictions or evidence.empty_outputs:
        return None
    return Flag("metric_bug", f"The file contradicts its own samples: {listed(evidence.contradictions)}.")


def impossible_peak_below_mean(run: Run, evidence: Evidence) -> Flag | None:
    """A peak rate below the mean rate was counted in chunks, or over seconds that the run did not fill."""
    peak, mean = evidence.peak_output_tokens_per_s, run.rate("output_tokens_per_s")
    if peak is None or mean is None or peak >= mean.value * 0.99:
        return None
    text = (
        f"The file's peak output rate, {peak:.4g} per second, is below its mean of {mean.value:.4g} tokens/s: "
        "it counts chunks in whole seconds"
    )
    per_chunk = evidence.tokens_per_chunk
    if per_chunk is not None and per_chunk > TOKENS_PER_CHUNK:
        text += f"; times {per_chunk:.3g} tokens a chunk it is {peak * per_chunk:.4g} tokens/s"
    return Flag("impossible_peak_below_mean", text + ".")


def mean_of_ratios(run: Run, evidence: Evidence) -> Flag | None:
    """Mean TPOT weights requests equally, mean ITL weights tokens equally; both are right and they differ."""
    tpot, itl = run.distribution("tpot_s"), run.distribution("itl_s")
    if tpot is None or itl is None or not tpot.mean or not itl.mean or abs(tpot.mean / itl.mean - 1) <= MEANS_DIFFER:
        return None
    return Flag(
        "mean_of_ratios_vs_ratio_of_means",
        f"Mean TPOT {duration(tpot.mean)} weights requests equally, mean ITL {duration(itl.mean)} weights tokens equally; "
        "both are right, and only ITL adds up to the total.",
    )


def mean_dominated_by_outlier(run: Run, evidence: Evidence) -> Flag | None:
    """A mean above p90, or above 1.5 medians, describes few requests."""
    found = []
    for key in ("ttft_s", "tpot_s", "e2e_s", "prefill_s"):
        value = run.distribution(key)
        if value is None or value.mean is None:
            continue
        if value.p90 is not None and value.mean > value.p90:
            found.append(f"{key}: mean {duration(value.mean)}, p90 {duration(value.p90)}")
        elif value.p50 and value.mean > OUTLIER_RATIO * value.p50:
            found.append(f"{key}: mean {duration(value.mean)}, median {duration(value.p50)}")
    return Flag("mean_dominated_by_outlier", f"A few requests set the mean; read the median. {'; '.join(found)}.") if found else None
