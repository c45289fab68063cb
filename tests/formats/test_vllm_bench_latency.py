"""vLLM bench latency: the time of a whole batch, with and without what was asked of it."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate, RequestCounts
from app.formats import ParsedFile
from app.formats.identity import NO_MODEL
from app.formats.vllm_bench_latency import NO_PHASES, NO_SIZES, SEVERAL_ANSWERS

Reader = Callable[[str], ParsedFile]
JsonReader = Callable[[Any], ParsedFile]


def test_a_report_knows_the_time_of_a_batch_and_nothing_else(read_data: Reader) -> None:
    (run,) = read_data("vllm_bench_latency/2024-06_report.json").runs
    assert (run.format, run.engine, run.model) == ("vllm_bench_latency", "vllm", None)
    assert (run.load_mode, run.measured_at, run.workload.concurrency) == ("static_batch", "in_process", None)
    e2e = run.metrics["e2e_s"]
    assert isinstance(e2e, Distribution)
    # Iterations of 1.0, 1.1, 1.1 and 1.2 s; p95 lies 0.85 of the way from the third to the fourth.
    assert (e2e.mean, e2e.p50, e2e.n, e2e.origin) == (pytest.approx(1.1), pytest.approx(1.1), 4, "samples")
    assert e2e.p95 == pytest.approx(1.1 + 0.85 * 0.1)
    assert run.duration_s == pytest.approx(4.4)
    assert set(run.metrics) == {"e2e_s"}
    assert run.warnings == (NO_PHASES, NO_MODEL, NO_SIZES)
    assert run.flags == ()


def test_reports_without_samples_and_at_odds_with_them(read_data: Reader) -> None:
    plain, odd = read_data("vllm_bench_latency/2026-09_two_reports_with_model.json").runs
    assert plain.model == "acme/tiny-8b"
    assert plain.metrics["e2e_s"] == Distribution(mean=2.0, p50=1.9, p90=2.2, p99=2.5, std=0.1)
    assert plain.duration_s is None
    assert odd.metrics["e2e_s"] == Distribution(3.0, 3.0, 3.0, 3.0, 3.0, 0.0, 3.0, 3.0, 2, "samples")
    assert [flag.flag for flag in odd.flags] == ["metric_bug"]


def test_the_pytorch_sibling_knows_the_batch(read_data: Reader) -> None:
    (run,) = read_data("vllm_bench_latency/2025-10_pytorch_records.json").runs
    assert (run.model, run.tp, run.pp, run.weight_dtype, run.kv_dtype) == ("acme/tiny-8b", 2, 1, "fp8", None)
    assert run.workload.concurrency == 4
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_total) == (100.0, 44)
    # 44 and 444 tokens in 1.1 s
    assert run.metrics["output_tokens_per_s"] == Rate(pytest.approx(40.0), "aggregate", "derived")
    assert run.metrics["total_tokens_per_s"] == Rate(pytest.approx(444 / 1.1), "aggregate", "derived")
    assert run.requests == RequestCounts(completed=4)
    assert run.warnings == (NO_PHASES,)
    switches = {"use_beam_search": "false", "enable_prefix_caching": "false"}
    assert run.labels == {"n": "1", "num_iters_warmup": "10", **switches}


def test_several_answers_a_prompt_are_no_longer_outputs(read_data: Reader) -> None:
    (run,) = read_data("vllm_bench_latency/2025-10_pytorch_several_answers.json").runs
    assert (run.load_mode, run.weight_dtype, run.workload.output_tokens_mean) == ("static_batch", "bfloat16", None)
    # 3 answers of 11 tokens in 2 s
    assert run.workload.output_tokens_total == 33
    rate = run.rate("output_tokens_per_s")
    assert rate is not None
    assert rate.value == pytest.approx(16.5)
    assert SEVERAL_ANSWERS.format(n=3) in run.warnings


@pytest.mark.parametrize(
    "report",
    [
        {"avg_latency": 0, "latencies": [], "percentiles": {}},
        {"avg_latency": None, "percentiles": {}},
        {"avg_latency": None, "latencies": [None, 0.0], "percentiles": {"50": 0}},
    ],
)
def test_a_report_without_a_time_is_refused(read_json: JsonReader, report: dict[str, Any]) -> None:
    with pytest.raises(ImportRefused, match="hold no time"):
        read_json(report)


def test_damaged_samples_are_left_aside(read_json: JsonReader) -> None:
    (run,) = read_json({"avg_latency": 1.5, "latencies": [1.5, -1.0], "percentiles": {"99": 1.6}}).runs
    assert run.metrics["e2e_s"] == Distribution(mean=1.5, p99=1.6)
    assert any("latencies left aside" in warning for warning in run.warnings)


def test_words_of_the_sibling_are_cleaned(read_json: JsonReader) -> None:
    record = {
        "benchmark": {"extra_info": {"args": {}}},
        "model": {"name": "acme\ud800/tiny\n-8b"},
        "metric": {"name": "latency", "benchmark_values": [1.0], "extra_info": {}},
    }
    (run,) = read_json([record]).runs
    assert run.model == "acme/tiny -8b"
