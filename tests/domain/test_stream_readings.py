"""What the rows of a served run say about its passes, on rows made from passes that are known."""

from dataclasses import replace

import numpy as np
import pytest

from app.domain.checks import Evidence
from app.domain.checks.stability import bimodal_itl
from app.domain.run import RequestSamples, Run
from app.domain.stream_readings import jump, passes_of, step_curve, stream_readings

FIXED_S, EACH_S = 0.010, 0.0005


def served(
    *, requests: int = 40, step: "object" = None, apart: int = 5, tokens: int = 60, prefill: tuple[float, float] = (0.02, 1e-4)
) -> RequestSamples:
    """A deployment whose steps take FIXED_S + n EACH_S with n decoding; a request starts every fifth step, its prompt read beside them.

    Prompts of 100 to 1,000 tokens take `prefill` (fixed, each token). `step` is another law of n.
    """
    law, apart, tokens = step or (lambda n: FIXED_S + EACH_S * n), 5, 60
    prompts = 100.0 + (np.arange(requests) * 37) % 900
    moments: list[list[float]] = [[] for _ in range(requests)]
    running: list[int] = []
    now, begun, passes = 0.0, 0, 0
    while begun < requests or running:
        if begun < requests and passes % apart == 0:
            running.append(begun)
            moments[begun].append(now)
            begun += 1
        passes += 1
        now += law(len(running)) if running else FIXED_S
        for index in running:
            moments[index].append(now)
        running = [index for index in running if len(moments[index]) < tokens]
    firsts = np.array([each[0] for each in moments])
    ttft = prefill[0] + prefill[1] * prompts
    gaps = [np.diff(each) for each in moments]
    return RequestSamples(
        ok=np.ones(requests, dtype=np.bool_),
        prompt_tokens=prompts,
        output_tokens=np.full(requests, float(tokens)),
        ttft_s=ttft,
        e2e_s=ttft + np.array([each[-1] for each in moments]) - firsts,
        start_s=firsts - ttft,
        chunk_gaps_s=np.concatenate(gaps),
        chunk_gap_counts=np.array([each.size for each in gaps]),
    )


def test_the_step_is_split_into_a_fixed_part_and_one_for_each_sequence() -> None:
    found = stream_readings(served())
    assert found["step_fixed_s"].mean == pytest.approx(FIXED_S, rel=0.02)
    assert found["step_per_sequence_s"].mean == pytest.approx(EACH_S, rel=0.05)
    assert "stall_s" not in found


def test_a_first_token_without_a_queue_is_split_into_a_fixed_part_and_one_for_each_token() -> None:
    # One request every five steps of some 15 ms: 75 ms, and none takes longer than 20 + 40 ms.
    found = stream_readings(served(prefill=(0.02, 4e-5)))
    assert found["lone_ttft_s"].n == 40
    assert found["prefill_fixed_s"].mean == pytest.approx(0.02, rel=1e-6)
    assert found["prefill_per_token_s"].mean == pytest.approx(4e-5, rel=1e-6)


def test_first_tokens_behind_others_are_not_without_a_queue() -> None:
    samples = served()
    together = RequestSamples(
        **{**vars(samples), "start_s": np.zeros(40), "ttft_s": np.arange(1.0, 41.0), "e2e_s": np.arange(1.0, 41.0) + 1}
    )
    assert "lone_ttft_s" not in stream_readings(together)


def test_behind_a_few_the_line_is_taken_back_to_none() -> None:
    # Everyone has one to three requests ahead, each of which costs 50 ms.
    random = np.random.default_rng(5)
    ahead = np.arange(60) % 3 + 1
    prompts = random.uniform(100, 1000, 60)
    ttft = 0.03 + 1e-4 * prompts + 0.05 * ahead
    base = served(requests=60)
    start = np.cumsum(np.full(60, 0.06))
    samples = replace(base, start_s=start, ttft_s=ttft, e2e_s=ttft + 1.0, prompt_tokens=prompts)
    found = stream_readings(samples)["lone_ttft_s"]
    assert found.p50 == pytest.approx(0.03 + 1e-4 * prompts.mean(), rel=0.35)


