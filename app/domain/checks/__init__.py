"""Data flags: what is odd about a run's data, each with the evidence and the metrics it makes unusable.

One function a flag, in a file for its theme and listed in `CHECKS`; the tests are those of diagnosis.md section 3 and the words
those of the cases' README. A flag never changes a figure: it says what the figure is worth, and `withholds` the ones that mean nothing.
"""

from dataclasses import replace

from app.domain.checks.evidence import ALL_METRICS, DECODE_METRICS, Check, Evidence
from app.domain.checks.figures import (
    impossible_peak_below_mean,
    mean_dominated_by_outlier,
    mean_of_ratios,
    metric_bug,
    nan_values,
    negative_duration,
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
from app.domain.checks.stream import chunk_tokens_gt_1, itl_is_per_chunk, tokenizer_mismatch, transport_buffering, ttft_equals_e2e_buffering
from app.domain.run import Flag, Run

__all__ = ["ALL_METRICS", "CHECKS", "DECODE_METRICS", "Check", "Evidence", "data_flags", "flagged"]

CHECKS: tuple[Check, ...] = (
    *(zero_completed, failures_excluded, empty_outputs, nan_values, negative_duration, unit_mismatch, metric_bug),
    *(tpot_undefined_single_token, itl_is_per_chunk, chunk_tokens_gt_1, tokenizer_mismatch, impossible_peak_below_mean),
    *(ttft_equals_e2e_buffering, transport_buffering, cold_start_outliers, few_requests, ramp_dominated),
    *(client_queue_excluded, server_queue_in_ttft, mean_of_ratios, mean_dominated_by_outlier, short_outputs_eos, input_length_mismatch),
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
