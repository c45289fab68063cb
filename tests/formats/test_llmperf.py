"""llmperf: its ITL is none, ITL from means and TPOT from responses, maps by concurrency, failures."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Rate, RequestCounts, Run
from app.formats import ParsedFile, read_runs
from app.formats.llmperf import ALONE, NO_ITL, ONE_TOKENIZER
from app.formats.stat_export import exact_total
from tests.sample_runs import evidence, mean

Reader = Callable[[str], ParsedFile]
Json = dict[str, Any]
DATA = Path(__file__).resolve().parents[1] / "data" / "llmperf"


def read(value: object) -> tuple[Run, ...]:
    parsed = read_runs("x.json", json.dumps(value).encode())
    assert parsed.format == "llmperf"
    return parsed.runs


def summary(**changes: Any) -> Json:
    value: Json = json.loads((DATA / "summary.json").read_text())
    return {**value, **changes}


def test_what_it_calls_itl_is_the_whole_request_over_its_tokens(read_data: Reader) -> None:
    (run,) = read_data("llmperf/summary.json").runs
    # (550 - 50) ms x 20 / (1020 - 20) tokens; 550 / 51 = 10.78 ms is what the file says.
    assert mean(run, "itl_s") == pytest.approx(0.01)
    assert run.distribution("itl_s").origin == "derived"  # type: ignore[union-attr]
    assert mean(run, "ntpot_s") == pytest.approx(0.55 / 51, rel=1e-5)
    assert not {"tpot_s", "chunk_gap_s"} & set(run.metrics)
    assert {NO_ITL, ONE_TOKENIZER} <= set(run.warnings)


def test_summary(read_data: Reader) -> None:
    (run,) = read_data("llmperf/summary.json").runs
    ttft = run.distribution("ttft_s")
    assert ttft is not None
    assert (ttft.mean, ttft.n, ttft.origin) == (0.05, 20, "reported")
    assert ttft.p99 == pytest.approx(0.075)
    assert ttft.std == pytest.approx(0.005)
    assert (run.model, run.engine, run.load_mode, run.workload.concurrency) == ("acme/tiny-8b", None, "closed", 4)
    assert run.requests == RequestCounts(22, 20, 2)
    assert run.duration_s == pytest.approx(10.0)  # 20 requests at 120 a minute
    assert run.rate("output_tokens_per_s") == Rate(102.0, "aggregate", "reported")
    assert run.rate("requests_per_s").value == pytest.approx(2.0)  # type: ignore[union-attr]
    assert run.rate("total_tokens_per_s").value == pytest.approx(302.0)  # type: ignore[union-attr]
    assert (run.labels["framework"], run.labels["error_codes"]) == ("acme-server", "{429: 2}")
    assert "api" not in run.labels  # an address
    assert "failures_excluded" in evidence(run)


def test_a_map_of_runs_by_concurrency_gives_each(read_data: Reader) -> None:
    one, eight = read_data("llmperf/by_concurrency.json").runs
    assert [run.workload.concurrency for run in (one, eight)] == [1, 8]
    assert (one.load_mode, eight.load_mode) == ("single", "closed")
    assert mean(eight, "itl_s") == pytest.approx(0.02)
    assert one.rate("prefill_tokens_per_s").value == pytest.approx(100 / 0.05)  # type: ignore[union-attr]
    assert eight.rate("prefill_tokens_per_s") is None


def test_individual_responses_give_samples(read_data: Reader) -> None:
    (run,) = read_data("llmperf/individual.json").runs
    assert run.requests == RequestCounts(4, 3, 1)
    assert run.samples is not None
    assert run.samples.errors[2] == "429 Too many requests"
    # 20 + 80 ms over 2 + 4 gaps; requests alone 10 and 20 ms; the third has one token and no TPOT.
    assert mean(run, "itl_s") == pytest.approx(0.1 / 6)
    assert mean(run, "tpot_s") == pytest.approx(0.015)
    assert run.distribution("tpot_s").n == 2  # type: ignore[union-attr]
    assert mean(run, "ttft_s") == pytest.approx(0.2)
    assert (run.workload.prompt_tokens_total, run.workload.output_tokens_total) == (30, 9)
    assert (run.model, run.duration_s, run.rate("output_tokens_per_s")) == (None, None, None)
    assert ALONE in run.warnings
    assert {"failures_excluded", "tpot_undefined_single_token"} <= set(evidence(run))


def test_nan_of_pandas_and_nothing_completed() -> None:
    (run,) = read(summary(results_ttft_s_mean=float("nan")))
    assert mean(run, "ttft_s") is None
    assert "itl_s" not in run.metrics
    assert "results_ttft_s_mean" in evidence(run)["nan_values"]
    (nothing,) = read(summary(results_num_completed_requests=0, results_number_errors=22))
    assert (nothing.metrics, set(evidence(nothing))) == ({}, {"zero_completed"})


def test_responses_that_all_failed() -> None:
    row = {"error_code": 500, "error_msg": "x", "ttft_s": 0, "end_to_end_latency_s": 0, "request_output_throughput_token_per_s": 0}
    (run,) = read([row, row])
    assert run.requests == RequestCounts(2, 0, 2)
    assert (run.metrics, set(evidence(run))) == ({}, {"zero_completed"})


def test_lengths_are_compared_where_no_spread_was_asked_for() -> None:
    (run,) = read(summary(mean_input_tokens=150))
    assert "input_length_mismatch" in evidence(run)
    assert "short_outputs_eos" not in evidence(run)  # the outputs were to spread by 10
    (spread,) = read(summary(mean_input_tokens=150, stddev_input_tokens=20))
    assert "input_length_mismatch" not in evidence(spread)


@pytest.mark.parametrize(
    "value", [{"1": {"a": 1}}, {"1": {"results_ttft_s_mean": 1}, "x": {}}, [{"results_ttft_s_mean": 1}, {"request_output": 1}]]
)
def test_what_is_not_its_file(value: object) -> None:
    with pytest.raises(ImportRefused) as refused:
        read_runs("x", json.dumps(value).encode())
    assert "no keys results_ttft_s" in dict(refused.value.tried)["llmperf"]


@pytest.mark.parametrize(("tokens", "requests"), [(2**63 - 1, 1), (2**62, 2)])
def test_a_sum_no_store_can_hold_is_absent(tokens: int, requests: int) -> None:
    response = {"error_code": None, "error_msg": "", "inter_token_latency_s": 0.04, "ttft_s": 0.1, "end_to_end_latency_s": 0.12}
    counts = {"request_output_throughput_token_per_s": 3.3, "number_total_tokens": 11, "number_output_tokens": 1}
    (run,) = read([{**response, **counts, "number_input_tokens": tokens}] * requests)
    assert run.workload.prompt_tokens_total is None
    assert run.workload.output_tokens_total == requests


def test_a_mean_times_requests_no_store_can_hold_is_absent() -> None:
    assert exact_total(1e18, 100) is None
    assert exact_total(512.0, 100) == 51_200