def test_gaps_of_twice_the_step_are_stalls() -> None:
    samples = served()
    gaps = samples.chunk_gaps_s.copy()
    gaps[100:110] = 0.5
    found = stream_readings(replace(samples, chunk_gaps_s=gaps))["stall_s"]
    assert found.n is not None
    assert found.n >= 10
    assert found.max == pytest.approx(0.5)


def test_a_step_that_jumps_over_the_batch_is_found_where_it_jumps() -> None:
    def law(n: int) -> float:
        return FIXED_S + EACH_S * n + (0.008 if n > 6 else 0.0)

    samples = served(step=law)
    passes = passes_of(samples)
    assert passes is not None
    curve = step_curve(passes)
    assert curve is not None
    found = jump(curve)
    assert (found["step_from_batch"], found["step_to_batch"]) == (6, 7)
    assert found["step_ratio"] == pytest.approx((law(8) / law(5)), rel=0.1)
    flag = bimodal_itl(Run(format="generic", samples=samples), Evidence())
    assert flag is not None
    assert flag.figures["step_to_batch"] == 7


def test_a_slope_is_no_jump() -> None:
    passes = passes_of(served())
    assert passes is not None
    curve = step_curve(passes)
    assert curve is not None
    assert jump(curve) == {}


def test_without_moments_of_sending_nothing_is_said() -> None:
    samples = served()
    assert stream_readings(replace(samples, start_s=None)) == {}


def test_how_many_decode_at_once_is_weighted_by_time() -> None:
    # Two of 1 s apart by half: one for 0.5 s, two for 0.5 s, one for 0.5 s.
    samples = RequestSamples(
        ok=np.ones(2, dtype=np.bool_),
        prompt_tokens=np.full(2, 10.0),
        output_tokens=np.full(2, 2.0),
        ttft_s=np.full(2, 0.1),
        e2e_s=np.full(2, 1.1),
        start_s=np.array([0.0, 0.5]),
    )
    found = stream_readings(samples)["decoding_requests"]
    assert (found.mean, found.p50, found.max) == (pytest.approx(4 / 3), 1.0, 2.0)


def in_step(*held_up: int, requests: int = 4) -> RequestSamples:
    """Requests that are sent together and get a token every 10 ms each; those that are named wait 0.2 s for their thirtieth."""
    gaps = np.full((requests, 60), 0.01)
    gaps[list(held_up), 29] = 0.2
    return RequestSamples(
        ok=np.ones(requests, dtype=np.bool_),
        prompt_tokens=np.full(requests, 100.0),
        output_tokens=np.full(requests, 61.0),
        ttft_s=np.full(requests, 0.05),
        e2e_s=0.05 + gaps.sum(axis=1),
        start_s=np.arange(requests) * 1e-4,
        chunk_gaps_s=gaps.ravel(),
        chunk_gap_counts=np.full(requests, 60),
    )


def test_a_sequence_that_waits_while_the_others_go_on_was_passed_over() -> None:
    # 0.2 s are twenty tokens of each of the others.
    found = stream_readings(in_step(2))["passed_over_s"]
    assert (found.n, found.mean) == (1, pytest.approx(0.2))


def test_a_wait_that_all_share_is_a_pass() -> None:
    found = stream_readings(in_step(0, 1, 2, 3))
    assert found["stall_s"].n == 4
    assert "passed_over_s" not in found


def test_bursts_say_nothing_of_passes() -> None:
    samples = in_step(2)
    bursts = np.where(np.arange(samples.chunk_gaps_s.size) % 4 == 3, samples.chunk_gaps_s * 4, 1e-5)
    assert "passed_over_s" not in stream_readings(replace(samples, chunk_gaps_s=bursts))
