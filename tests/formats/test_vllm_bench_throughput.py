"""vLLM bench throughput: prompt and output tokens are counted together, and no output rate is made of them."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Rate, RequestCounts
from app.formats import ParsedFile
from app.formats.identity import NO_MODEL
from app.formats.vllm_bench_throughput import NO_PHASES, NO_SPLIT

Reader = Callable[[str], ParsedFile]
JsonReader = Callable[[Any], ParsedFile]
REPORT = {"elapsed_time": 20.0, "num_requests": 100, "total_num_tokens": 60000, "requests_per_second": 5.0, "tokens_per_second": 3000.0}


def test_a_report_counts_both_kinds_of_tokens_together(read_data: Reader) -> None:
    (run,) = read_data("vllm_bench_throughput/2024-08_report.json").runs
    assert (run.format, run.engine, run.load_mode, run.measured_at) == ("vllm_bench_throughput", "vllm", "offline", "in_process")
    assert run.metrics == {
        "requests_per_s": Rate(5.0, "aggregate", "reported"),
        "total_tokens_per_s": Rate(3000.0, "aggregate", "reported"),
    }
    assert run.requests == RequestCounts(100, 100)
    assert run.labels["total_num_tokens"] == "60000"
    assert run.workload.output_tokens_total is None
    assert run.warnings == (NO_PHASES, NO_SPLIT, NO_MODEL)


def test_the_pytorch_sibling_tells_how_tokens_divide(read_data: Reader) -> None:
    (run,) = read_data("vllm_bench_throughput/2025-10_pytorch_records.json").runs
    assert (run.model, run.tp, run.weight_dtype, run.kv_dtype) == ("acme/tiny-8b", 1, "bfloat16", "fp8")
    # 100 x (500 + 100) are the 60,000 tokens that were counted; 10,000 output tokens in 20 s.
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_mean) == (500.0, 100.0)
    assert run.rate("output_tokens_per_s") == Rate(500.0, "aggregate", "derived")
    assert run.rate("requests_per_s") == Rate(5.0, "aggregate", "reported")
    assert run.warnings == (NO_PHASES,)


def test_lengths_that_do_not_make_up_the_total_are_not_used(read_json: JsonReader) -> None:
    arguments = {"input_len": 500, "output_len": 120, "model": "acme/tiny-8b"}
    record = {
        "benchmark": {"name": "vLLM benchmark", "extra_info": {"args": arguments}},
        "model": {"name": "acme/tiny-8b"},
        "metric": {"name": "tokens_per_second", "benchmark_values": [3000.0], "extra_info": REPORT},
    }
    (run,) = read_json([record]).runs
    assert run.workload.output_tokens_total is None
    assert NO_SPLIT in run.warnings


def test_a_rate_at_odds_with_its_totals_is_replaced(read_data: Reader) -> None:
    (run,) = read_data("vllm_bench_throughput/2026-09_with_model.json").runs
    assert run.model == "acme/tiny-8b"
    assert run.rate("total_tokens_per_s") == Rate(3000.0, "aggregate", "derived")
    assert any("tokens_per_second says 6000 where totals / elapsed_time give 3000" in warning for warning in run.warnings)


def test_no_time_is_refused(read_json: JsonReader) -> None:
    with pytest.raises(ImportRefused, match="elapsed_time holds no time"):
        read_json({**REPORT, "elapsed_time": 0})
