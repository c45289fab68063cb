"""The engine's loop by hand: a decode pass takes 1 s, one with prompts 2 s and 0.01 s a token (tests/domain/simulation/loops.py)."""

from typing import Any

import numpy as np
import pytest

from app.domain.simulation import kernel, state
from tests.domain.simulation.loops import Loop, Several, costs, limits


def test_one_request_is_its_prompt_pass_and_a_step_for_each_further_token() -> None:
    found = Loop([100], [4]).run()
    assert found.start == [0.0]
    assert found.first == [pytest.approx(3.0)]  # 2 s + 100 x 0.01 s
    assert found.finish == [pytest.approx(6.0)]
    assert found.sums[state.PASSES] == 4
    assert found.sums[state.GAP_N] == 3


def test_one_token_is_the_prompt_pass_alone() -> None:
    found = Loop([100], [1]).run()
    assert found.finish == found.first == [pytest.approx(3.0)]
    assert found.sums[state.GAP_N] == 0


def test_the_front_end_serves_one_after_another_and_its_rest_runs_beside() -> None:
    found = Loop([100, 100], [1, 1], limits=limits(serial_s=0.5, parallel_s=0.25)).run()
    assert found.arrive == [0.75, 1.25]


def test_a_client_sends_when_it_has_its_answer() -> None:
    found = Loop([100, 100, 100], [2, 2, 2], clients=1).run()
    assert found.send == pytest.approx([0.0, 4.0, 8.0])
    assert found.finish == pytest.approx([4.0, 8.0, 12.0])


def test_prompts_share_a_pass_up_to_the_chunk_and_a_longer_one_is_cut() -> None:
    # 1,000 tokens a pass: the first prompt and 400 of the second, 12 s; then its other 200 with the first one's step, 4.01 s.
    found = Loop([600, 600], [3, 1]).run()
    assert found.first == pytest.approx([12.0, 12.0 + 2.0 + 0.01 * 201])
    assert found.finish == pytest.approx([16.01 + 1.0, 16.01])


def test_what_is_over_the_budget_waits_and_the_wait_has_its_reason() -> None:
    found = Loop([1000, 1000], [1, 1]).run()
    assert found.start == pytest.approx([0.0, 12.0])
    assert found.blocked_s == pytest.approx([12.0, 0.0, 0.0, 12.0])  # free, cap, pool, budget


def test_a_mixed_pass_carries_a_decode_step_and_a_pass_alone_does_not() -> None:
    # The second request arrives during the first step of the first: its pass of 100 tokens (and one row) begins at 4 s.
    mixed = Loop([100, 100], [5, 1], send=[0.0, 3.5]).run()
    assert mixed.first == pytest.approx([3.0, 4.0 + 3.01])
    assert mixed.finish[0] == pytest.approx(4.0 + 3.01 + 2.0)
    alone = Loop([100, 100], [5, 1], send=[0.0, 3.5], limits=limits(alone=True)).run()
    assert alone.first == pytest.approx([3.0, 7.0])
    assert alone.finish[0] == pytest.approx(4.0 + 3.0 + 3.0)


@pytest.mark.parametrize("form", ["plain", "compiled"])
@pytest.mark.parametrize("kind", [Loop, Several])
@pytest.mark.parametrize(
    ("steps", "arrives", "starts"), [(5.5, 3.5, 9.0), (5.5, 7.2, 13.0), (5.5, 100.0, 100.0), (0.5, 3.5, 4.0), (2.0, 3.7, 6.0)]
)
def test_a_scheduler_knows_of_a_request_some_steps_after_it_arrives(
    kind: type[Loop], steps: float, arrives: float, starts: float, form: str
) -> None:
    # Steps of 1 s end at whole seconds: 5 of them (5.5 on average, half a one until the next pass) after 3.5 s is 8.5 s, the pass at 9 s.
    # Where nothing runs a request starts at once; half a step is the next pass.
    found = kind([100, 100], [20, 1], send=[0.0, arrives], limits=limits(look_steps=steps)).run(form)
    assert found.start == pytest.approx([0.0, starts])
    assert found.sums[state.PASSES] == pytest.approx(round(found.sums[state.PASSES]))


