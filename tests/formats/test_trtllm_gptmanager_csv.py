"""gptManagerBenchmark's CSV: TPOT under the name of inter-token latency, nearest ranks, lengths that only rates tell."""

from collections.abc import Callable

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate, RequestCounts
from app.formats import ParsedFile, read_runs
from app.formats.trtllm_gptmanager_csv import NEAREST_RANK, NO_IDENTITY

Reader = Callable[[str], ParsedFile]
HEADER = "num_samples,num_error_samples,total_latency(ms),seq_throughput(seq/sec),token_throughput(token/sec),avg_sequence_latency(ms)"


def test_streamed_rows_are_runs(read_data: Reader) -> None:
    first, second = read_data("trtllm_gptmanager_csv/2025-05_streamed_with_columns_of_others.csv").runs
    assert (first.engine, first.model, first.measured_at, first.load_mode) == ("tensorrt-llm", None, "in_process", None)
    assert first.requests == RequestCounts(22, 20, 2)
    assert first.duration_s == pytest.approx(10.0)
    ttft, tpot = first.distribution("ttft_s"), first.distribution("tpot_s")
    assert ttft == Distribution(
        mean=pytest.approx(0.05),
        p50=pytest.approx(0.049),
        p90=pytest.approx(0.07),
        p99=pytest.approx(0.088),
        min=pytest.approx(0.04),
        max=pytest.approx(0.09),
        n=20,
    )
    assert tpot is not None
    assert (tpot.mean, tpot.p95, tpot.n) == (pytest.approx(0.01), None, None)
    # 102 tokens / 2 sequences a second; (550 - 50) ms x 20 / (1020 - 20) tokens.
    assert (first.workload.output_tokens_mean, first.workload.output_tokens_total) == (51.0, 1020)
    assert first.distribution("itl_s") == Distribution(mean=pytest.approx(0.01), n=1000, origin="derived")
    assert first.rate("output_tokens_per_s") == Rate(102.0, "aggregate", "reported")
    assert first.rate("requests_per_s") == Rate(2.0, "aggregate", "reported")
    assert first.labels == {"util_avg": "87.5"}
    assert first.warnings == (NO_IDENTITY, NEAREST_RANK)
    assert [flag.flag for flag in first.flags] == ["failures_excluded"]
    # (600 - 100) ms x 10 / 500
    assert second.distribution("itl_s") == Distribution(mean=pytest.approx(0.01), n=500, origin="derived")


def test_without_streaming_there_are_no_phases(read_data: Reader) -> None:
    (run,) = read_data("trtllm_gptmanager_csv/2024-06_not_streamed.csv").runs
    assert {key for key in run.metrics if key.endswith("_s") and not key.endswith("per_s")} == {"e2e_s"}
    assert run.workload.output_tokens_mean == pytest.approx(51.0)
    assert [flag.flag for flag in run.flags] == ["non_streaming_no_phase_split"]
    assert run.rate("output_tokens_per_s") == Rate(255.0, "aggregate", "reported")


def test_semicolons_and_decimal_commas_of_a_spreadsheet() -> None:
    text = HEADER.replace(",", ";") + "\n4;0;2000,5;1,6;81,6;500,5\n"
    (run,) = read_runs("x", text.encode()).runs
    assert run.duration_s == pytest.approx(2.0005)
    assert run.distribution("e2e_s") == Distribution(mean=pytest.approx(0.5005), n=4)


def test_nothing_completed() -> None:
    (run,) = read_runs("x", f"{HEADER}\n0,4,2000,0,0,nan\n".encode()).runs
    assert run.metrics == {}
    assert {flag.flag for flag in run.flags} >= {"zero_completed"}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("", "a header and no row under it"),
        ("4,0,2000,2,100,0\n", r"avg_sequence_latency\(ms\) holds no time"),
        ("4,0,2000,2,100,500,7\n", "row on line 2 is longer than its header"),
        ("-4,0,2000,2,100,500\n", "line 2: num_samples must be a whole number"),
    ],
)
def test_tables_without_a_run_are_refused(rows: str, expected: str) -> None:
    with pytest.raises(ImportRefused, match=expected):
        read_runs("x", f"{HEADER}\n{rows}".encode())
