"""vLLM bench serve, JSON: every era by files of our own, with values worked out by hand."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from app.domain.run import CANONICAL, Rate, RequestCounts, Run
from app.formats import ParsedFile
from app.formats.vllm_bench_serve import NO_PHASES, TTFT_AMONG_GAPS
from tests.sample_runs import names

Reader = Callable[[str], ParsedFile]
FOLDER = "vllm_bench_serve"


def only(parsed: ParsedFile) -> Run:
    (run,) = parsed.runs
    assert parsed.format == run.format == FOLDER
    return run


def stat(run: Run, metric: str, name: str = "mean") -> float | None:
    distribution = run.distribution(metric)
    assert distribution is not None
    return distribution.stat(name)


def test_detailed_arrays_of_2025(read_data: Reader) -> None:
    run = only(read_data("vllm_bench_serve/2025-09_detailed.json"))
    # Four requests succeeded: TTFT 100, 200, 300, 400; end 120, 280, 330, 400 ms; TPOT 10, 20, 30 ms (the last has one token).
    assert stat(run, "ttft_s") == pytest.approx(0.25)
    assert stat(run, "ttft_s", "p90") == pytest.approx(0.37)
    assert stat(run, "e2e_s") == pytest.approx(0.2825)
    assert stat(run, "tpot_s") == pytest.approx(0.02)
    # Decode times 20 + 80 + 30 ms over 2 + 4 + 1 gaps.
    assert stat(run, "itl_s") == pytest.approx(0.13 / 7)
    assert stat(run, "itl_s", "p50") == pytest.approx(0.02)
    assert stat(run, "chunk_gap_s") == pytest.approx(0.13 / 7)
    assert {key: run.metrics[key].origin for key in ("ttft_s", "tpot_s", "itl_s", "chunk_gap_s", "e2e_s")} == dict.fromkeys(
        ("ttft_s", "tpot_s", "itl_s", "chunk_gap_s", "e2e_s"), "samples"
    )
    assert run.requests == RequestCounts(sent=5, completed=4, failed=1)
    assert run.workload.prompt_tokens_total == 10 + 20 + 30 + 50
    assert run.workload.output_tokens_mean == pytest.approx(11 / 4)
    assert run.rate("output_tokens_per_s") == Rate(5.5, "aggregate", "reported")
    assert run.rate("decode_tokens_per_s") == Rate(pytest.approx(7 / 0.13), "request", "derived")
    assert run.label == "night"
    assert run.load_mode == "closed"
    assert names(run) == {"failures_excluded", "tpot_undefined_single_token", "few_requests", "mean_of_ratios_vs_ratio_of_means"}


def test_samples_of_a_detailed_file(read_data: Reader) -> None:
    samples = only(read_data("vllm_bench_serve/2025-09_detailed.json")).samples
    assert samples is not None
    assert samples.size == 5
    assert samples.ok.tolist() == [True, True, True, False, True]
    assert samples.chunk_gap_counts.tolist() == [2, 4, 1, 0, 0]
    assert samples.chunk_gaps_s.size == 7
    assert samples.start_s is not None
    assert samples.start_s.tolist() == [0.0, 0.0, 0.25, 0.5, 0.5]
    assert samples.errors == ("", "", "", "Traceback: timeout", "")
    assert samples.ttft_s[3] != samples.ttft_s[3]


def test_arrays_of_2024_without_a_count_of_failures(read_data: Reader) -> None:
    run = only(read_data("vllm_bench_serve/2024-02_arrays_always.json"))
    assert run.requests == RequestCounts(sent=3, completed=2, failed=1)
    # (20 + 80) ms over 2 + 4 gaps
    assert stat(run, "itl_s") == pytest.approx(0.1 / 6)
    assert run.token_count_source == "client_tokenizer"
    assert run.rate("total_tokens_per_s") == Rate(38.0, "aggregate", "derived")
    assert run.labels["best_of"] == "1"
    assert names(run) == {"failures_excluded", "mean_of_ratios_vs_ratio_of_means"}


def test_ttft_among_the_gaps_is_another_quantity(read_data: Reader) -> None:
    run = only(read_data("vllm_bench_serve/2024-06_ttft_among_gaps.json"))
    gap = run.distribution("chunk_gap_s")
    assert gap is not None
    assert gap.definition == TTFT_AMONG_GAPS
    assert "itl_s" not in run.metrics
    assert "decode_tokens_per_s" not in run.metrics
    assert any("No token-weighted ITL" in warning for warning in run.warnings)
    assert names(run) == set()


def test_ttft_is_taken_out_of_the_gaps_where_the_arrays_show_it(read_data: Reader) -> None:
    run = only(read_data("vllm_bench_serve/2024-06_ttft_among_gaps_arrays.json"))
    # Gaps 10, 20, 30 ms twice each behind TTFTs of 100, 200, 300 ms.
    assert stat(run, "chunk_gap_s") == pytest.approx(0.02)
    assert stat(run, "itl_s") == pytest.approx(0.02)
    assert stat(run, "e2e_s") == pytest.approx(0.24)
    assert run.metrics["chunk_gap_s"].definition == CANONICAL
    assert names(run) == set()


def test_goodput_key_with_a_colon(read_data: Reader) -> None:
    run = only(read_data("vllm_bench_serve/2025-03_goodput_colon.json"))
    assert run.rate("goodput_requests_per_s") == Rate(1.9, "aggregate", "reported")
    assert "request_goodput:" not in run.labels
    assert run.load_mode == "open"
    assert run.workload.request_rate_per_s == 4.0
    assert not run.workload.rate_unlimited
    assert run.token_count_source == "server_usage"


@pytest.mark.parametrize("name", ["2025-04_appended.json", "2025-04_appended_without_newline.json"])
def test_appended_documents_are_runs_in_order(read_data: Reader, name: str) -> None:
    first, second = read_data(f"vllm_bench_serve/{name}").runs
    assert (first.load_mode, second.load_mode) == ("open", "offline")
    assert (stat(first, "ttft_s"), stat(second, "ttft_s")) == (pytest.approx(0.05), pytest.approx(0.09))
    # The gap agrees with TPOT, so a chunk is a token, and there are 20 x 50 - 20 gaps.
    assert stat(first, "itl_s") == pytest.approx(0.01)
    assert first.metrics["itl_s"] == replace(first.metrics["chunk_gap_s"], n=20 * 50 - 20, origin="derived")
    assert any("a chunk is one token" in warning for warning in first.warnings)


def test_all_failed_is_a_run_without_figures(read_data: Reader) -> None:
    run = only(read_data("vllm_bench_serve/2025-09_all_failed.json"))
    assert run.metrics == {}
    assert run.requests == RequestCounts(sent=20, completed=0, failed=20)
    assert run.workload.concurrency == 8
    assert run.duration_s == 2.5
    assert names(run) == {"zero_completed"}


def test_sweep_list_with_swept_keys_as_labels(read_data: Reader) -> None:
    first, second = read_data("vllm_bench_serve/2025-10_sweep_summary.json").runs
    assert (first.labels["max_num_seqs"], second.labels["max_num_seqs"]) == ("4", "8")
    assert (first.labels["run_number"], second.labels["run_number"]) == ("0", "1")
    assert first.tp == second.tp == 2
    assert (first.load_mode, second.load_mode) == ("single", "closed")
    # (240 - 40) ms x 50 / (1050 - 50) gaps, exact from the means; the gap agrees, so its percentiles are those of tokens.
    assert stat(first, "itl_s") == pytest.approx(0.01)
    assert stat(first, "itl_s", "p99") == pytest.approx(0.03)
    # At one client the prompt pass is bounded by TTFT: 100 tokens / 40 ms.
    assert first.rate("prefill_tokens_per_s") == Rate(
        pytest.approx(2500.0), "request", "derived", "prompt tokens / TTFT at concurrency 1: front-end and queue are inside"
    )
    assert second.rate("prefill_tokens_per_s") is None


def test_chunks_of_two_tokens_show_in_the_means(read_data: Reader) -> None:
    second = read_data("vllm_bench_serve/2025-10_sweep_summary.json").runs[1]
    # 400 ms over 20 gaps between tokens, while chunks are 40 ms apart: no percentile of the gap between tokens is known.
    assert stat(second, "itl_s") == pytest.approx(0.02)
    assert stat(second, "itl_s", "p50") is None
    assert stat(second, "chunk_gap_s") == pytest.approx(0.04)
    assert {"chunk_tokens_gt_1", "itl_is_per_chunk"} <= names(second)


def test_latencies_without_details_and_client_queue(read_data: Reader) -> None:
    run = only(read_data("vllm_bench_serve/2026-09_latencies_alone.json"))
    assert stat(run, "e2e_s") == pytest.approx(0.6)
    assert run.metrics["e2e_s"].origin == "samples"
    # (600 - 100) ms x 2 / (22 - 2) gaps
    assert stat(run, "itl_s") == pytest.approx(0.05)
    assert stat(run, "ttft_s", "p95") == pytest.approx(0.1)
    assert "client_queue_excluded" in names(run)
    assert "queue_s" not in run.metrics  # that is the server's
    assert (run.hardware, run.tp, run.engine_version) == ("NVIDIA H100 80GB HBM3", 2, "0.33.0")
    assert run.engine is None
    assert any("“openai” is a protocol" in warning for warning in run.warnings)


def test_server_queue_times_are_the_queue(read_one: Callable[[Any], Run], detailed: dict[str, Any]) -> None:
    run = read_one({**detailed, "server_queue_times": [0.01, 0.02, 0.03, None, 0.04], "queue_times": [0.0, 0.0, 0.0, 0.0, 0.0]})
    assert stat(run, "queue_s") == pytest.approx(0.025)


def test_seconds_variant_keeps_its_unit(read_data: Reader) -> None:
    run = only(read_data("vllm_bench_serve/2026-02_seconds.json"))
    assert stat(run, "ttft_s", "p50") == 3.0
    assert stat(run, "tpot_s", "p50") == 0.14
    assert stat(run, "e2e_s", "p99") == 30.0
    assert stat(run, "ttft_s", "mean") is None
    assert "itl_s" not in run.metrics
    assert names(run) == set()


def test_pooling_run_has_a_whole_and_no_phase(read_data: Reader) -> None:
    run = only(read_data("vllm_bench_serve/2026-05_pooling.json"))
    assert stat(run, "e2e_s") == pytest.approx(0.9)
    assert set(run.metrics) == {"e2e_s", "requests_per_s", "total_tokens_per_s"}
    assert NO_PHASES in run.warnings


def test_local_time_is_a_label_and_never_an_instant(read_data: Reader) -> None:
    run = only(read_data("vllm_bench_serve/2025-09_detailed.json"))
    assert run.started_at is None
    assert run.labels["date"] == "20250901-120000"
    assert run.labels["date_timezone"] == "not stated"


def test_metadata_is_labels_and_never_a_metric(read_one: Callable[[Any], Run], report: dict[str, Any]) -> None:
    extra = {"model": "something-else", "gpu": "H100", "mean_e2e_ms": "1", "note": "a\u202eb\x00c", "nested": {"a": 1}, "nothing": None}
    run = read_one({**report, **extra})
    assert run.model == "acme/tiny-8b"
    assert run.hardware == "H100"
    assert run.labels["model"] == "something-else"
    assert run.labels["note"] == "abc"
    assert not {"nested", "nothing"} & set(run.labels)
    assert stat(run, "e2e_s") == pytest.approx(0.55)


def test_a_metric_as_text_is_no_metric(read_one: Callable[[Any], Run], report: dict[str, Any]) -> None:
    run = read_one({**report, "mean_ttft_ms": "5", "median_tpot_ms": True})
    assert stat(run, "ttft_s") is None
    assert stat(run, "tpot_s", "p50") is None
    assert "mean_ttft_ms is no number and left out." in run.warnings


def test_more_labels_than_a_run_keeps(read_one: Callable[[Any], Run], report: dict[str, Any]) -> None:
    run = read_one({**report, **{f"k{number}": number for number in range(100)}})
    assert len(run.labels) == 81  # 80 and the note on the time zone
    assert any("more keys are left out" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    ("rate", "limit", "expected"),
    [
        ("inf", None, (None, True, "offline")),
        (float("inf"), None, (None, True, "offline")),
        (1e9, 128, (None, True, "closed")),
        (0, None, (None, True, "offline")),
        (-1, None, (None, True, "offline")),
        (None, None, (None, False, None)),
        ("trace", None, (None, False, None)),
        (8, None, (8.0, False, "open")),
        ("8.5", 4, (8.5, False, "closed")),
        ("inf", 1, (None, True, "single")),
        (float("nan"), None, (None, False, None)),
    ],
)
def test_spellings_of_the_rate(
    read_one: Callable[[Any], Run], report: dict[str, Any], rate: object, limit: int | None, expected: tuple[float | None, bool, str]
) -> None:
    run = read_one({**report, "request_rate": rate, "max_concurrency": limit})
    assert (run.workload.request_rate_per_s, run.workload.rate_unlimited, run.load_mode) == expected


def test_a_ramp_is_an_open_load_without_one_rate(read_one: Callable[[Any], Run], report: dict[str, Any]) -> None:
    run = read_one({**report, "ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 9})
    assert run.load_mode == "open"
    assert not run.workload.rate_unlimited
    assert run.labels["ramp_up_end_rps"] == "9"


def test_unequal_gap_and_tpot_leave_itl_out(read_one: Callable[[Any], Run], report: dict[str, Any]) -> None:
    without = {key: value for key, value in report.items() if "e2el" not in key}
    run = read_one({**without, "mean_itl_ms": 10.2})
    assert "itl_s" not in run.metrics
    assert any("differ by more than 1 %" in warning and "TPOT stands" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    ("changes", "engine", "warned"),
    [
        ({"backend": "vllm"}, "vllm", False),
        ({"backend": "sglang"}, "sglang", False),
        ({"backend": "tensorrt-llm"}, "tensorrt-llm", False),
        ({"backend": "openai-chat"}, None, True),
        ({"backend": "vllm", "framework": "sgl"}, "vllm", True),
        ({"backend": "vllm", "framework": "vllm"}, "vllm", False),
    ],
)
def test_engine_is_the_backend_unless_that_is_a_protocol(
    read_one: Callable[[Any], Run], report: dict[str, Any], changes: dict[str, str], engine: str | None, warned: bool
) -> None:
    run = read_one({**report, **changes})
    assert run.engine == engine
    assert any("set it under Edit" in warning or "correct it under Edit" in warning for warning in run.warnings) == warned


def test_throughput_that_contradicts_its_own_totals(read_one: Callable[[Any], Run], report: dict[str, Any]) -> None:
    run = read_one({**report, "output_throughput": 204.0})
    assert run.rate("output_tokens_per_s") == Rate(102.0, "aggregate", "derived")
    assert any("output_tokens_per_s says 204" in warning and "102" in warning for warning in run.warnings)


def test_an_older_file_without_counts(read_one: Callable[[Any], Run], report: dict[str, Any]) -> None:
    kept = {key: value for key, value in report.items() if key not in ("failed", "completed", "num_prompts", "max_concurrency")}
    run = read_one(kept)
    assert run.requests == RequestCounts(None, None, None)
    assert stat(run, "ttft_s") == pytest.approx(0.05)
    assert run.workload.output_tokens_mean is None


def test_the_client_s_queue_belongs_to_the_schedule_of_a_rate(read_one: Callable[[Any], Run], detailed: dict[str, Any]) -> None:
    waited = {"queue_times": [0.0, 0.1, 0.2, 0.0, 0.3], "server_ttfts": [0.09, 0.18, 0.27, 0.0, 0.36], "request_goodput": 0.0}
    limited = {**detailed, **waited, "max_concurrency": 2, "request_rate": 4.0}
    run = read_one(limited)
    # The four that succeeded waited 0, 100, 200 and 300 ms before 120, 280, 330 and 400 ms.
    assert stat(run, "client_queue_s") == pytest.approx(0.15)
    assert stat(run, "e2e_from_schedule_s", "max") == pytest.approx(0.7)
    assert stat(run, "server_ttft_s") == pytest.approx(0.225)
    assert run.rate("goodput_requests_per_s") == Rate(0.0, "aggregate", "reported")
    # Without a rate all are due at once, and the wait for a slot says nothing.
    at_once = read_one({**limited, "request_rate": "inf", "request_goodput": None})
    assert not at_once.metrics.keys() & {"client_queue_s", "e2e_from_schedule_s", "goodput_requests_per_s"}


def test_the_client_s_queue_from_statistics(read_one: Callable[[Any], Run], report: dict[str, Any]) -> None:
    beside = {"mean_client_queue_time_ms": 250.0, "p99_client_queue_time_ms": 500.0, "p99.9_client_queue_time_ms": 600.0}
    whole = {"mean_e2el_including_client_queue_ms": 800.0}
    run = read_one({**report, **beside, **whole, "max_concurrency": 8, "request_rate": 2.0})
    assert (stat(run, "client_queue_s"), stat(run, "client_queue_s", "p99")) == (0.25, 0.5)
    assert stat(run, "e2e_from_schedule_s") == pytest.approx(0.8)
    assert "p99.9_client_queue_time_ms" not in run.labels


def test_metadata_in_the_place_of_a_count_is_a_label(read_one: Callable[[Any], Run], report: dict[str, Any]) -> None:
    run = read_one({**report, "num_prompts": "sixty-four"})
    assert run.requests == RequestCounts(None, 20, 0)
    assert run.labels["num_prompts"] == "sixty-four"
