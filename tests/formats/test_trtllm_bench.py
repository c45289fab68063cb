"""trtllm-bench's report: milliseconds, zeros for what was not measured, a measured mean as concurrency, the fullest identity."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.domain.dtypes import number_format
from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate, RequestCounts, Run
from app.formats import ParsedFile, read_runs
from app.formats.identity import NO_MODEL
from app.formats.trtllm_bench import FAILURES_INSIDE, MEASURED_MEAN, NEAREST_RANK, WITH_ZEROS

Reader = Callable[[str], ParsedFile]
DATA = Path(__file__).resolve().parents[1] / "data" / "trtllm_bench"


def one(parsed: ParsedFile) -> Run:
    (run,) = parsed.runs
    assert parsed.format == run.format == "trtllm_bench"
    return run


def report() -> dict[str, Any]:
    value: dict[str, Any] = json.loads((DATA / "2026-01_throughput_streamed.json").read_text())
    return value


def test_a_streamed_report(read_data: Reader) -> None:
    run = one(read_data("trtllm_bench/2026-01_throughput_streamed.json"))
    assert run.distribution("ttft_s") == Distribution(
        mean=pytest.approx(0.05),
        p50=pytest.approx(0.049),
        p90=pytest.approx(0.07),
        p95=pytest.approx(0.08),
        p99=pytest.approx(0.088),
        min=pytest.approx(0.04),
        max=pytest.approx(0.088),
        n=20,
    )
    tpot = run.distribution("tpot_s")
    assert tpot is not None
    assert (tpot.mean, tpot.p99, tpot.n) == (pytest.approx(0.01), pytest.approx(0.014), None)
    # (550 - 50) ms x 20 / (20 x 51 - 20) tokens
    assert run.distribution("itl_s") == Distribution(mean=pytest.approx(0.01), n=1000, origin="derived")
    assert run.rate("output_tokens_per_s") == Rate(1020.0, "aggregate", "reported")
    assert run.rate("total_tokens_per_s") == Rate(3020.0, "aggregate", "reported")
    assert run.duration_s == pytest.approx(1.0)
    assert run.requests == RequestCounts(completed=20)
    assert run.warnings == (FAILURES_INSIDE, MEASURED_MEAN, NEAREST_RANK)


def test_identity_is_all_there(read_data: Reader) -> None:
    run = one(read_data("trtllm_bench/2026-01_throughput_streamed.json"))
    assert (run.engine, run.engine_version, run.model, run.hardware) == ("tensorrt-llm", "1.1.0", "acme/tiny-8b", "NVIDIA H100 80GB HBM3")
    # -1 stands for no expert parallelism.
    assert (run.devices, run.tp, run.pp, run.ep) == (2, 2, 1, None)
    assert (run.weight_dtype, run.kv_dtype, run.measured_at) == ("FP8", "FP8", "in_process")
    assert (run.workload.concurrency, run.load_mode, run.labels["measured_concurrency"]) == (11, None, "11")
    assert run.labels["backend"] == "Pytorch"
    assert run.labels["max_batch_size"] == "64"


def test_one_request_at_a_time_without_streaming(read_data: Reader) -> None:
    run = one(read_data("trtllm_bench/2025-06_latency_not_streamed.json"))
    assert (run.load_mode, run.workload.concurrency, run.hardware) == ("single", 1, None)
    assert (run.weight_dtype, run.kv_dtype) == ("float16", None)
    assert run.distribution("ttft_s") is run.distribution("tpot_s") is run.distribution("itl_s") is None
    assert [flag.flag for flag in run.flags] == ["non_streaming_no_phase_split"]


def test_requests_of_one_token_make_tpot_something_else(read_data: Reader) -> None:
    run = one(read_data("trtllm_bench/2026-01_speculation_and_one_token.json"))
    tpot = run.distribution("tpot_s")
    assert tpot is not None
    # 8, 8, 8 and 0 ms
    assert (tpot.mean, tpot.definition) == (pytest.approx(0.006), WITH_ZEROS["tpot_s"])
    # Token-weighted all the same: (800 - 200) ms x 4 / (4 x 76 - 4)
    assert run.distribution("itl_s") == Distribution(mean=pytest.approx(0.008), n=300, origin="derived")
    assert run.labels["acceptance_length"] == "2.5"
    # A step takes 2.5 tokens x 8 ms.
    assert run.distribution("step_s") == Distribution(mean=pytest.approx(0.02), origin="derived")
    assert run.labels["draft_acceptance_rate"] == "0.5"
    assert run.labels["speculative_mode"] == "EAGLE"
    assert any("a step makes 2.5 tokens on average" in warning for warning in run.warnings)


def test_zero_is_no_time_to_a_first_token(read_one: Callable[[Any], Run]) -> None:
    value = report()
    value["streaming_metrics"]["ttft_percentiles"]["minimum"] = 0.0
    run = read_one(value)
    ttft = run.distribution("ttft_s")
    assert ttft is not None
    assert ttft.definition == WITH_ZEROS["ttft_s"]
    assert "itl_s" not in run.metrics
    value["streaming_metrics"] = {"avg_ttft_ms": 0.0, "avg_tpot_ms": 0.0}
    assert read_one(value).distribution("ttft_s") is None


def test_a_report_that_names_little(read_one: Callable[[Any], Run]) -> None:
    value = report()
    value["engine"] = {"version": "0.20.0"}
    assert NO_MODEL in read_one(value).warnings
    value["request_info"]["num_requests"] = 0
    assert [flag.flag for flag in read_one(value).flags] == ["zero_completed"]
    assert read_one(value).metrics == {}


@pytest.mark.parametrize("word", ["FP8_BLOCK_SCALES", "W4A16_AWQ", "W4A16_GPTQ", "W8A8_SQ_PER_CHANNEL", "NVFP4", "INT8"])
def test_its_words_for_number_formats_are_known(word: str) -> None:
    assert number_format(word).weights


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"performance": {}, "streaming_metrics": {}}, "performance.avg_request_latency_ms holds no time"),
        ({"request_info": {"num_requests": -2}}, "request_info.num_requests must be a whole number"),
        ({"world_info": None}, "is no result of a tool"),
    ],
)
def test_reports_without_a_run_are_refused(change: dict[str, Any], expected: str) -> None:
    with pytest.raises(ImportRefused, match=expected):
        read_runs("x", json.dumps({**report(), **change}).encode())
