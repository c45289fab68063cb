"""Figures that cannot be what they say: no number, a time that runs backwards, a unit in doubt, a mean that few requests set."""

import numpy as np

from app.domain.checks.evidence import Evidence, centre, listed
from app.domain.run import CANONICAL, Flag, Run
from app.domain.text import duration

MEANS_DIFFER = 0.02
RATES_DIFFER = 0.02
# Of requests of one length the mean of e2e / n is mean e2e / n but for rounding; of unlike ones a near miss says nothing.
SAME_QUOTIENT = 0.002
OUTLIER_RATIO = 1.5
LENGTHS_APART = 0.05
SHORTEST_TOKEN_S, LONGEST_TOKEN_S = 5e-5, 60.0
BEYOND_DURATION = 1.05


def nan_values(run: Run, evidence: Evidence) -> Flag | None:
    """Figures that are NaN or infinite in the file are left out."""
    if not evidence.not_numbers:
        return None
    return Flag("nan_values", f"Not a finite number in the file, left out: {listed(evidence.not_numbers)}.")


def negative_duration(run: Run, evidence: Evidence) -> Flag | None:
    """Time that runs backwards: a stepped clock, or an end before the first token."""
    parts, figures = list(evidence.negative), dict[str, float]()
    if run.samples is not None:
        with np.errstate(invalid="ignore"):
            inverted = int((run.samples.ok & (run.samples.e2e_s < run.samples.ttft_s)).sum())
        if inverted:
            parts.append(f"{inverted} requests end before their first token; they have no TPOT")
            figures["requests"] = inverted
    return Flag("negative_duration", f"{'; '.join(parts)}.", (), figures) if parts else None


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
    figures: dict[str, float] = {}
    if evidence.mixed_units:
        odd.append(f"times stand in different units: {listed(evidence.mixed_units)}; each was read in the unit that its key names")
    if (prompts := _counts_prompts(run, evidence)) is not None:
        odd.append(
            f"the file's prefill rate, {prompts:.4g} per second, counts prompts and not their tokens, of which there are "
            f"{(run.workload.prompt_tokens_mean or 0) * prompts:.4g} per second"
        )
        figures["prompts_per_s"] = prompts
    if not odd:
        return None
    text = "; ".join(odd)
    return Flag("unit_mismatch", f"{text[0].upper()}{text[1:]}." if not withheld else f"{text}.", tuple(withheld), figures)


def _counts_prompts(run: Run, evidence: Evidence) -> float | None:
    """The reported prefill rate where it is prompts per second: off from the tokens per second by the length of a prompt."""
    reported, rate, tokens = evidence.reported_prefill_per_s, run.rate("prefill_tokens_per_s"), run.workload.prompt_tokens_mean
    if reported is None or rate is None or not tokens or tokens < 1 + 2 * RATES_DIFFER:
        return None
    return reported if abs(reported * tokens / rate.value - 1) <= RATES_DIFFER else None


def metric_bug(run: Run, evidence: Evidence) -> Flag | None:
    """A figure of the file contradicts the file's own samples, and not because empty outputs were counted in it."""
    if not evidence.contradictions or evidence.empty_outputs:
        return None
    return Flag("metric_bug", f"The file contradicts its own samples: {listed(evidence.contradictions)}.")


def mean_of_ratios(run: Run, evidence: Evidence) -> Flag | None:
    """Mean TPOT weights requests equally, mean ITL weights tokens equally; both are right and they differ."""
    tpot, itl = run.distribution("tpot_s"), run.distribution("itl_s")
    if tpot is None or itl is None or not tpot.mean or not itl.mean or abs(tpot.mean / itl.mean - 1) <= MEANS_DIFFER:
        return None
    return Flag(
        "mean_of_ratios_vs_ratio_of_means",
        f"Mean TPOT {duration(tpot.mean)} weights requests equally, mean ITL {duration(itl.mean)} weights tokens equally; "
        "both are right, and only ITL adds up to the total.",
        (),
        {"tpot_mean_s": tpot.mean, "itl_mean_s": itl.mean},
    )


def mean_dominated_by_outlier(run: Run, evidence: Evidence) -> Flag | None:
    """A mean above p90, or above 1.5 medians, describes few requests."""
    found, figures = [], dict[str, float]()
    for key in ("ttft_s", "tpot_s", "e2e_s", "prefill_s"):
        value = run.distribution(key)
        if value is None or value.mean is None:
            continue
        if value.p90 is not None and value.mean > value.p90:
            found.append(f"{key}: mean {duration(value.mean)}, p90 {duration(value.p90)}")
        elif value.p50 and value.mean > OUTLIER_RATIO * value.p50:
            found.append(f"{key}: mean {duration(value.mean)}, median {duration(value.p50)}")
        else:
            continue
        stem = key.removesuffix("_s")
        figures |= {f"{stem}_mean_s": value.mean} | ({f"{stem}_p50_s": value.p50} if value.p50 is not None else {})
    if not found:
        return None
    return Flag("mean_dominated_by_outlier", f"A few requests set the mean; read the median. {'; '.join(found)}.", (), figures)


def tpot_includes_first_token(run: Run, evidence: Evidence) -> Flag | None:
    """A TPOT that is whole time / output tokens: the first token's wait is spread over all of them."""
    tpot = run.distribution("tpot_s")
    ttft, e2e, output = (run.distribution("ttft_s"), run.distribution("e2e_s"), run.workload.output_tokens_mean)
    if tpot is None or ttft is None or e2e is None or not tpot.mean or not ttft.mean or not e2e.mean or not output or output < 2:
        return None
    spread, apart = e2e.mean / output, (e2e.mean - ttft.mean) / (output - 1)
    if tpot.origin == "samples" or tpot.definition != CANONICAL or apart <= 0 or abs(spread / apart - 1) <= LENGTHS_APART:
        return None
    if abs(tpot.mean / spread - 1) > SAME_QUOTIENT or abs(tpot.mean / apart - 1) <= MEANS_DIFFER:
        return None
    return Flag(
        "tpot_includes_first_token",
        f"TPOT, {duration(tpot.mean)}, is whole time / output tokens ({duration(spread)}): the wait for the first token is inside. "
        f"Without it a token takes {duration(apart)}.",
        ("tpot_s", "interactivity_tokens_per_s"),
        {"wrong_tpot_s": tpot.mean, "tpot_without_first_s": apart},
    )


def histogram_top_bucket_saturated(run: Run, evidence: Evidence) -> Flag | None:
    """A quantile in the open last bucket of a histogram: all that is known is that it is beyond the last bound."""
    if not evidence.saturated:
        return None
    text = f"Beyond the last bound of the server's histogram, so not known: {listed(evidence.saturated)}. Its buckets end too early."
    return Flag("histogram_top_bucket_saturated", text, evidence.saturated)