@pytest.mark.parametrize("form", ["plain", "compiled"])
def test_how_long_that_takes_may_grow_with_what_runs(form: str) -> None:
    # Two run: 1.25 · 2² steps are five. One runs: 1.25, so 0.75 steps after 3.5 s is 4.25 s, the pass at 5 s.
    grows = limits(look_steps=1.25, look_power=2.0)
    two = [Loop([50, 50, 100], [20, 20, 1], send=[0.0, 0.0, 3.5], limits=one).run(form) for one in (grows, limits(look_steps=5.0))]
    assert two[0].start == pytest.approx(two[1].start)
    assert two[0].start[2] == pytest.approx(8.0)
    assert Loop([100, 100], [20, 1], send=[0.0, 3.5], limits=grows).run(form).start == pytest.approx([0.0, 5.0])


@pytest.mark.parametrize("form", ["plain", "compiled"])
@pytest.mark.parametrize("kind", [Loop, Several])
def test_what_a_full_pass_leaves_over_joins_the_next_one(kind: type[Loop], form: str) -> None:
    # Three prompts of a full pass each (12 s) come while one decodes, and are known of five steps later: one pass after the other then.
    found = kind([100, 1000, 1000, 1000], [200, 1, 1, 1], send=[0.0, 3.5, 3.5, 3.5], limits=limits(look_steps=5.5)).run(form)
    gaps = [later - earlier for earlier, later in zip(found.start[1:], found.start[2:], strict=False)]
    assert found.start[1] == pytest.approx(9.0)
    assert all(12.0 <= gap <= 12.1 for gap in gaps), gaps


def test_steps_until_a_request_is_known_of_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two run, and a third is known of 2 · 2⁵ - ½ steps after it arrives at 3.5 s: the prompts' pass (3 s), then 64 steps in one jump.
    jumps = []
    whole = kernel.decode_steps

    def counted(*arguments: Any) -> None:
        jumps.append(1)
        whole(*arguments)

    monkeypatch.setattr(kernel, "decode_steps", counted)
    found = Loop([50, 50, 100], [90, 90, 1], send=[0.0, 0.0, 3.5], limits=limits(look_steps=2.0, look_power=5.0)).run("plain")
    assert found.start[2] == pytest.approx(3.0 + 64.0)
    assert len(jumps) <= 4


def test_a_pass_alone_shows_as_one_long_gap() -> None:
    found = Loop([100, 100], [5, 1], send=[0.0, 3.5], limits=limits(alone=True)).run()
    counted = {place: times for place, times in enumerate(found.gaps) if times}
    assert sorted(counted.values()) == [1.0, 3.0]  # one of 4 s, three of 1 s
    assert found.sums[state.GAP_S] == pytest.approx(7.0)


def test_the_running_cap_holds_a_request_back_until_another_is_done() -> None:
    found = Loop([100, 100], [3, 1], limits=limits(running_cap=1)).run()
    assert found.start == pytest.approx([0.0, 5.0])
    assert found.blocked_s[state.BY_CAP] == pytest.approx(5.0)


def test_the_pool_holds_a_request_back_until_there_is_room() -> None:
    # 100 + 3 positions each, all set aside at admission: two do not fit into 150.
    found = Loop([100, 100], [3, 1], limits=limits(pool_bytes=150.0, admit_bytes=150.0, reserve=1.0)).run()
    assert found.start == pytest.approx([0.0, 5.0])
    assert found.blocked_s[state.BY_POOL] == pytest.approx(5.0)
    assert found.sums[state.PREEMPTIONS] == 0
    assert found.sums[state.POOL_PEAK] == pytest.approx(103.0)


def test_a_full_pool_puts_back_the_request_admitted_last_and_its_tokens_stay() -> None:
    # Two prompts of 100 fill 203 of the pool's positions one step in; the next step needs 2 more. The second is put back after
    # one step, with 101 positions cached and two tokens made. The first decodes alone to its end at 4 + 1 + 4 = 9 s. Then 102 tokens
    # of the second are computed in 3.02 s, which bring its third token; two steps follow.
    found = Loop([100, 100], [6, 5], limits=limits(pool_bytes=203.0, admit_bytes=202.0)).run()
    assert found.sums[state.PREEMPTIONS] == 1
    assert found.first == pytest.approx([4.0, 4.0])
    assert found.finish == pytest.approx([9.0, 9.0 + 3.02 + 2.0])
    assert found.start == pytest.approx([0.0, 0.0])
    assert found.sums[state.GAP_N] == 5 + 4


