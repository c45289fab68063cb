"""vLLM /metrics: two scrapes become one run, with values worked out by hand; one scrape, or a server that began again, become none.

Between the scrapes of 2026-05 ten requests of 500 prompt and 101 output tokens end: queue 0.2 s, prefill 1.2 s, TTFT 1.6 s, decode 9 s
and whole requests 10.6 s in all.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate, RequestCounts, Run
from app.formats import ParsedFile, joined, read_runs
from app.formats.vllm_prometheus import ALONE, NO_DURATION, WHOLE_SECONDS, WORK_NOT_COUNTED
from tests.sample_runs import distribution, names

Reader = Callable[[str], ParsedFile]
FOLDER = Path(__file__).resolve().parents[1] / "data" / "vllm_prometheus"
BEFORE, AFTER = ((FOLDER / f"2026-05_{name}.txt").read_text() for name in ("before", "after"))


def one_file(*texts: str) -> bytes:
    return "".join(texts).encode()


def only(*texts: str) -> Run:
    (run,) = read_runs("pair.txt", one_file(*texts)).runs
    return run


def refusal(*texts: str) -> str:
    with pytest.raises(ImportRefused) as refused:
        read_runs("pair.txt", one_file(*texts))
    return refused.value.reason


def test_means_are_sums_over_counts_and_add_up() -> None:
    run = only(BEFORE, AFTER)
    assert (run.engine, run.model, run.measured_at, run.kv_dtype) == ("vllm", "acme/tiny-8b", "server", "fp8")
    ttft, itl, e2e = (distribution(run, key) for key in ("ttft_s", "itl_s", "e2e_s"))
    assert (ttft.mean, ttft.n, ttft.origin) == (pytest.approx(0.16), 10, "derived")
    # 9 s of decode over 10 x (101 - 1) gaps
    assert (itl.mean, itl.n) == (pytest.approx(0.009), 1000)
    assert e2e.mean == pytest.approx(1.06)
    assert ttft.mean is not None
    assert itl.mean is not None
    assert ttft.mean + 100 * itl.mean == pytest.approx(e2e.mean)
    assert distribution(run, "prefill_s").mean == pytest.approx(0.12)
    assert distribution(run, "queue_s").mean == pytest.approx(0.02)
    assert distribution(run, "tpot_s").mean == pytest.approx(0.009)
    assert distribution(run, "decode_s").mean == pytest.approx(0.9)
    assert run.requests == RequestCounts(None, 10, 0)
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_mean) == (500.0, 101.0)
    assert (run.workload.prompt_tokens_total, run.workload.output_tokens_total) == (5000, 1010)
    assert run.workload.concurrency is None


def test_quantiles_are_interpolated_in_their_bucket() -> None:
    run = only(BEFORE, AFTER)
    ttft = distribution(run, "ttft_s")
    # Up to 100, 200 and 400 ms: 2, 8 and 10. Rank 5 is half way through the 6 of the second bucket, 9 half way through the 2 of the third.
    assert ttft.p50 == pytest.approx(0.15)
    assert ttft.p90 == pytest.approx(0.3)
    assert ttft.p99 == pytest.approx(0.39)
    itl = distribution(run, "itl_s")
    # Up to 10 and 25 ms: 700 and 1,000 gaps.
    assert itl.p50 == pytest.approx(0.01 * 500 / 700)
    assert itl.p90 == pytest.approx(0.01 + 0.015 * 200 / 300)
    assert "interpolated within the buckets" in run.warnings[0]
    assert "ttft_s in 100 ms to 200 ms" in run.warnings[0]


def test_a_sum_that_rules_out_an_even_spread_leaves_quantiles_out() -> None:
    run = only(BEFORE, AFTER)
    # All ten waits are below 300 ms; evenly spread their sum would be near 1.5 s, and it is 0.2 s. Prefill may be even: 1.2 s.
    assert distribution(run, "queue_s") == Distribution(mean=pytest.approx(0.02), n=10, origin="derived")
    assert distribution(run, "prefill_s").p50 == pytest.approx(0.15)
    assert any("Of queue_s, decode_s, tpot_s the mean rules out" in warning for warning in run.warnings)


def test_labels_hold_the_cache_and_both_moments() -> None:
    labels = only(BEFORE, AFTER).labels
    assert labels["num_gpu_blocks"] == "5000"
    assert "sliding_window" not in labels
    assert (labels["kv_cache_usage_before"], labels["kv_cache_usage_after"]) == ("0", "0.25")
    assert (labels["generation_tokens"], labels["preemptions"]) == ("1010", "1")
    assert (labels["finished_stop"], labels["finished_length"]) == ("2", "8")


def test_cached_prompt_tokens_are_a_flag_and_in_no_prefill_rate() -> None:
    run = only(BEFORE, AFTER)
    (flag,) = run.flags
    assert (flag.flag, dict(flag.figures)) == ("prefix_cache_hits", {"cached_tokens": 200, "cached_share": 0.04})
    # 480 of the 500 prompt tokens were computed, in 120 ms.
    assert run.rate("prefill_tokens_per_s") == Rate(pytest.approx(4000.0), "request", "derived")


def test_without_times_there_is_work_per_byte_and_no_rate_over_time() -> None:
    run = only(BEFORE, AFTER)
    assert run.duration_s is None
    assert NO_DURATION in run.warnings
    # 4e15 FLOP over 2e12 bytes read and 5e11 written
    assert run.rate("intensity_flops_per_byte") == Rate(pytest.approx(1600.0), "device", "derived")
    assert not run.metrics.keys() & {"flops_per_s", "bytes_per_s", "output_tokens_per_s", "requests_per_s"}


def test_saved_responses_have_dates_and_with_them_rates(read_data: Reader) -> None:
    (run,) = read_data("vllm_prometheus/2026-05_saved_responses.txt").runs
    assert (run.started_at, run.duration_s) == (datetime(2026, 5, 1, 12, 0, 10, tzinfo=UTC), 20.0)
    assert run.rate("output_tokens_per_s") == Rate(50.5, "aggregate", "derived")
    assert run.rate("total_tokens_per_s") == Rate(300.5, "aggregate", "derived")
    assert run.rate("requests_per_s") == Rate(0.5, "aggregate", "derived")
    assert run.rate("flops_per_s") == Rate(2e14, "device", "derived")
    assert run.rate("bytes_per_s") == Rate(1.25e11, "device", "derived")
    assert WHOLE_SECONDS.format(share="5 %") in run.warnings


def test_two_engines_under_old_names_with_timestamps(read_data: Reader) -> None:
    (run,) = read_data("vllm_prometheus/2025-02_federated_two_engines.txt").runs
    assert run.duration_s == 40.0
    assert run.requests == RequestCounts(None, 4, 1)
    assert not any("whole seconds" in warning for warning in run.warnings)
    # The gaps of both engines: 200 in 10 s and 100 in 5 s, each of (900 - 5) / 300 tokens.
    assert distribution(run, "chunk_gap_s").mean == pytest.approx(0.05)
    assert "itl_s" not in run.metrics
    assert {"chunk_tokens_gt_1", "itl_is_per_chunk"} <= names(run)
    # One of five requests has a single token and counts as 0: 80 ms over the other four.
    tpot = distribution(run, "tpot_s")
    assert (tpot.mean, tpot.n) == (pytest.approx(0.02), 4)
    assert tpot.p50 == pytest.approx(0.0175)
    assert run.labels["kv_cache_usage_after"] == "0.5"
    assert "1 of 5 requests were aborted or failed; the server's histograms have them too." in run.warnings
    assert "failures_excluded" not in names(run)


def test_a_quantile_beyond_the_last_bound_is_not_known(read_data: Reader) -> None:
    (run,) = read_data("vllm_prometheus/2025-02_federated_two_engines.txt").runs
    # Three of five first tokens came after the last bound of one second.
    assert distribution(run, "ttft_s") == Distribution(mean=pytest.approx(2.1), n=5, origin="derived")
    flag = next(flag for flag in run.flags if flag.flag == "histogram_top_bucket_saturated")
    assert flag.withholds == ("ttft_s.p50", "ttft_s.p90", "ttft_s.p95", "ttft_s.p99")


def test_one_scrape_is_refused_with_what_to_do() -> None:
    assert refusal(AFTER) == ALONE
    assert "phaseline import before.txt after.txt" in ALONE


def test_three_scrapes_are_refused() -> None:
    assert "There are 3 scrapes" in refusal(BEFORE, BEFORE, AFTER)


def test_the_order_is_found_from_the_counters() -> None:
    assert only(AFTER, BEFORE).metrics == only(BEFORE, AFTER).metrics


def test_two_files_of_one_upload_become_one_whatever_their_order() -> None:
    files = [("after.txt", AFTER.encode()), ("notes.json", b"{}"), ("before.txt", BEFORE.encode())]
    together = joined(files)
    assert together == [("before.txt + after.txt", one_file(BEFORE, AFTER)), ("notes.json", b"{}")]
    assert joined(files[::-1])[0] == together[0]
    assert joined(files[:2]) == files[:2]


def test_a_part_in_another_encoding_is_joined_as_utf_8() -> None:
    files = [("after.txt", AFTER.encode("utf-16")), ("before.txt", BEFORE.rstrip("\n").encode())]
    assert joined(files) == [("before.txt + after.txt", one_file(BEFORE, AFTER))]


def test_a_restart_is_refused() -> None:
    reason = refusal(BEFORE, AFTER.replace("process_start_time_seconds 1780000000.0", "process_start_time_seconds 1780000100.0"))
    assert reason.startswith("The server was started anew between the scrapes")
    assert "process_start_time_seconds is 1780000000.000 in the first and 1780000100.000 in the second" in reason


def test_counters_that_fall_are_refused_by_name() -> None:
    counter = 'vllm:prompt_tokens_total{engine="0",model_name="acme/tiny-8b"}'
    fallen = AFTER.replace(f"{counter} 5300.0", f"{counter} 12.0")
    reason = refusal(BEFORE, fallen)
    assert reason.startswith("vllm:prompt_tokens_total fell from the first scrape to the second")


def without_start(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if "_created" not in line and "process_start" not in line)


def test_without_a_start_time_falling_counters_are_a_restart_and_rising_ones_a_pair() -> None:
    assert only(without_start(BEFORE), without_start(AFTER)).metrics == only(BEFORE, AFTER).metrics
    assert "fell from the first scrape to the second" in refusal(without_start(AFTER), without_start(BEFORE))


def test_dates_against_counters_are_refused() -> None:
    head = "HTTP/1.1 200 OK\r\nDate: Fri, 01 May 2026 12:00:{}0 GMT\r\n\r\n"
    assert "fell from the first scrape to the second" in refusal(head.format(3), BEFORE, head.format(1), AFTER)
    (run,) = read_runs("x", one_file(head.format(3), AFTER, head.format(1), BEFORE)).runs
    assert run.duration_s == 20.0


def test_two_servers_are_refused() -> None:
    other = without_start(AFTER).replace("acme/tiny-8b", "acme/other")
    assert "they are of different servers or models" in refusal(without_start(BEFORE), other)


def test_nothing_between_is_refused() -> None:
    assert "Both scrapes show the same counters" in refusal(AFTER, AFTER)
    lines = [line for line in AFTER.splitlines(keepends=True) if "request_success" in line and "8b" in line]
    unfinished = AFTER
    for line in lines:
        same = next(old for old in BEFORE.splitlines(keepends=True) if old.split(" ")[0] == line.split(" ")[0])
        unfinished = unfinished.replace(line, same)
    assert "No request finished between the two scrapes" in refusal(BEFORE, unfinished)


def test_a_cut_scrape_names_the_line() -> None:
    cut = AFTER[: AFTER.index("vllm:e2e_request_latency_seconds_bucket") + 60]
    reason = refusal(BEFORE, cut)
    assert reason.startswith(f"Line {len((BEFORE + cut).splitlines())} is no Prometheus sample: “vllm:e2e_request_latency_seconds_bucket")


def test_work_that_was_not_counted_is_said() -> None:
    def still(text: str) -> str:
        return "".join(
            line.split(" ")[0] + " 0.0\n" if line.startswith("vllm:estimated") and "_created" not in line else line
            for line in text.splitlines(keepends=True)
        )

    run = only(still(BEFORE), still(AFTER))
    assert "intensity_flops_per_byte" not in run.metrics
    assert WORK_NOT_COUNTED in run.warnings


def test_two_models_are_two_runs() -> None:
    def twice(text: str) -> str:
        series = [line for line in text.splitlines(keepends=True) if line.startswith("vllm:") and "model_name" in line]
        return text + "".join(line.replace("acme/tiny-8b", "acme/more") for line in series)

    runs = read_runs("two", one_file(twice(BEFORE), twice(AFTER))).runs
    assert [run.model for run in runs] == ["acme/more", "acme/tiny-8b"]
    assert runs[0].metrics == runs[1].metrics == only(BEFORE, AFTER).metrics


@pytest.mark.shared
def test_the_pair_of_samples(shared_dir: Path) -> None:
    folder = shared_dir / "samples" / "vllm_prometheus"
    files = [(name, (folder / name).read_bytes()) for name in ("v0.25.1_metrics_loaded.txt", "v0.25.1_metrics_idle.txt")]
    for _, data in files:
        with pytest.raises(ImportRefused, match="This is one scrape"):
            read_runs("alone", data)
    ((name, data),) = joined(files)
    assert name == "v0.25.1_metrics_idle.txt + v0.25.1_metrics_loaded.txt"
    (run,) = read_runs(name, data).runs
    assert (run.model, run.requests) == ("opt-125m-tp2", RequestCounts(None, 600, 0))
    assert distribution(run, "ttft_s").mean == pytest.approx(88.24499082565308 / 664)
    assert distribution(run, "ttft_s").p50 == pytest.approx(0.1 + 0.15 * (332 - 166) / (593 - 166))
    assert distribution(run, "prefill_s").mean == pytest.approx(36.60655808323645 / 600)
    assert distribution(run, "queue_s").mean == pytest.approx(18.513516283710487 / 600)
    assert distribution(run, "tpot_s").mean == pytest.approx(3.6413589966192417 / 600)
    assert distribution(run, "itl_s").mean == pytest.approx(928.5465441379056 / (153600 - 600))
    assert distribution(run, "chunk_gap_s").mean == pytest.approx(998.1225105317717 / 164629)
    assert distribution(run, "e2e_s").p90 == pytest.approx(1.5 + 0.5 * (540 - 24) / (591 - 24))
    assert names(run) == {"prefix_cache_hits"}
    assert WORK_NOT_COUNTED in run.warnings
    assert (run.labels["requests_running_after"], run.labels["requests_waiting_after"]) == ("64", "64")
