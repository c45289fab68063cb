"""Several engines by hand: a decode pass takes 1 s, one with prompts 2 s and 0.01 s a token, a cache crosses in 0.5 s (loops.py)."""

from typing import Any

import numpy as np
import pytest

from app.domain.simulation import state
from app.domain.simulation.deployment import Engines
from tests.domain.simulation.loops import Loop, Several, costs, limits

PREFILL = limits(alone=True)


def apart(prompt: list[int], output: list[int], prefill: int = 1, decode: int = 1, **more: Any) -> Several:
    pools = Engines(state.PREFILL, prefill, 1), Engines(state.DECODE, decode, 1)
    return Several(prompt, output, limits=more.pop("limits", PREFILL), entry=pools[0], decode=pools[1], **more)


def test_a_request_crosses_after_its_first_token_and_gets_the_second_a_step_later() -> None:
    loop = apart([100], [4])
    found = loop.run()
    assert found.first == [pytest.approx(3.0)]
    assert loop.traffic is not None
    assert loop.traffic.left_at == [pytest.approx(3.0)]
    assert loop.traffic.landed_at == [pytest.approx(3.5)]
    assert loop.traffic.second_at == [pytest.approx(4.5)]
    assert found.finish == [pytest.approx(6.5)]
    assert found.sums[state.GAP_N] == 3
    assert found.sums[state.GAP_S] == pytest.approx(3.5)


def test_an_answer_of_one_token_never_crosses() -> None:
    loop = apart([100], [1])
    assert loop.run().finish == [pytest.approx(3.0)]
    assert loop.traffic is not None
    assert loop.traffic.second_at == [-1.0]


def test_prefill_replicas_take_requests_in_turn() -> None:
    assert apart([100, 100], [1, 1], prefill=1).run().first == pytest.approx([4.0, 4.0])
    assert apart([100, 100], [1, 1], prefill=2).run().first == pytest.approx([3.0, 3.0])


def test_no_prompt_falls_between_two_tokens() -> None:
    # The second request's prompt is computed from 3.5 s to 6.5 s, and the first's steps stay a second long.
    found = apart([100, 100], [8, 1], send=[0.0, 3.5]).run()
    assert found.first == pytest.approx([3.0, 6.5])
    assert found.finish[0] == pytest.approx(3.5 + 7.0)


def test_links_carry_one_cache_after_another() -> None:
    loop = apart([100, 100], [2, 2])
    loop.run()
    assert loop.traffic is not None
    assert loop.traffic.landed_at == pytest.approx([4.5, 5.0])
    # Two decode replicas do not help: both caches leave by the link of one prefill replica. Two of these do.
    two = apart([100, 100], [2, 2], decode=2)
    two.run()
    assert two.traffic is not None
    assert two.traffic.landed_at == pytest.approx([4.5, 5.0])
    both = apart([100, 100], [2, 2], prefill=2, decode=2)
    both.run()
    assert both.traffic is not None
    assert both.traffic.landed_at == pytest.approx([3.5, 3.5])


def test_a_full_decode_pool_holds_a_prompt_between_its_first_and_second_token() -> None:
    # 100 + 3 positions each and room for 150: the second crosses when the first is done, 4.0 + 0.5 + 2 steps.
    tight = limits(pool_bytes=150.0, admit_bytes=150.0, reserve=1.0)
    loop = apart([100, 100], [3, 3], decode_limits=tight)
    found = loop.run()
    assert loop.traffic is not None
    assert found.first == pytest.approx([4.0, 4.0])
    assert loop.traffic.left_at == pytest.approx([4.0, 6.5])
    assert found.finish == pytest.approx([6.5, 6.5 + 0.5 + 2.0])


def test_prompts_that_wait_to_cross_keep_their_place_in_the_prefill_pool() -> None:
    # Room for one prompt in prefill, one in decode: the third is computed when the second has crossed, at 3.5 + 2 + 0.5.
    ahead = PREFILL._replace(pool_bytes=150.0, admit_bytes=150.0)
    found = apart([100, 100, 100], [3, 3, 3], limits=ahead, decode_limits=limits(running_cap=1)).run()
    assert found.start == pytest.approx([0.0, 3.5, 7.0])
    assert found.finish == pytest.approx([5.5, 6.5 + 0.5 + 2.0, 10.0 + 0.5 + 2.0])


def test_a_decode_replica_that_is_full_puts_a_request_back_and_computes_it_anew() -> None:
    tight = limits(pool_bytes=203.0, admit_bytes=202.0)
    loop = apart([100, 100], [6, 5], decode_limits=tight)
    found = loop.run()
    assert found.sums[state.PREEMPTIONS] == 1
    assert found.sums[state.GAP_N] == 5 + 4
    assert all(late > early for early, late in zip(found.first, found.finish, strict=True))


