"""Data flags: each raised by the figures of a known situation, and not raised by a sound run."""

from dataclasses import replace

import numpy as np
import pytest

from app.domain.checks import CHECKS, DECODE_METRICS, READING_AIDS, Evidence, data_flags, flagged
from app.domain.run import Distribution, Rate, RequestCounts, Run, Workload
from tests.domain.checked import SOUND, doubts, many, raised, with_samples


def test_a_sound_run_raises_nothing() -> None:
    assert doubts(SOUND) == set()


def test_every_check_is_silent_on_an_empty_run() -> None:
    assert data_flags(Run(format="x")) == ()
    assert len(CHECKS) == len(set(CHECKS))


def test_zero_completed_withholds_everything_and_stands_alone() -> None:
    run = replace(SOUND, requests=RequestCounts(sent=20, completed=0, failed=20), metrics={})
    flags = raised(run, Evidence(not_numbers=("mean_e2e_latency_ms",), peak_output_tokens_per_s=1.0))
    assert set(flags) == {"zero_completed", "nan_values"}
    assert flags["zero_completed"].evidence.startswith("0 of 20 requests completed")
    assert {"ttft_s", "itl_s", "output_tokens_per_s"} <= set(flags["zero_completed"].withholds)


def test_failures_are_counted_and_the_median_adjusted() -> None:
    run = replace(SOUND, requests=RequestCounts(sent=1000, completed=885, failed=115))
    assert raised(run)["failures_excluded"].evidence == "115 of 1000 requests (11.5 %) failed and are in no latency."
    # Sorted TTFT 0.1, 0.2, 0.3 and two failed: of five the third, 0.3; of the three that succeeded the second, 0.2.
    samples = many(np.array([0.1, 0.3, 0.2, np.nan, np.nan]), np.full(5, np.nan), np.full(5, 10.0), ok=[True, True, True, False, False])
    flag = raised(with_samples(samples, requests=RequestCounts(5, 3, 2)))["failures_excluded"]
    assert "median TTFT would be 300 ms instead of 200 ms" in flag.evidence


def test_more_failures_than_answers_leave_no_adjusted_median() -> None:
    samples = many(np.array([0.1, np.nan, np.nan]), np.full(3, np.nan), np.full(3, 10.0), ok=[True, False, False])
    assert "would not exist" in raised(with_samples(samples, requests=RequestCounts(3, 1, 2)))["failures_excluded"].evidence


def test_empty_outputs_are_no_failures() -> None:
    run = replace(SOUND, requests=RequestCounts(8, 4, 4))
    flags = raised(run, Evidence(empty_outputs=4))
    assert "failures_excluded" not in flags
    assert flags["empty_outputs"].evidence.startswith("4 of 8 requests produced no token")


def test_a_run_without_any_output_withholds_the_decode_metrics() -> None:
    run = replace(SOUND, metrics={}, workload=replace(SOUND.workload, output_tokens_total=0))
    assert raised(run)["empty_outputs"].withholds == DECODE_METRICS


def test_single_token_requests_have_no_tpot() -> None:
    some = with_samples(many(np.array([0.1, 0.2]), np.array([0.1, 0.4]), np.array([1.0, 11.0])))
    assert raised(some)["tpot_undefined_single_token"].withholds == ()
    every = with_samples(many(np.array([0.1]), np.array([0.1]), np.array([1.0])))
    assert raised(every)["tpot_undefined_single_token"].withholds == DECODE_METRICS
    totals = replace(SOUND, workload=replace(SOUND.workload, output_tokens_total=1000))
    assert raised(totals)["tpot_undefined_single_token"].withholds == DECODE_METRICS


def test_nan_values_name_the_keys() -> None:
    assert "mean_e2e_latency_ms" in raised(SOUND, Evidence(not_numbers=("mean_e2e_latency_ms",)))["nan_values"].evidence


def test_negative_duration_from_clauses_and_from_samples() -> None:
    assert raised(SOUND, Evidence(negative=("duration is negative (-2)",)))["negative_duration"].evidence == "duration is negative (-2)."
    inverted = with_samples(many(np.array([0.51, 0.3]), np.array([0.505, 0.5]), np.array([3.0, 11.0])))
    assert "1 requests end before their first token" in raised(inverted)["negative_duration"].evidence


@pytest.mark.parametrize("key", ["tpot_s", "itl_s"])
@pytest.mark.parametrize("value", [4.9e-5, 61.0])
def test_a_token_time_beyond_plausible_is_withheld(key: str, value: float) -> None:
    run = replace(SOUND, metrics={key: Distribution(mean=value)})
    assert raised(run)["unit_mismatch"].withholds == (key,)


