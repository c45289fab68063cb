"""llama.cpp's timings: answers of llama-server, its log, llama-cli's log, prompts in the cache, figures that are inf."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from app.domain.errors import ImportRefused
from app.domain.run import Distribution, Rate, Run
from app.formats import ParsedFile, read_runs
from app.formats.identity import NO_MODEL
from app.formats.llama_cpp_timings import ROUNDED
from app.formats.server_timing import PROMPT_CACHED, WITH_FIRST

Reader = Callable[[str], ParsedFile]


def flags(run: Run) -> list[str]:
    return [flag.flag for flag in run.flags]


def test_an_answer_of_the_server(read_data: Reader) -> None:
    (run,) = read_data("llama_cpp_timings/completion.json").runs
    assert (run.engine, run.engine_version, run.model, run.measured_at) == ("llama.cpp", "9000", "tiny-8b-Q4_K_M.gguf", "server")
    # 400 tokens in 0.8 s; 2.5 s for 100 tokens, as the server counts them
    assert run.metrics["prefill_s"] == Distribution(mean=pytest.approx(0.8), n=1)
    assert run.metrics["prefill_tokens_per_s"] == Rate(pytest.approx(500.0), "request", "derived")
    assert run.metrics["itl_s"] == Distribution(mean=pytest.approx(0.025), n=100, origin="derived", definition=WITH_FIRST)
    assert run.metrics["e2e_s"] == Distribution(mean=pytest.approx(3.3), n=1, origin="derived")
    assert "ttft_s" not in run.metrics
    assert (run.workload.prompt_tokens_total, run.workload.output_tokens_total, run.workload.context_depth_tokens) == (400, 100, 0)
    assert run.labels == {"stop_type": "limit"}
    assert (run.flags, run.warnings) == ((), ())


def test_prompts_in_the_cache(read_data: Reader) -> None:
    part, whole = read_data("llama_cpp_timings/cached.jsonl").runs
    assert part.workload.context_depth_tokens == 300
    # 100 tokens in 0.2 s: the 300 of the cache are not in the rate
    assert part.metrics["prefill_tokens_per_s"] == Rate(pytest.approx(500.0), "request", "derived")
    assert "300 prompt tokens were in the cache; the prompt pass is that of the other 100." in part.flags[0].evidence
    assert part.warnings == ("Speculative decoding: 30 of 40 drafted tokens (75 %) were accepted; a step made more than one token.",)
    assert "prefill_s" not in whole.metrics
    assert whole.flags[0].evidence == PROMPT_CACHED
    assert whole.warnings == (NO_MODEL,)


def test_a_log_of_the_server(read_data: Reader) -> None:
    first, second = read_data("llama_cpp_timings/server.log").runs
    settings = {"n_gpu_layers": "8", "n_layers": "11", "n_seq_max": "4", "n_batch": "2048", "n_ubatch": "512"}
    assert (first.engine_version, first.model, first.labels) == ("9000", "Tiny 8B", {"model_file": "tiny-8b-Q4_K_M.gguf", **settings})
    assert (first.hardware, first.devices) == ("ACME GPU 9000", 2)
    assert (first.weight_dtype, first.kv_dtype, first.measured_at) == ("q4_k_m", "q8_0", "server")
    assert first.metrics["itl_s"] == Distribution(mean=pytest.approx(0.025), n=100, origin="derived", definition=WITH_FIRST)
    assert (flags(first), first.warnings) == ([], (ROUNDED,))
    # 420 tokens were sent and 20 computed.
    assert second.workload.context_depth_tokens == 400
    assert flags(second) == ["prefix_cache_hits"]
    assert second.metrics["prefill_s"] == Distribution(mean=pytest.approx(0.05), n=1)


def test_a_log_of_llama_cli_counts_passes(read_data: Reader) -> None:
    generation, embedding = read_data("llama_cpp_timings/cli.log").runs
    # 63 passes in 1.89 s make the 64 tokens that were sampled
    assert generation.metrics["itl_s"] == Distribution(mean=pytest.approx(0.03), n=63, origin="derived")
    assert generation.workload.output_tokens_total == 64
    assert (generation.measured_at, generation.engine_version, generation.weight_dtype) == ("in_process", "2295", "q8_0")
    # 0.00 ms / 1 runs at inf tokens per second
    assert set(embedding.metrics) == {"prefill_s", "prefill_tokens_per_s"}
    assert embedding.workload.output_tokens_mean is None
    assert embedding.flags == ()


def test_older_answers_tell_cached_tokens_by_the_prompt_they_evaluated(read_one: Callable[[Any], Run]) -> None:
    times = {"prompt_n": 10, "prompt_ms": 20.0, "predicted_n": 5, "predicted_ms": 50.0}
    run = read_one({"model": "m", "tokens_evaluated": 30, "timings": times})
    assert run.workload.context_depth_tokens == 20


def test_one_token_has_no_itl(read_one: Callable[[Any], Run]) -> None:
    run = read_one({"model": "m", "timings": {"prompt_n": 10, "prompt_ms": 20.0, "predicted_n": 1, "predicted_ms": 0.01}})
    assert "itl_s" not in run.metrics
    assert flags(run) == ["tpot_undefined_single_token"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"prompt eval time = 0.00 ms / 1 tokens\neval time = 0.00 ms / 1 runs\n", "there is nothing to import"),
        (b"prompt eval time = 1.2.3 ms / 1 tokens\n", "there is nothing to import"),
        (json.dumps({"timings": {"prompt_n": 1.5, "prompt_ms": 1, "predicted_n": 1, "predicted_ms": 1}}).encode(), "whole number"),
    ],
)
def test_timings_without_figures_are_refused(data: bytes, expected: str) -> None:
    with pytest.raises(ImportRefused, match=expected):
        read_runs("x", data)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"timings": {"predicted_n": 1}}', "no key timings.predicted_ms"),
        (b"total time = 3 ms", "no line “prompt eval time"),
        (b"test,prompt_n,prompt_ms,predicted_n,predicted_ms\na,1,2,3,4\n", "no line “prompt eval time"),
    ],
)
def test_reasons_for_declining(data: bytes, expected: str) -> None:
    with pytest.raises(ImportRefused) as refusal:
        read_runs("x", data)
    assert expected in dict(refusal.value.tried)["llama_cpp_timings"]