def test_the_stages_of_a_pipeline_work_on_groups_at_the_same_time() -> None:
    # One request alone takes as long as on one stage.
    assert Several([100], [4], stages=2).run().finish == [pytest.approx(6.0)]
    # Two are in two groups. Prompts of 3 s hold each stage 1.5 s: through at 3.0 and 4.5. A step holds it half a second: the first group
    # steps to 4.0, where the last stage is free again only at 4.5 and then half a second later; so 5.0, from then on a step a second.
    found = Several([100, 100], [4, 4], stages=2).run()
    assert found.first == pytest.approx([3.0, 4.5])
    assert found.finish == pytest.approx([7.0, 7.5])
    # Three steps each in seven and a half seconds: one stage that takes both in one pass would be through its prompts at 4.0.
    assert Loop([100, 100], [4, 4]).run().finish == pytest.approx([7.0, 7.0])


def test_pieces_of_a_prompt_are_in_several_stages_at_once() -> None:
    # Four pieces of 250 tokens through two stages: (4 + 1) times an eighth of 12 s.
    assert Several([1000], [1], stages=2, piece_tokens=250.0).run().first == [pytest.approx(7.5)]


def test_attention_ranks_have_pools_of_their_own_and_wait_for_each_other() -> None:
    # Two ranks: a prompt each, in one pass of 100 tokens a rank, where one rank needs a pass of 200.
    ranks = Engines(state.BOTH, 1, 2)
    together = costs(ranks=2, shared_s=np.zeros(3))
    assert Several([100, 100], [1, 1], entry=ranks, costs=together).run().first == pytest.approx([3.0, 3.0])
    # A long prompt on one rank holds the step of the other: 2 s + 0.01 s for each of 900 tokens.
    found = Several([100, 900], [5, 1], entry=ranks, costs=together, send=[0.0, 3.5]).run()
    assert found.first == pytest.approx([3.0, 4.0 + 11.0])
    assert found.finish[0] == pytest.approx(4.0 + 11.0 + 2.0)
    # A pool of 150 positions a rank holds one request each: four of them in two turns.
    tight = limits(pool_bytes=150.0, admit_bytes=150.0, reserve=1.0)
    turns = Several([100] * 4, [3] * 4, entry=ranks, costs=together, limits=tight).run()
    assert turns.start == pytest.approx([0.0, 0.0, 5.0, 5.0])


def test_what_the_tokens_of_all_ranks_need_together_is_added() -> None:
    # 0.05 s for each token of the mean rank: 100 of one rank and none of the other are 50.
    shared = costs(ranks=2, shared_s=0.05 * costs().tokens)
    found = Several([100], [1], entry=Engines(state.BOTH, 1, 2), costs=shared).run()
    assert found.first == [pytest.approx(3.0 + 2.5)]


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("pool", [400.0, 1e9])
def test_one_engine_is_the_engine_of_the_other_kernel_to_the_last_bit(alone: bool, pool: float) -> None:
    lengths = costs().lengths
    what: dict[str, Any] = {
        "prompt": [100, 250, 80, 1200, 40, 90],
        "output": [5, 1, 12, 7, 30, 2],
        "costs": costs(
            read_s=0.003 * lengths, read_each_s=0.003, prompt_read_s=0.001 * lengths, pair_s=1e-4 * np.sqrt(lengths), sequence_s=0.01
        ),
        "limits": limits(
            alone=alone, pool_bytes=pool, admit_bytes=0.99 * pool, running_cap=3, chunk_tokens=300, serial_s=0.1, accepted=1.5
        ),
        "clients": 4,
    }
    one, several = Loop(**what).run(), Several(**what).run()
    for column in ("send", "arrive", "start", "first", "finish", "gaps"):
        assert getattr(one, column) == getattr(several, column), column
    assert one.sums[state.PREEMPTIONS] == several.sums[state.PREEMPTIONS]


@pytest.mark.timeout(900)  # half a minute of a core where its machine code was not kept
def test_the_compiled_form_gives_the_same_numbers() -> None:
    pytest.importorskip("numba")
    lengths = costs().lengths
    loop = Several(
        prompt=[100, 250, 80, 1200, 40, 90, 300, 20],
        output=[5, 1, 12, 7, 30, 2, 9, 14],
        costs=costs(read_s=0.003 * lengths, read_each_s=0.003, shared_s=0.002 * costs().tokens, ranks=2, sequence_s=0.01),
        limits=limits(alone=True, pool_bytes=900.0, admit_bytes=900.0, running_cap=3, chunk_tokens=300, serial_s=0.1),
        decode_limits=limits(pool_bytes=1300.0, admit_bytes=1280.0, running_cap=2),
        clients=4,
        entry=Engines(state.PREFILL, 2, 2),
        decode=Engines(state.DECODE, 2, 2),
        stages=2,
        piece_tokens=64.0,
    )
    plain = loop.run()
    crossed = loop.traffic
    fast = loop.run("compiled")
    for column in ("send", "arrive", "start", "first", "finish", "blocked_s", "gaps", "sums"):
        assert getattr(plain, column) == getattr(fast, column), column
    assert crossed is not None
    assert loop.traffic is not None
    assert (crossed.left_at, crossed.landed_at, crossed.second_at) == (loop.traffic.left_at, loop.traffic.landed_at, loop.traffic.second_at)
