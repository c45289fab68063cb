"""SGLang's one-batch tools: the pass and the step of a whole batch, in process and at a server, and rates that mean nothing."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate, RequestCounts, Run
from app.formats import ParsedFile, read_runs
from app.formats.identity import NO_MODEL
from app.formats.sglang_one_batch import AFTER_LAST_TTFT, LAST_TTFT

Reader = Callable[[str], ParsedFile]
LINE: dict[str, Any] = {"batch_size": 4, "input_len": 100, "output_len": 11, "prefill_latency": 0.2, "total_latency": 0.4}


def test_a_batch_in_process(read_data: Reader) -> None:
    run, single = read_data("sglang_one_batch/2025-03_in_process.jsonl").runs
    assert (run.engine, run.model, run.label, single.label) == ("sglang", None, None, "tp2")
    assert (run.load_mode, run.measured_at, run.duration_s) == ("static_batch", "in_process", 0.4)
    assert run.workload.concurrency == 4
    assert (run.workload.prompt_tokens_mean, run.workload.prompt_tokens_total, run.workload.output_tokens_total) == (100.0, 400, 44)
    assert run.metrics["prefill_s"] == Distribution(mean=0.2)
    # 4 x 100 tokens in 0.2 s
    assert run.metrics["prefill_tokens_per_s"] == Rate(pytest.approx(2000.0), "aggregate", "derived")
    # 0.4 - 0.2 s for 10 steps, each of which gives every sequence a token
    assert run.metrics["itl_s"] == Distribution(mean=pytest.approx(0.02), p50=0.019, n=10, origin="derived")
    assert run.metrics["step_s"] == run.metrics["itl_s"]
    assert run.metrics["decode_tokens_per_s"] == Rate(pytest.approx(50.0), "request", "derived")
    # 44 and 444 tokens in 0.4 s
    assert run.metrics["output_tokens_per_s"] == Rate(pytest.approx(110.0), "aggregate", "derived")
    assert run.metrics["total_tokens_per_s"] == Rate(pytest.approx(1110.0), "aggregate", "derived")
    assert run.requests == RequestCounts(completed=4)
    assert run.flags == ()
    assert run.warnings == (NO_MODEL,)


def test_one_output_token_has_no_step(read_data: Reader) -> None:
    _, run = read_data("sglang_one_batch/2025-03_in_process.jsonl").runs
    assert run.load_mode == "single"
    assert "itl_s" not in run.metrics
    assert run.metrics["prefill_tokens_per_s"] == Rate(pytest.approx(2000.0), "request", "derived")
    assert [flag.flag for flag in run.flags] == ["tpot_undefined_single_token"]


def test_a_batch_at_a_server_before_it_wrote_last_ttft(read_data: Reader) -> None:
    run, _ = read_data("sglang_one_batch/2025-11_server.jsonl").runs
    assert (run.measured_at, run.label, run.requests) == ("client", "base", RequestCounts(sent=8))
    # 8 x 50 tokens at 408.1633 tokens/s are 0.98 s, so the last first token came at 0.2 s; 0.98 s / 49 steps
    assert run.metrics["ttft_s"] == Distribution(mean=pytest.approx(0.2, abs=1e-6), origin="derived", definition=LAST_TTFT)
    assert run.metrics["itl_s"] == Distribution(mean=pytest.approx(0.02), n=49, origin="derived", definition=AFTER_LAST_TTFT)
    # 400 tokens / 1.18 s, not the file's rate, which leaves the prompt pass out
    assert run.metrics["output_tokens_per_s"] == Rate(pytest.approx(338.983, rel=1e-5), "aggregate", "derived")
    assert run.labels == {"output_throughput": "408.1633"}
    assert run.flags == ()


def test_a_rate_after_the_last_wave_is_flagged_and_not_used(read_data: Reader) -> None:
    _, run = read_data("sglang_one_batch/2025-11_server.jsonl").runs
    # 4096 x 100 tokens at 409 600 tokens/s are 1 s after 40 s; 4096 x 32 prompt tokens were read in these 40 s (3277/s).
    assert set(run.metrics) == {"e2e_s", "output_tokens_per_s", "total_tokens_per_s"}
    assert run.metrics["output_tokens_per_s"] == Rate(pytest.approx(409600 / 41), "aggregate", "derived")
    (flag,) = run.flags
    assert flag.flag == "server_queue_in_ttft"
    assert "after 40 s, 97.6 % of the batch" in flag.evidence
    assert "4.096e+05 tokens/s" in flag.evidence
    assert "9990 tokens/s" in flag.evidence
    assert "itl_s" in flag.withholds


def test_last_ttft_is_used_where_it_is_written(read_data: Reader) -> None:
    (run,) = read_data("sglang_one_batch/2026-05_server_last_ttft.jsonl").runs
    assert run.metrics["ttft_s"] == Distribution(mean=0.5, definition=LAST_TTFT)
    # 2.0 s / 100 steps: total = ttft + 100 x itl
    assert run.metrics["itl_s"] == Distribution(mean=pytest.approx(0.02), n=100, origin="derived", definition=AFTER_LAST_TTFT)
    assert run.labels == {"output_throughput": "101.0", "last_gen_throughput": "99.0"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": None}, "batch_size is missing"),
        ({"batch_size": -1}, "batch_size must be a whole number"),
        ({"prefill_latency": float("nan"), "total_latency": None}, "there is nothing to import"),
    ],
)
def test_lines_without_figures_are_refused(changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(ImportRefused, match=expected):
        read_runs("x", json.dumps({**LINE, **changes}).encode())


def test_totals_that_no_store_holds_are_left_unknown(read_one: Callable[[Any], Run]) -> None:
    run = read_one({**LINE, "batch_size": 10**10, "input_len": 10**10})
    assert run.workload.prompt_tokens_total is None
    assert run.workload.output_tokens_total == 11 * 10**10


@pytest.mark.parametrize(
    ("value", "expected"),
    [({"batch_size": 1}, "no key input_len"), ({"batch_size": 1, "input_len": 1, "output_len": 1}, "neither prefill_latency and")],
)
def test_reasons_for_declining(value: object, expected: str) -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_runs("x", json.dumps(value).encode())
    assert expected in dict(refusal.value.tried)["sglang_one_batch"]