def test_ttft_longer_than_the_run_is_withheld() -> None:
    run = replace(SOUND, metrics={"ttft_s": Distribution(p50=106.0)})
    assert raised(run)["unit_mismatch"].withholds == ("ttft_s",)
    assert "unit_mismatch" not in raised(replace(SOUND, metrics={"ttft_s": Distribution(p50=104.0)}))


def test_metric_bug_only_when_empty_outputs_do_not_explain_it() -> None:
    evidence = Evidence(contradictions=("ttft_s.mean says 225 ms and its samples give 450 ms",))
    assert "metric_bug" in raised(SOUND, evidence)
    assert "metric_bug" not in raised(SOUND, replace(evidence, empty_outputs=4))


def test_few_requests_up_to_five_a_client() -> None:
    workload = replace(SOUND.workload, concurrency=10)
    few = replace(SOUND, workload=workload, requests=RequestCounts(50, 50, 0))
    assert raised(few)["few_requests"].evidence == "50 requests from 10 clients: the opening wave is 20 % of the run."
    assert "few_requests" not in raised(replace(few, requests=RequestCounts(51, 51, 0)))


def test_ramp_dominated_gives_the_steady_rate() -> None:
    samples = many(np.full(4, 0.1), np.array([4.0, 4, 4, 12]), np.array([100.0, 100, 100, 300]), start=[0, 0, 4, 4])
    run = with_samples(samples, workload=Workload(concurrency=2), requests=RequestCounts(4, 4, 0))
    evidence = raised(run)["ramp_dominated"].evidence
    assert "busy for 50 % of the run" in evidence
    assert "50 tokens/s" in evidence


def test_means_that_weigh_differently() -> None:
    run = replace(SOUND, metrics={"tpot_s": Distribution(mean=0.030), "itl_s": Distribution(mean=3.3 / 114)})
    assert set(raised(run)) == {"mean_of_ratios_vs_ratio_of_means"}
    close = replace(SOUND, metrics={"tpot_s": Distribution(mean=0.01019), "itl_s": Distribution(mean=0.01)})
    assert raised(close) == {}


def test_a_mean_above_p90_or_one_and_a_half_medians() -> None:
    # 120, 2, 2, 2, 2: mean 25.6, median 2, p90 72.8.
    run = replace(SOUND, duration_s=None, metrics={"ttft_s": Distribution(mean=25.6, p50=2.0, p90=72.8)})
    flag = raised(run)["mean_dominated_by_outlier"]
    assert "mean 25.6 s, median 2 s" in flag.evidence
    assert flag.withholds == ()
    above = replace(run, metrics={"e2e_s": Distribution(mean=1.3, p50=1.0, p90=1.2)})
    assert "p90 1.2 s" in raised(above)["mean_dominated_by_outlier"].evidence


def test_peak_below_mean_is_scaled_by_tokens_per_chunk() -> None:
    run = replace(SOUND, metrics={"output_tokens_per_s": Rate(400.0, "aggregate")})
    flags = raised(run, Evidence(peak_output_tokens_per_s=110.0, tokens_per_chunk=4.0))
    assert {"impossible_peak_below_mean", "chunk_tokens_gt_1"} == set(flags)
    assert "440 tokens/s" in flags["impossible_peak_below_mean"].evidence
    assert raised(run, Evidence(peak_output_tokens_per_s=500.0)) == {}


def test_chunks_of_four_tokens() -> None:
    # 9 chunks of 4 tokens 80 ms apart after a TTFT of 200 ms.
    samples = many(np.array([0.2]), np.array([0.84]), np.array([36.0]), gaps=[[0.08] * 8])
    run = with_samples(samples, metrics={"chunk_gap_s": Distribution(mean=0.08)})
    flags = raised(run)
    assert {"chunk_tokens_gt_1", "itl_is_per_chunk"} <= set(flags)
    assert "4 tokens a chunk" in flags["chunk_tokens_gt_1"].evidence  # 36 tokens in 9 chunks


def test_gap_above_tpot_without_further_evidence_says_so() -> None:
    run = replace(SOUND, metrics={"chunk_gap_s": Distribution(mean=0.0487), "tpot_s": Distribution(mean=0.0173)})
    assert "the file does not tell which" in raised(run)["itl_is_per_chunk"].evidence
    other_gap = replace(run, metrics={**run.metrics, "chunk_gap_s": Distribution(mean=0.0487, definition="something else")})
    assert raised(other_gap) == {}


def test_tokens_in_bursts_under_a_millisecond() -> None:
    gaps = [0.04, 0.0001, 0.0001] * 5
    samples = many(np.array([0.1]), np.array([0.1 + sum(gaps)]), np.array([16.0]), gaps=[gaps])
    assert "66.7 % of the gaps are under 1 ms" in raised(with_samples(samples))["chunk_tokens_gt_1"].evidence


