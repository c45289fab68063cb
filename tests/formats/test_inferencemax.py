"""InferenceMAX aggregates: seconds without a suffix, rates per GPU and per role, lengths that came, the agentic variant."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate, RequestCounts, Run
from app.formats import ParsedFile, read_runs
from app.formats.inferencemax import ASKED_LENGTHS

Reader = Callable[[str], ParsedFile]
DATA = Path(__file__).resolve().parents[1] / "data" / "inferencemax"


@pytest.fixture
def fixed() -> dict[str, Any]:
    values: dict[str, Any] = json.loads((DATA / "fixed_lengths.json").read_text())
    return values


def distribution(run: Run, key: str) -> Distribution:
    found = run.distribution(key)
    assert found is not None
    return found


def test_fixed_lengths(read_data: Reader) -> None:
    (run,) = read_data("inferencemax/fixed_lengths.json").runs
    assert (run.engine, run.engine_version, run.model) == ("vllm", "0.13.0", "acme/tiny-120b")
    assert (run.hardware, run.devices, run.tp, run.ep, run.weight_dtype) == ("h200", 4, 4, 1, "fp8")
    assert (run.load_mode, run.workload.concurrency, run.measured_at) == ("closed", 16, "client")
    ttft = distribution(run, "ttft_s")
    assert (ttft.mean, ttft.p50, ttft.p99, ttft.std) == (0.2, 0.19, 0.4, 0.05)
    assert distribution(run, "tpot_s").p99 == 0.011
    assert distribution(run, "chunk_gap_s").mean == 0.01
    # The gap is the TPOT, so a chunk is a token: 1.2 = 0.2 + 100 x 0.01.
    assert distribution(run, "itl_s").mean == pytest.approx(0.01)
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_mean) == (1024.0, 101.0)
    # 4 GPUs
    assert run.metrics["total_tokens_per_s"] == Rate(4000.0, "aggregate", "derived")
    assert run.metrics["output_tokens_per_s"] == Rate(800.0, "aggregate", "derived")
    assert not any("intvty" in key for key in (*run.metrics, *run.labels))
    (flag,) = run.flags
    assert flag.flag == "throughput_includes_prompt"
    assert flag.evidence == "tput_per_gpu, 1000 tokens/s, counts prompt tokens too; output alone is 200 tokens/s per GPU."


def test_speculation_makes_the_gap_between_chunks_no_itl(read_data: Reader) -> None:
    (run,) = read_data("inferencemax/speculation.json").runs
    assert "itl_s" not in run.metrics
    assert (distribution(run, "tpot_s").mean, distribution(run, "chunk_gap_s").mean) == (0.02, 0.05)
    assert [flag.flag for flag in run.flags] == ["itl_is_per_chunk", "throughput_includes_prompt"]
    # 1 + (16.5 - 0.5) / 0.02 = 801 tokens came of the 1000 asked for; prompts are 40 / 20 times as long.
    assert run.workload.output_tokens_mean == pytest.approx(801.0)
    assert run.workload.prompt_tokens_mean == pytest.approx(1602.0)
    assert "asks for 1000 output tokens; its latencies are those of 801" in run.warnings[0]
    assert "No token-weighted ITL: the file has no token counts" in run.warnings[1]
    assert run.labels["spec_decoding"] == "mtp"


def test_rates_of_roles_are_those_of_their_own_devices(read_data: Reader) -> None:
    run, _ = read_data("inferencemax/disaggregated_and_agentic.json").runs
    assert (run.engine, run.devices, run.tp) == ("tensorrt-llm", 12, None)
    # 12 x 100; 8 x 75
    assert run.metrics["total_tokens_per_s"] == Rate(1200.0, "aggregate", "derived")
    assert run.metrics["output_tokens_per_s"] == Rate(600.0, "aggregate", "derived")
    assert [flag.flag for flag in run.flags] == ["throughput_includes_prompt", "per_role_gpu_denominator"]
    assert "divided by the 8 devices that decode" in run.flags[1].evidence


def test_the_agentic_scenario(read_data: Reader) -> None:
    _, run = read_data("inferencemax/disaggregated_and_agentic.json").runs
    assert run.requests == RequestCounts(sent=12, completed=10, failed=2)
    # 510.1 / 127.525
    assert (run.devices, run.duration_s) == (4, 100.0)
    assert (run.workload.prompt_tokens_total, run.workload.output_tokens_total) == (50_000, 1010)
    # (12 - 2) s x 10 requests / (1010 - 10) gaps
    assert distribution(run, "itl_s").mean == pytest.approx(0.1)
    assert distribution(run, "itl_s").n == 1000
    assert "chunk_gap_s" not in run.metrics
    assert distribution(run, "ttft_s").n == 10
    assert distribution(run, "ttft_s").p95 == 5.0
    assert run.metrics["output_tokens_per_s"] == Rate(10.1, "aggregate", "reported")
    assert run.metrics["total_tokens_per_s"] == Rate(510.1, "aggregate", "reported")
    assert run.metrics["requests_per_s"] == Rate(0.1, "aggregate", "reported")
    assert {"failures_excluded", "prefix_cache_hits"} <= {flag.flag for flag in run.flags}
    assert run.labels["scenario_type"] == "agentic-coding"


def test_lengths_asked_for_stand_in_with_a_warning(read_one: Callable[[Any], Run], fixed: dict[str, Any]) -> None:
    run = read_one({key: value for key, value in fixed.items() if not key.endswith("e2el")})
    assert run.workload.output_tokens_mean == 101.0
    assert ASKED_LENGTHS in run.warnings


def test_an_agentic_run_in_which_nothing_succeeded_has_no_figures(read_one: Callable[[Any], Run], fixed: dict[str, Any]) -> None:
    run = read_one({**fixed, "num_requests_total": 3, "num_requests_successful": 0})
    assert run.metrics == {}
    assert run.flags[0].flag == "zero_completed"


@pytest.mark.parametrize(
    "changes", [{"tp": 2**62}, {"tp": 2**40, "pp": 2**40}, {"num_prefill_gpu": 2**63 - 1, "num_decode_gpu": 8, "tp": 0}]
)
def test_a_count_of_devices_that_cannot_be_is_not_known(
    read_one: Callable[[Any], Run], fixed: dict[str, Any], changes: dict[str, Any]
) -> None:
    run = read_one({**fixed, **changes})
    assert run.devices is None
    assert "total_tokens_per_s" not in run.metrics


def test_no_figure_at_all_is_refused() -> None:
    with pytest.raises(ImportRefused, match="there is nothing to import"):
        read_runs("x", json.dumps({"hw": "h", "framework": "vllm", "conc": 1, "tput_per_gpu": 0}).encode())


def test_reason_for_declining() -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_runs("x", b'{"hw": "h200", "framework": "vllm", "conc": 1}')
    assert dict(refusal.value.tried)["inferencemax"] == "no key tput_per_gpu"
