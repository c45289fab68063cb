"""Flags of the stream: what came before the answer, what the first chunk was, what was not streamed, not computed, not counted alike."""

from dataclasses import replace

import numpy as np
import pytest

from app.domain.checks import DECODE_METRICS, Evidence
from app.domain.run import RequestSamples
from tests.domain.checked import SOUND, many, raised, with_samples


def thinking(answer: list[float]) -> RequestSamples:
    """Requests of 101 tokens, the first after 0.5 s, the last after 10.5 s."""
    size = len(answer)
    return replace(many(np.full(size, 0.5), np.full(size, 10.5), np.full(size, 101.0)), ttft_answer_s=np.array(answer))


def test_a_model_that_thinks_first() -> None:
    flag = raised(with_samples(thinking([8.5, 0.5])))["reasoning_before_content"]
    assert "1 of 2 requests think first" in flag.evidence
    assert flag.figures["ttft_s"] == pytest.approx(0.5)
    assert flag.figures["ttft_answer_s"] == pytest.approx(8.5)
    # 100 further tokens in the 2 s after the first visible one, which took 10 s in truth.
    assert flag.figures["wrong_decode_tokens_per_s"] == pytest.approx(50)
    assert flag.withholds == ()


def test_an_answer_that_starts_at_once_has_no_reasoning_before_it() -> None:
    assert "reasoning_before_content" not in raised(with_samples(thinking([0.5, 0.5])))
    assert "reasoning_before_content" not in raised(SOUND)


def test_answers_that_were_all_thought() -> None:
    flag = raised(SOUND, Evidence(answers_without_content=3))["reasoning_before_content"]
    assert flag.evidence == "3 requests have tokens and no visible answer: all of it was thought."


def test_a_first_chunk_without_a_token() -> None:
    # 6 tokens in 7 chunks: the first gap holds the prompt pass, the others 10 ms.
    gaps = [[0.9] + [0.01] * 5] * 4
    samples = many(np.full(4, 0.02), np.full(4, 0.97), np.full(4, 6.0), gaps=gaps)
    flag = raised(with_samples(samples))["first_chunk_role_only"]
    assert flag.figures["first_gap_s"] == pytest.approx(0.9)
    assert {"ttft_s", "prefill_tokens_per_s", *DECODE_METRICS} <= set(flag.withholds)
    assert raised(SOUND, Evidence(role_only_chunks=5))["first_chunk_role_only"].figures == {"requests": 5}


@pytest.mark.parametrize("gaps", [[[0.9] + [0.01] * 4] * 4, [[0.01] * 6] * 4])
def test_a_slow_first_step_or_a_chunk_more_alone_is_no_role_chunk(gaps: list[list[float]]) -> None:
    samples = many(np.full(4, 0.02), np.full(4, 0.97), np.full(4, 6.0), gaps=gaps)
    assert "first_chunk_role_only" not in raised(with_samples(samples))


def test_an_answer_in_one_piece_has_no_phases() -> None:
    flag = raised(SOUND, Evidence(streamed=False))["non_streaming_no_phase_split"]
    assert {"ttft_s", "itl_s", "tpot_s"} <= set(flag.withholds)
    assert "non_streaming_no_phase_split" not in raised(SOUND, Evidence(streamed=True))


def test_cached_prompts_from_totals_and_from_requests() -> None:
    run = replace(SOUND, workload=replace(SOUND.workload, prompt_tokens_total=1_000_000))
    flag = raised(run, Evidence(cached_prompt_tokens=660_000))["prefix_cache_hits"]
    assert flag.figures == {"cached_tokens": 660_000, "cached_share": pytest.approx(0.66)}
    assert flag.withholds == ("prefill_tokens_per_s",)
    samples = replace(many(np.full(2, 0.1), np.full(2, 0.3), np.full(2, 5.0)), cached_tokens=np.array([0.0, 64.0]))
    assert raised(with_samples(samples))["prefix_cache_hits"].figures["cached_share"] == pytest.approx(64 / 200)
    cold = replace(samples, cached_tokens=np.zeros(2))
    assert "prefix_cache_hits" not in raised(with_samples(cold))


def test_the_clients_count_gives_another_itl() -> None:
    # 1000 requests, 100,000 tokens: 99,000 gaps of 10 ms. Counted as 199,000 tokens: 198,000 gaps of 5 ms.
    flag = raised(SOUND, Evidence(retokenized_output_tokens=199_000))["tokenizer_mismatch"]
    assert flag.figures["count_ratio"] == pytest.approx(1.99)
    assert flag.figures["wrong_itl_s"] == pytest.approx(0.005)