def cold_run(decode_of_wave: float = 0.1149) -> Run:
    wave = np.array([40.0, 41.9, 43.8, 45.7, 47.6, 49.5, 51.4, 53.3, 55.2, 57.1])
    rest = 0.6 + 0.0088 * np.arange(90)
    ttft = np.concatenate([wave, rest])
    per_token = np.where(np.arange(100) < 10, decode_of_wave, 0.1146)
    samples = many(ttft, ttft + 10 * per_token, np.full(100, 11.0))
    return with_samples(samples, workload=Workload(concurrency=10), requests=RequestCounts(100, 100, 0))


def test_cold_start_is_the_opening_wave() -> None:
    flag = raised(cold_run())["cold_start_outliers"]
    assert flag.withholds == ("ttft_s.mean", "ttft_s.p95", "ttft_s.p99")
    assert "first 10 requests" in flag.evidence
    assert "p95 1.344 s instead of 47.69 s" in flag.evidence


def test_a_wave_that_decodes_slower_too_is_no_cold_start() -> None:
    assert "cold_start_outliers" not in raised(cold_run(decode_of_wave=0.3))


def test_ttft_in_a_line_with_send_order_is_a_queue() -> None:
    ttft = np.array([0.1, 0.39, 0.68, 0.97, 1.26])
    flag = raised(with_samples(many(ttft, ttft + 0.19, np.full(5, 20.0))))["server_queue_in_ttft"]
    assert "grows by 290 ms" in flag.evidence
    assert "580 ms of the mean is waiting" in flag.evidence


def test_a_rate_beside_a_limit_hides_the_wait_in_the_client() -> None:
    run = replace(SOUND, workload=replace(SOUND.workload, request_rate_per_s=5.0))
    assert "1 s on average" in raised(run, Evidence(client_queue_mean_s=1.0))["client_queue_excluded"].evidence


def test_time_that_is_neither_ttft_nor_gap() -> None:
    # 20 requests: TTFT 0.1, nine gaps of 10 ms, end at 0.3: 0.11 of 0.3 s is unexplained.
    samples = many(np.full(20, 0.1), np.full(20, 0.3), np.full(20, 10.0), gaps=[[0.01] * 9] * 20)
    assert "36.7 %" in raised(with_samples(samples))["transport_buffering"].evidence
    exact = many(np.full(20, 0.1), np.full(20, 0.19), np.full(20, 10.0), gaps=[[0.01] * 9] * 20)
    assert "transport_buffering" not in raised(with_samples(exact))


def test_an_answer_that_arrives_at_once() -> None:
    samples = many(np.full(12, 15.26), np.full(12, 15.27), np.full(12, 60.0))
    flag = raised(with_samples(samples))["ttft_equals_e2e_buffering"]
    assert "99.9 %" in flag.evidence
    assert "tpot_s" in flag.withholds
    means = replace(SOUND, duration_s=None, metrics={"ttft_s": Distribution(mean=15.26, std=0.2), "e2e_s": Distribution(mean=15.27)})
    assert "ttft_equals_e2e_buffering" in raised(means)


def test_a_long_queue_is_no_buffer() -> None:
    ttft = np.linspace(1.0, 2000.0, 50)
    assert "ttft_equals_e2e_buffering" not in raised(with_samples(many(ttft, ttft + 20, np.full(50, 100.0))))
    means = replace(SOUND, duration_s=None, metrics={"ttft_s": Distribution(mean=1000.0, std=577.0), "e2e_s": Distribution(mean=1020.0)})
    assert "ttft_equals_e2e_buffering" not in raised(means)


def test_lengths_other_than_asked_for() -> None:
    run = replace(SOUND, workload=replace(SOUND.workload, prompt_tokens_mean=1107.0, output_tokens_mean=210.0))
    flags = raised(run, Evidence(requested_prompt_tokens=1024, requested_output_tokens=512))
    assert flags["input_length_mismatch"].evidence.startswith("1024 prompt tokens were asked for, 1107 were counted on average")
    assert flags["short_outputs_eos"].evidence.startswith("512 output tokens were asked for, 210 came")
    assert doubts(SOUND, Evidence(requested_prompt_tokens=1010, requested_output_tokens=101)) == set()


def test_another_tokenizer_counts_otherwise() -> None:
    assert "tokenizer_mismatch" in raised(SOUND, Evidence(retokenized_output_tokens=97_000))
    assert doubts(SOUND, Evidence(retokenized_output_tokens=99_000)) == set()


def test_flagged_keeps_the_run_and_adds_the_flags() -> None:
    run = flagged(replace(SOUND, requests=RequestCounts(1000, 900, 100)))
    assert [flag.flag for flag in run.flags if flag.flag not in READING_AIDS] == ["failures_excluded"]
    assert run.metrics == SOUND.metrics
