"""SGLang bench_serving: the three meanings of `itl`, identity from server_info, NaN and Infinity, details."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.domain.run import Rate, RequestCounts, Run
from app.formats import ParsedFile, read_runs
from app.formats.identity import NO_MODEL
from app.formats.sglang_bench_serving import RETOKENISED
from tests.sample_runs import mean, names

Reader = Callable[[str], ParsedFile]


def one(parsed: ParsedFile) -> Run:
    (run,) = parsed.runs
    assert parsed.format == run.format == "sglang_bench_serving"
    return run


def test_native_itl_is_the_token_gap(read_data: Reader) -> None:
    eight, single = read_data("sglang_bench_serving/2025-12_native.jsonl").runs
    itl = eight.distribution("itl_s")
    assert itl is not None
    assert (itl.mean, itl.p50, itl.p95, itl.p99) == (0.01, pytest.approx(0.009), 0.02, 0.025)
    assert itl.origin == "reported"
    assert "chunk_gap_s" not in eight.metrics
    # 100 + 20 gaps x 10 ms = 300 ms: the identity holds on means.
    assert mean(eight, "ttft_s") + (eight.workload.output_tokens_mean - 1) * itl.mean == pytest.approx(mean(eight, "e2e_s"))
    assert (eight.load_mode, single.load_mode) == ("closed", "single")
    assert (eight.label, single.label) == ("c8", "c1")
    assert single.rate("prefill_tokens_per_s") is not None
    assert eight.rate("prefill_tokens_per_s") is None
    assert eight.workload.rate_unlimited


def test_identity_from_server_info(read_data: Reader) -> None:
    run = read_data("sglang_bench_serving/2025-12_native.jsonl").runs[0]
    assert (run.engine, run.engine_version, run.model) == ("sglang", "0.5.5", "acme/tiny-3b")
    assert (run.tp, run.pp, run.ep, run.devices) == (4, 1, 1, 4)
    assert (run.weight_dtype, run.kv_dtype) == ("fp8", "fp8_e5m2")
    assert run.labels["chunked_prefill_size"] == "8192"
    assert run.labels["measured_concurrency"] == "0.6"
    assert run.labels["disaggregation_mode"] == "off"
    assert NO_MODEL not in run.warnings


@pytest.mark.parametrize(("attention", "devices"), [(False, 8), (True, 4)])
def test_data_parallel_ranks_share_devices_under_dp_attention(attention: bool, devices: int) -> None:
    record = native(server_info={"model_path": "m", "tp_size": 4, "pp_size": 1, "dp_size": 2, "enable_dp_attention": attention})
    assert record.devices == devices


def test_old_short_schema_has_medians_only(read_data: Reader) -> None:
    run = one(read_data("sglang_bench_serving/2024-12_short.jsonl"))
    itl = run.distribution("itl_s")
    assert itl is not None
    assert itl.p50 == pytest.approx(0.009)
    assert itl.mean is None
    assert "decode_tokens_per_s" not in run.metrics
    assert run.rate("requests_per_s") == Rate(2.0, "aggregate", "derived")
    assert run.model is None
    assert NO_MODEL in run.warnings
    assert any("no decode rate follows" in warning for warning in run.warnings)
    assert run.load_mode == "open"


def test_openai_client_writes_gaps_between_chunks(read_data: Reader) -> None:
    run = one(read_data("sglang_bench_serving/2025-06_openai_client.jsonl"))
    assert mean(run, "chunk_gap_s") == pytest.approx(0.02)
    # (300 - 100) ms x 20 / (420 - 20) gaps
    assert mean(run, "itl_s") == pytest.approx(0.01)
    assert run.metrics["itl_s"].origin == "derived"
    assert {"chunk_tokens_gt_1", "itl_is_per_chunk"} <= names(run)


def test_retokenised_gaps_are_replaced_by_the_exact_mean(read_data: Reader) -> None:
    run = one(read_data("sglang_bench_serving/2025-06_retokenised.jsonl"))
    itl = run.distribution("itl_s")
    assert itl is not None
    assert itl.mean == pytest.approx(0.01)
    assert itl.p50 is None
    assert "chunk_tokens_gt_1" in names(run)


def test_retokenised_gaps_keep_their_definition_where_nothing_better_is_known() -> None:
    run = native(backend="sglang-oai", accept_length=2.5, mean_e2e_latency_ms=None)
    itl = run.distribution("itl_s")
    assert itl is not None
    assert itl.definition == RETOKENISED
    assert run.metrics["decode_tokens_per_s"].definition == RETOKENISED


def test_nothing_completed_with_nan(read_data: Reader) -> None:
    run = one(read_data("sglang_bench_serving/2025-06_nothing_completed.jsonl"))
    assert names(run) == {"zero_completed", "nan_values"}
    assert run.metrics == {}
    assert run.requests.completed == 0


def test_details_give_samples_and_count_failures(read_data: Reader) -> None:
    run = one(read_data("sglang_bench_serving/2026-06_details.jsonl"))
    assert run.requests == RequestCounts(sent=3, completed=2, failed=1)
    # (20 + 80) ms over 2 + 4 token gaps; the gaps themselves are 10, 10, 20, 20, 20, 20.
    itl = run.distribution("itl_s")
    assert itl is not None
    assert itl.mean == pytest.approx(0.1 / 6)
    assert itl.p50 == pytest.approx(0.02)
    assert itl.origin == "samples"
    assert mean(run, "tpot_s") == pytest.approx(0.015)
    assert run.samples is not None
    assert run.samples.chunk_gaps_s.size == 0  # these are token gaps, which are no chunk gaps
    assert np.isnan(run.samples.ttft_s[2])
    assert run.labels["request_rate"] == "trace"


def test_retokenised_count_that_differs_is_flagged() -> None:
    assert "tokenizer_mismatch" in names(native(total_output_tokens_retokenized=400))
    assert "tokenizer_mismatch" not in names(native(total_output_tokens_retokenized=415))


def test_lengths_are_compared_only_where_they_are_fixed() -> None:
    assert "short_outputs_eos" in names(native(random_output_len=64))
    assert "short_outputs_eos" not in names(native(random_output_len=64, random_range_ratio=0.0))


@pytest.mark.parametrize(
    ("ratio", "dataset", "shortest"),
    [
        # From ratio x length to length, and one token of 64 at least; a dataset of conversations draws nothing.
        (0.0, "random", 0.016),
        (0.5, "random-ids", 0.5),
        (1.0, "random", None),
        (0.0, "sharegpt", None),
        (None, "random", None),
    ],
)
def test_lengths_that_are_drawn(ratio: float | None, dataset: str, shortest: float | None) -> None:
    run = native(random_output_len=64, random_range_ratio=ratio, dataset_name=dataset)
    assert run.workload.shortest_length == shortest


def test_vllm_server_measured_by_this_client() -> None:
    run = native(backend="vllm")
    assert run.engine == "vllm"
    assert "chunk_gap_s" in run.metrics


def test_a_line_without_the_retokenised_count_is_still_this_tool() -> None:
    record = record_of()
    del record["total_output_tokens_retokenized"]
    parsed = read_runs("x.jsonl", (json.dumps(record) + "\n\n").encode())
    assert parsed.format == "sglang_bench_serving"


def record_of(**changes: Any) -> dict[str, Any]:
    """20 requests of 100 prompt and 21 output tokens in 10 s; 300 ms = 100 ms + 20 x 10 ms."""
    return {
        "backend": "sglang",
        "dataset_name": "random",
        "request_rate": float("inf"),
        "max_concurrency": None,
        "random_input_len": 100,
        "random_output_len": 21,
        "random_range_ratio": 1.0,
        "duration": 10.0,
        "completed": 20,
        "total_input_tokens": 2000,
        "total_output_tokens": 420,
        "total_output_tokens_retokenized": 420,
        "mean_e2e_latency_ms": 300.0,
        "mean_ttft_ms": 100.0,
        "mean_tpot_ms": 10.0,
        "mean_itl_ms": 10.0,
        "median_itl_ms": 9.0,
        **changes,
    }


def native(**changes: Any) -> Run:
    return one(read_runs("x.jsonl", json.dumps(record_of(**changes)).encode()))
