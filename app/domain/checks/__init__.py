"""Data flags: what is odd about a run's data, each with the evidence and the metrics it makes unusable.

One function a flag, in a file for its theme and listed in `CHECKS`; the tests are those of diagnosis.md section 3 and the words
those of the cases' README. A flag never changes a figure: it says what the figure is worth, and `withholds` the ones that mean nothing.
"""

from dataclasses import replace

from app.domain.checks.evidence import ALL_METRICS, DECODE_METRICS, Check, Evidence
from app.domain.checks.figures import (
    histogram_top_bucket_saturated,
    mean_dominated_by_outlier,
    mean_of_ratios,
    metric_bug,
    nan_values,
    negative_duration,
    tpot_includes_first_token,
    unit_mismatch,
)
from app.domain.checks.load import client_queue_excluded, cold_start_outliers, few_requests, ramp_dominated, server_queue_in_ttft
from app.domain.checks.outcomes import (
    empty_outputs,
    failures_excluded,
    input_length_mismatch,
    short_outputs_eos,
    tpot_undefined_single_token,
    zero_completed,
)
from app.domain.checks.rates import aggregate_vs_per_user, impossible_peak_below_mean, per_role_gpu_denominator, throughput_includes_prompt
from app.domain.checks.stability import bimodal_itl, bimodal_runs, clock_throttle, drift_within_run, idle_wakeup
from app.domain.checks.stream import (
    chunk_tokens_gt_1,
    first_chunk_role_only,
    itl_is_per_chunk,
    non_streaming_no_phase_split,
    prefix_cache_hits,
    reasoning_before_content,
    tokenizer_mismatch,
    transport_buffering,
    ttft_equals_e2e_buffering,
)
from app.domain.readings import with_readings
from app.domain.run import Flag, Run

__all__ = ["ALL_METRICS", "CHECKS", "DECODE_METRICS", "READING_AIDS", "Check", "Evidence", "as_shown", "data_flags", "flagged"]

CHECKS: tuple[Check, ...] = (
    *(zero_completed, failures_excluded, empty_outputs, nan_values, negative_duration, unit_mismatch, metric_bug),
    *(non_streaming_no_phase_split, first_chunk_role_only, tpot_undefined_single_token, tpot_includes_first_token),
    *(itl_is_per_chunk, chunk_tokens_gt_1, tokenizer_mismatch, impossible_peak_below_mean, histogram_top_bucket_saturated),
    *(ttft_equals_e2e_buffering, transport_buffering, reasoning_before_content, prefix_cache_hits),
    *(cold_start_outliers, few_requests, ramp_dominated, client_queue_excluded, server_queue_in_ttft),
    *(idle_wakeup, drift_within_run, clock_throttle, bimodal_itl, bimodal_runs),
    *(mean_of_ratios, mean_dominated_by_outlier, short_outputs_eos, input_length_mismatch),
    per_role_gpu_denominator,
)

# What is told once everything that follows from a run's figures is there: two right figures under one name, and which is which.
AFTERWARDS: tuple[Check, ...] = (aggregate_vs_per_user, throughput_includes_prompt)

# Flags of sound data: they help to read it and put no figure in doubt, so they are shown after those that do.
READING_AIDS = frozenset(
    {"aggregate_vs_per_user", "throughput_includes_prompt", "per_role_gpu_denominator", "mean_of_ratios_vs_ratio_of_means"}
)


def data_flags(run: Run, evidence: Evidence | None = None) -> tuple[Flag, ...]:
    """Every flag that `run` and the importer's evidence give rise to, in the order of CHECKS."""
    seen = evidence or Evidence()
    if run.requests.completed == 0:
        # Nothing was measured, so nothing else can be said about the measurement.
        found = [check(run, seen) for check in (zero_completed, nan_values, negative_duration)]
    else:
        found = [check(run, seen) for check in CHECKS]
    return tuple(flag for flag in found if flag is not None)


def flagged(run: Run, evidence: Evidence | None = None) -> Run:
    """The run with its data flags."""
    return replace(run, flags=data_flags(run, evidence))


def as_shown(run: Run) -> Run:
    """The run as it is stored and shown: every figure that follows from those of its file, and the flags that help to read them.

    A flag that its importer raised, in the tool's own words, stands in place of one of the same name.
    """
    whole = with_readings(run)
    if whole.requests.completed == 0:
        return whole
    said = {flag.flag for flag in whole.flags}
    found = (check(whole, Evidence()) for check in AFTERWARDS)
    return replace(whole, flags=(*whole.flags, *(flag for flag in found if flag is not None and flag.flag not in said)))
