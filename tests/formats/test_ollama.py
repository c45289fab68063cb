"""ollama's answers: nanoseconds, loading kept apart, prompts in the cache, streams of which the last object counts."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate, RequestCounts, Run
from app.formats import ParsedFile, read_runs
from app.formats.identity import NO_MODEL
from app.formats.ollama import NO_TIMINGS
from app.formats.ollama_text import NO_LINES, go_duration_ns
from app.formats.server_timing import PROMPT_CACHED, WITH_FIRST

Reader = Callable[[str], ParsedFile]
ANSWER: dict[str, Any] = {"model": "m", "done": True, "eval_count": 10, "eval_duration": 10**9}


def test_a_whole_answer(read_data: Reader) -> None:
    (run,) = read_data("ollama/generate.json").runs
    assert (run.engine, run.model, run.measured_at, run.load_mode) == ("ollama", "tiny:8b-q4_0", "server", None)
    # 0.5 s for 200 prompt tokens, 5 s for 100 output tokens
    assert run.metrics["prefill_s"] == Distribution(mean=pytest.approx(0.5), n=1)
    assert run.metrics["prefill_tokens_per_s"] == Rate(pytest.approx(400.0), "request", "derived")
    assert run.metrics["itl_s"] == Distribution(mean=pytest.approx(0.05), n=100, origin="derived", definition=WITH_FIRST)
    assert run.metrics["decode_tokens_per_s"] == Rate(pytest.approx(20.0), "request", "derived", WITH_FIRST)
    # 5.6 s without the 0.1 s of loading
    assert run.metrics["e2e_s"] == Distribution(mean=pytest.approx(5.5), n=1, origin="derived")
    assert run.duration_s == pytest.approx(5.6)
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_mean) == (200.0, 100.0)
    assert run.requests == RequestCounts(completed=1)
    # The answer ended at 11:00:10.5 in UTC.
    assert run.started_at == datetime(2026, 3, 1, 11, 0, 4, 900000, tzinfo=UTC)
    assert run.labels == {"load_s": "0.1", "done_reason": "stop"}
    assert run.flags == ()
    assert run.warnings == ()


def test_a_stream_with_a_cached_prompt_and_a_slow_load(read_data: Reader) -> None:
    (run,) = read_data("ollama/chat_stream.jsonl").runs
    assert "prefill_s" not in run.metrics
    assert run.workload.prompt_tokens_mean is None
    assert [(flag.flag, flag.evidence) for flag in run.flags] == [("prefix_cache_hits", PROMPT_CACHED)]
    assert run.metrics["e2e_s"] == Distribution(mean=pytest.approx(2.0), n=1, origin="derived")
    assert run.metrics["itl_s"] == Distribution(mean=pytest.approx(0.04), n=50, origin="derived", definition=WITH_FIRST)
    assert run.warnings == ("Loading the model took 8 s, 80 % of the request; it is in no latency here, but in the duration.",)


def test_the_text_of_verbose_says_what_the_answer_says(read_data: Reader) -> None:
    first, second = read_data("ollama/verbose.txt").runs
    (answer,) = read_data("ollama/generate.json").runs
    assert (first.model, first.started_at) == (None, None)
    assert first.metrics == answer.metrics
    assert first.workload == answer.workload
    assert first.warnings == (NO_MODEL,)
    # 60.1 s for 1000 tokens, in a request of 62.5 s; the prompt was in the cache.
    assert second.metrics["itl_s"] == Distribution(mean=pytest.approx(0.0601), n=1000, origin="derived", definition=WITH_FIRST)
    assert second.duration_s == pytest.approx(62.5)
    assert second.labels == {"load_s": "0.0002505"}
    assert [flag.flag for flag in second.flags] == ["prefix_cache_hits"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("46.1ms", 46_100_000),
        ("1.2s", 1_200_000_000),
        ("1h2m3.5s", 3_723_500_000_000),
        ("2562047h47m16s", 9_223_372_036_000_000_000),
        ("12.5µs", 12_500),
        ("12.5μs", 12_500),
        ("7ns", 7),
        ("0s", 0),
        ("9999999h0m0s", None),
        ("5", None),
        ("5x", None),
        ("5s ", None),
        ("", None),
    ],
)
def test_durations_of_go(word: str, expected: int | None) -> None:
    assert go_duration_ns(word) == expected


def test_one_token_has_no_itl(read_one: Callable[[Any], Run]) -> None:
    run = read_one({**ANSWER, "eval_count": 1, "prompt_eval_count": 5, "prompt_eval_duration": 10**8})
    assert "itl_s" not in run.metrics
    assert [flag.flag for flag in run.flags] == ["tpot_undefined_single_token"]


@pytest.mark.parametrize("word", ["yesterday", "0001-01-01T00:00:00+23:00"])
def test_a_time_that_is_none_is_left_out(read_one: Callable[[Any], Run], word: str) -> None:
    run = read_one({**ANSWER, "created_at": word})
    assert run.started_at is None
    assert "created_at is no time" in run.warnings[0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({**ANSWER, "eval_duration": 0}, "there is nothing to import"),
        ({**ANSWER, "eval_count": -1}, "eval_count must be a whole number"),
        ({**ANSWER, "eval_duration": 10**30}, "eval_duration is an integer beyond 63 bits"),
    ],
)
def test_answers_without_figures_are_refused(value: dict[str, Any], expected: str) -> None:
    with pytest.raises(ImportRefused, match=expected):
        read_runs("x", json.dumps(value).encode())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"model": "m", "done": false}', NO_TIMINGS),
        (b'{"model": "m", "eval_duration": 1}', "no key done"),
        (b"total duration: 5s\nload duration: 1s\n", NO_LINES),
        (b"eval duration: 5s\n", NO_LINES),
        (b"BenchmarkModel/name=tiny/step=prefill 1 78125.00 ns/token\n", "benchstat text"),
    ],
)
def test_reasons_for_declining(data: bytes, expected: str) -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_runs("x", data)
    assert expected in dict(refusal.value.tried)["ollama"]
