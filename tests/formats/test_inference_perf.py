"""inference-perf: stages and summaries, tokens counted twice, answers that were not streamed, per-request files, server metrics."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate, RequestCounts, Run
from app.formats import ParsedFile, read_runs
from app.formats.inference_perf import NOT_STREAMED, POOLED, SPREAD_TOKENS, STREAM_END
from app.formats.inference_perf_requests import NO_MODEL, POOLED_REQUESTS

Reader = Callable[[str], ParsedFile]


def flags(run: Run) -> list[str]:
    return [flag.flag for flag in run.flags]


def distribution(run: Run, key: str) -> Distribution:
    found = run.distribution(key)
    assert found is not None
    return found


def test_a_stage(read_data: Reader) -> None:
    (run,) = read_data("inference_perf/stage.json").runs
    assert (run.engine, run.model, run.measured_at) == (None, None, "client")
    assert (run.load_mode, run.workload.request_rate_per_s, run.workload.concurrency) == ("open", 2.0, None)
    assert run.requests == RequestCounts(sent=22, completed=20, failed=2)
    # 20 requests at 2 per second
    assert run.duration_s == pytest.approx(10.0)
    ttft, e2e = distribution(run, "ttft_s"), distribution(run, "e2e_s")
    assert (ttft.mean, ttft.p50, ttft.p90, ttft.p95, ttft.min, ttft.max, ttft.n) == (0.1, 0.09, 0.15, None, 0.08, 0.2, 20)
    assert (e2e.mean, e2e.p99) == (1.1, 1.3)
    assert distribution(run, "tpot_s").mean == 0.02
    assert distribution(run, "ntpot_s").mean == 0.0218
    # (1.1 - 0.1) s x 20 requests / (20 x 51 - 20) gaps
    assert distribution(run, "itl_s") == Distribution(mean=pytest.approx(0.02), n=1000, origin="derived")
    assert distribution(run, "chunk_gap_s").definition == SPREAD_TOKENS
    assert distribution(run, "chunk_gap_s").min == 0.0
    assert (run.workload.prompt_tokens_mean, run.workload.prompt_tokens_total, run.workload.output_tokens_total) == (100.0, 2000, 1020)
    assert run.metrics["output_tokens_per_s"] == Rate(102.0, "aggregate", "reported")
    assert run.metrics["total_tokens_per_s"] == Rate(302.0, "aggregate", "reported")
    assert run.labels["failed: 500 - Internal Server Error"] == "2"
    assert run.labels["achieved_rate"] == "2.01"
    assert flags(run) == ["failures_excluded"]
    assert run.warnings == (NO_MODEL,)


def test_a_summary_that_counted_tokens_twice_and_sent_late(read_data: Reader) -> None:
    (run,) = read_data("inference_perf/summary_counted_twice.json").runs
    assert flags(run) == ["tokenizer_mismatch", "client_queue_excluded", "prefix_cache_hits"]
    # (1.1 - 0.1) / 0.01 = 100 gaps, so 101 token times for 51 tokens; the whole request gives 20 ms.
    assert "is that of 101 tokens a request, where 51 came out" in run.flags[0].evidence
    assert "tpot_s" not in run.metrics
    assert "chunk_gap_s" not in run.metrics
    assert distribution(run, "itl_s").mean == pytest.approx(0.02)
    assert "3 s after they were due" in run.flags[1].evidence
    assert "25 % of the prompt tokens" in run.flags[2].evidence
    assert run.warnings == (NO_MODEL, "load_summary counts 41 requests; successes and failures add up to 40, which is used.", POOLED)
    assert (run.duration_s, run.load_mode) == (40.0, None)


def test_time_after_the_last_token_is_named(read_one: Callable[[Any], Run]) -> None:
    # (1.2 - 0.1) / 0.02 = 55 gaps where 51 tokens have 50: a tenth more.
    latency = {"request_latency": {"mean": 1.2}, "time_to_first_token": {"mean": 0.1}, "time_per_output_token": {"mean": 0.02}}
    good = {"count": 20, "latency": latency, "output_len": {"mean": 51.0}}
    run = read_one({"load_summary": {"requested_rate": 1.0}, "successes": good, "failures": {"count": 0}})
    assert run.warnings == (NO_MODEL, STREAM_END)
    assert distribution(run, "itl_s").mean == pytest.approx(0.022)


def test_answers_that_were_not_streamed_have_no_phases(read_data: Reader) -> None:
    (run,) = read_data("inference_perf/not_streamed.json").runs
    assert (distribution(run, "e2e_s").mean, distribution(run, "e2e_s").p50) == (1.5, 1.2)
    assert not {"ttft_s", "tpot_s", "itl_s", "chunk_gap_s"} & set(run.metrics)
    assert run.metrics["output_tokens_per_s"] == Rate(50.0, "aggregate", "reported")
    assert [(flag.flag, flag.evidence) for flag in run.flags] == [("non_streaming_no_phase_split", NOT_STREAMED)]


def test_a_file_of_requests_is_one_run_with_samples(read_data: Reader) -> None:
    (run,) = read_data("inference_perf/per_request.json").runs
    assert run.requests == RequestCounts(sent=3, completed=2, failed=1)
    assert run.samples is not None
    np.testing.assert_allclose(run.samples.ttft_s[:2], [0.1, 0.3])
    # To the last token, not to the end of the stream: 100.5 - 100.0 and 101.4 - 101.0.
    np.testing.assert_allclose(run.samples.e2e_s[:2], [0.5, 0.4])
    assert list(run.samples.start_s if run.samples.start_s is not None else []) == [0.0, 1.0, 1.5]
    assert run.samples.errors == ("", "", "HTTP Error 500: boom")
    # Two tokens of the first came in one chunk.
    assert list(run.samples.chunk_gap_counts) == [3, 2, 0]
    np.testing.assert_allclose(run.samples.chunk_gaps_s, [0.1, 0.2, 0.1, 0.05, 0.05])
    # (0.4 + 0.1) s / (4 + 2) gaps
    assert distribution(run, "itl_s").mean == pytest.approx(0.5 / 6)
    # 100.0 to 102.0
    assert run.duration_s == pytest.approx(2.0)
    assert run.metrics["output_tokens_per_s"] == Rate(pytest.approx(4.0), "aggregate", "samples")
    assert (run.workload.prompt_tokens_mean, run.token_count_source) == (20.0, "server_usage")
    assert "failures_excluded" in flags(run)
    assert run.warnings == (NO_MODEL, POOLED_REQUESTS)


def request(**changes: Any) -> dict[str, Any]:
    """A request as versions before 0.4 wrote it, with counts and times in `info` itself."""
    info = {"input_tokens": 10, "output_tokens": 3, "output_token_times": [1.1, 1.2, 1.3]}
    return {"start_time": 1.0, "end_time": 1.4, "info": {**info, **changes}, "error": None}


def test_older_requests_have_their_counts_in_info(read_one: Callable[[Any], Run]) -> None:
    run = read_one([request(), request()])
    assert distribution(run, "tpot_s").mean == pytest.approx(0.1)
    assert run.token_count_source == "client_tokenizer"


def test_times_that_run_backwards_are_left_aside(read_one: Callable[[Any], Run]) -> None:
    run = read_one([request(output_token_times=[1.3, 1.1]), request(output_token_times=["a"]), request()])
    assert distribution(run, "ttft_s").n == 1
    assert "[0].info: its token times run backwards" in run.warnings[2]
    assert "[1].info: output_token_times holds something that is no number" in run.warnings[3]


def test_the_servers_metrics_of_a_stage_are_no_run() -> None:
    value = {"load_summary": {}, "successes": {"count": 9, "rate": 1.0, "queue_len": {"mean": 0}}, "failures": {}}
    with pytest.raises(ImportRefused, match=r"send its stage_N_lifecycle_metrics\.json instead"):
        read_runs("x", json.dumps(value).encode())


def test_nothing_succeeded(read_one: Callable[[Any], Run]) -> None:
    run = read_one({"load_summary": {"count": 3}, "successes": {"count": 0, "latency": None}, "failures": {"count": 3}})
    assert run.metrics == {}
    assert flags(run) == ["zero_completed"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"successes": {"count": 3, "latency": {}}, "failures": {}}, "successes.latency and throughput hold no figure"),
        ({"successes": {"count": -3, "latency": {}}, "failures": {}}, "successes.count must be a whole number"),
        ([{"start_time": None, "end_time": None, "info": {}}], None),
    ],
)
def test_files_without_figures(value: object, expected: str | None) -> None:
    if expected is None:
        (run,) = read_runs("x", json.dumps(value).encode()).runs
        assert flags(run) == ["zero_completed"]
        return
    with pytest.raises(ImportRefused, match=expected):
        read_runs("x", json.dumps(value).encode())


@pytest.mark.parametrize(
    ("value", "expected"),
    [({"successes": {}}, "no key failures"), ([request(), {"a": 1}], "[1].no keys start_time, end_time and info")],
)
def test_reasons_for_declining(value: object, expected: str) -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_runs("x", json.dumps(value).encode())
    assert dict(refusal.value.tried)["inference_perf"] == expected