def test_a_request_larger_than_the_pool_runs_alone() -> None:
    found = Loop([100, 100], [3, 3], limits=limits(pool_bytes=50.0, admit_bytes=50.0)).run()
    assert found.finish == pytest.approx([5.0, 10.0])


def test_a_cached_prefix_is_not_computed_and_is_read() -> None:
    found = Loop([100], [1], cached=[60], costs=costs(prompt_read_s=0.1 * costs().lengths)).run()
    assert found.first == pytest.approx([2.0 + 40 * 0.01 + 100 * 0.1])


def test_prompt_attention_takes_the_longer_of_its_pairs_and_its_reads() -> None:
    # Attention of a whole prompt of L tokens is L²/2 pairs of 0.01 s: 10 new after 90 are (100² - 90²)/2, at half efficiency twice that.
    pairs = costs(pair_s=0.01 * costs().lengths / 2, prompt_read_s=0.001 * costs().lengths)
    assert Loop([100], [1], cached=[90], costs=pairs).run().first == pytest.approx([2.1 + 950 * 0.01])
    assert Loop([100], [1], cached=[90], costs=pairs, efficiency=0.5).run().first == pytest.approx([2.1 + 950 * 0.02])
    assert Loop([100], [1], costs=pairs).run().first == pytest.approx([3.0 + 5000 * 0.01])


def test_steps_read_a_growing_cache_whether_taken_at_once_or_not() -> None:
    # Step i reads 100 + i positions: Σ = 3·100 + 6.
    found = Loop([100], [4], costs=costs(read_s=0.1 * costs().lengths, read_each_s=0.1)).run()
    assert found.finish == pytest.approx([3.0 + 3.0 + 306 * 0.1])
    windowed = costs(read_s=0.1 * np.minimum(costs().lengths, 50.0), straight=False)
    assert Loop([100], [4], costs=windowed).run().finish == pytest.approx([3.0 + 3.0 + 150 * 0.1])


def test_logits_sequences_and_the_floor_of_a_prompt_pass_count() -> None:
    assert Loop([100], [1], costs=costs(sequence_s=0.5)).run().first == pytest.approx([3.5])
    assert Loop([100, 100], [1, 1], costs=costs(logits_s=costs().tokens - 1.0)).run().first == pytest.approx([5.0, 5.0])
    assert Loop([100], [1], costs=costs(prompt_floor_s=9.0)).run().first == pytest.approx([9.0])


def test_a_speculative_step_is_wider_and_brings_more_than_one_token() -> None:
    # Three rows a step and 1.75 tokens: 4 further tokens take 3 steps of 1 + 0.1·(rows) s.
    wide = costs(decode_s=1.0 + 0.1 * costs().tokens)
    found = Loop([100], [5], costs=wide, limits=limits(rows=3, accepted=1.75)).run()
    assert found.finish == pytest.approx([3.0 + 3 * 1.3])


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize(("pool", "straight"), [(400.0, True), (1e9, False)])
def test_the_compiled_form_gives_the_same_numbers(alone: bool, pool: float, straight: bool) -> None:
    pytest.importorskip("numba")
    lengths = costs().lengths
    loop = Loop(
        prompt=[100, 250, 80, 1200, 40, 90],
        output=[5, 1, 12, 7, 30, 2],
        costs=costs(
            read_s=0.003 * lengths,
            read_each_s=0.003,
            prompt_read_s=0.001 * lengths,
            pair_s=1e-4 * np.sqrt(lengths),
            sequence_s=0.01,
            straight=straight,
        ),
        limits=limits(alone=alone, pool_bytes=pool, admit_bytes=0.99 * pool, running_cap=3, chunk_tokens=300, serial_s=0.1, accepted=1.5),
        clients=4,
    )
    plain, fast = loop.run(), loop.run("compiled")
    for column in ("send", "arrive", "start", "first", "finish", "blocked_s", "gaps", "sums"):
        assert getattr(plain, column) == getattr(fast, column), column
