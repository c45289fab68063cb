"""The console log of vLLM bench serve: blocks, progress bars, arguments, rounding, a log that is cut off."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Rate, RequestCounts
from app.formats import ParsedFile, read_runs
from app.formats.vllm_bench_serve_log import CUT_OFF, ROUNDED

DATA = Path(__file__).resolve().parents[1] / "data"
Reader = Callable[[str], ParsedFile]


def test_each_block_is_a_run(read_data: Reader) -> None:
    parsed = read_data("vllm_bench_serve_log/two_blocks.log")
    first, second = parsed.runs
    assert parsed.format == "vllm_bench_serve_log"
    assert (first.workload.concurrency, second.workload.concurrency) == (4, 8)
    assert first.model == second.model == "acme/tiny-8b"
    assert first.engine == "vllm"
    assert first.load_mode == "closed"
    assert first.workload.dataset == "random"
    assert first.requests == RequestCounts(sent=40, completed=40, failed=0)
    assert first.duration_s == 20.0
    # 20480 / 40 and 2560 / 40
    assert (first.workload.prompt_tokens_mean, first.workload.output_tokens_mean) == (512.0, 64.0)


def test_figures_of_a_block(read_data: Reader) -> None:
    first, second = read_data("vllm_bench_serve_log/two_blocks.log").runs
    ttft, tpot, itl = (first.distribution(key) for key in ("ttft_s", "tpot_s", "itl_s"))
    assert ttft is not None
    assert (ttft.mean, ttft.p50, ttft.p99, ttft.n) == (pytest.approx(0.05), pytest.approx(0.045), pytest.approx(0.09), 40)
    assert tpot is not None
    assert tpot.p50 == pytest.approx(0.0095)
    # The mean gap of 10 ms is the mean TPOT, so a chunk is a token.
    assert itl is not None
    assert itl.mean == pytest.approx(0.01)
    assert itl.n == 2560 - 40
    assert first.rate("decode_tokens_per_s") == Rate(pytest.approx(100.0), "request", "derived")
    assert first.rate("output_tokens_per_s") == Rate(128.0, "aggregate", "reported")
    # In the second the gaps are a quarter above TPOT: no ITL.
    assert "itl_s" not in second.metrics
    assert ROUNDED in first.warnings


def test_lengths_that_the_client_draws() -> None:
    text = (DATA / "vllm_bench_serve_log" / "two_blocks.log").read_bytes()
    drawn = text.replace(b"output_len from [64, 64]", b"output_len from [16, 112]")
    # 16 / 112 = 0.143; equal ones may still end early, so that they say nothing.
    assert [run.workload.shortest_length for run in read_runs("a.log", drawn).runs] == [0.143, 0.143]
    assert [run.workload.shortest_length for run in read_runs("a.log", text).runs] == [None, None]


def test_a_log_that_is_cut_off_says_so(read_data: Reader) -> None:
    (run,) = read_data("vllm_bench_serve_log/cut.log").runs
    assert CUT_OFF in run.warnings
    gap = run.distribution("chunk_gap_s")
    assert gap is not None
    assert gap.p99 is None


def test_answers_shorter_than_asked_for(read_data: Reader) -> None:
    (run,) = read_data("vllm_bench_serve_log/short_outputs.log").runs
    assert run.load_mode == "open"
    assert run.workload.request_rate_per_s == 8.0
    # 64 tokens were asked for, 1280 / 40 came.
    assert [flag.flag for flag in run.flags] == ["short_outputs_eos"]


def test_a_title_without_a_result_is_refused() -> None:
    text = b"============ Serving Benchmark Result ============\nKeyboardInterrupt\n"
    with pytest.raises(ImportRefused, match="no result under it"):
        read_runs("x.log", text)


def test_a_figure_that_is_no_number_is_refused() -> None:
    text = b"============ Serving Benchmark Result ============\nSuccessful requests:   many\nBenchmark duration (s):  1.00\n"
    with pytest.raises(ImportRefused, match="Successful requests is “many”"):
        read_runs("x.log", text)


def test_nothing_completed_in_a_log() -> None:
    text = (
        "============ Serving Benchmark Result ============\nSuccessful requests:   0\nFailed requests:  5\nBenchmark duration (s):  1.00\n"
        "Mean TTFT (ms):   0.00\n==================================================\n"
    )
    (run,) = read_runs("x.log", text.encode()).runs
    assert [flag.flag for flag in run.flags] == ["zero_completed"]
    assert run.metrics == {}
    assert run.requests == RequestCounts(None, 0, 5)


def test_the_block_of_sglang_is_not_read_as_vllm() -> None:
    text = (
        "============ Serving Benchmark Result ============\nBackend:    sglang\nSuccessful requests:   1\nBenchmark duration (s):  1.00\n"
    )
    with pytest.raises(ImportRefused) as refusal:
        read_runs("x.log", text.encode())
    assert "send the JSONL file" in dict(refusal.value.tried)["vllm_bench_serve_log"]


def test_queue_of_the_client_and_speculation_of_2026(read_data: Reader) -> None:
    (run,) = read_data("vllm_bench_serve_log/2026-09_client_queue_and_speculation.log").runs
    queue, scheduled, itl = (run.distribution(key) for key in ("client_queue_s", "e2e_from_schedule_s", "itl_s"))
    assert queue is not None
    assert (queue.mean, queue.p50, queue.p99) == (pytest.approx(0.25), pytest.approx(0.24), pytest.approx(0.5))
    assert scheduled is not None
    assert scheduled.mean == pytest.approx(0.93)
    # (680 - 50) ms x 40 / (2560 - 40), while a gap of 25 ms covers 2.5 tokens.
    assert itl is not None
    assert itl.mean == pytest.approx(0.01)
    assert itl.p50 is None
    assert {"client_queue_excluded", "chunk_tokens_gt_1", "itl_is_per_chunk"} <= {flag.flag for flag in run.flags}
    assert run.labels["spec_decode_acceptance_rate"] == "50.0"
    assert ROUNDED in run.warnings
