"""The work of a pass, worked out with a pencil on a model of two layers, and the sums a pass is made of."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.layers import FULL, Mlp, Reach
from app.domain.pass_numbers import seen_so_far
from app.domain.work import ElementBytes, OperatorWork, Placement, all_reduce_bytes, mean_decode_numbers, operators, pass_numbers
from tests.domain.subjects import LLAMA_8B, TINY, WINDOWED

counts = st.integers(1, 20_000)
contexts = st.integers(0, 50_000)
spans = st.integers(1, 40_000)
reaches = st.one_of(st.just(FULL), st.builds(Reach, st.sampled_from(["window", "chunk", "top"]), spans))


def by_name(work: tuple[OperatorWork, ...]) -> dict[str, OperatorWork]:
    return {one.name: one for one in work}


def test_four_numbers_of_two_sequences_with_a_prefix() -> None:
    # n = 3 after c = 1, twice: T = 6, A = 2*(3*1 + 3*4/2) = 18, R = 2*4 = 8, S = 2
    numbers = pass_numbers(3, 1, batch=2)
    assert (numbers.tokens, numbers.pairs, numbers.positions, numbers.rows, numbers.sequences) == (6, 18, 8, 2, 2)


def test_a_window_clips_pairs_and_positions_per_token() -> None:
    window = Reach("window", 3)
    # positions 2..6 of a sequence, window 3: 2 + 3 + 3 + 3 + 3 = 14 pairs; all 6 positions are read, 5 + 3 - 1 = 7 would be the limit
    numbers = pass_numbers(5, 1)
    assert (numbers.pairs, numbers.pairs_at(window), numbers.positions_at(window)) == (20, 14, 6)
    # after a context of 10 the limit holds: the new five and two before the first of them
    assert pass_numbers(5, 10).positions_at(window) == 7
    # decode at context 9: the token itself and two before it
    step = pass_numbers(1, 9)
    assert (step.pairs_at(window), step.positions_at(window), step.positions) == (3, 3, 10)


def test_a_chunk_starts_anew() -> None:
    chunk = Reach("chunk", 4)
    # tokens 1..6 see 1 2 3 4 | 1 2
    assert pass_numbers(6).pairs_at(chunk) == 13
    # tokens 6 and 7 see 2 and 3 of the chunk that starts at 5; the last of them ends a read of three positions
    assert (pass_numbers(2, 5).pairs_at(chunk), pass_numbers(2, 5).positions_at(chunk)) == (5, 3)
    # the first token of a chunk sees itself
    assert pass_numbers(1, 8).positions_at(chunk) == 1


def test_sparse_attention_reads_the_best_positions_of_each_token() -> None:
    best = Reach("top", 4)
    assert pass_numbers(6).pairs_at(best) == 1 + 2 + 3 + 4 + 4 + 4
    # one token reads its four, a prompt's tokens choose apart and read all
    assert (pass_numbers(1, 99).positions_at(best), pass_numbers(50, 50).positions_at(best)) == (4, 100)


@given(st.integers(0, 3000), reaches)
def test_seen_so_far_is_the_sum_it_stands_for(positions: int, reach: Reach) -> None:
    seen = {
        "full": lambda j: j,
        "window": lambda j: min(j, reach.span),
        "top": lambda j: min(j, reach.span),
        "chunk": lambda j: (j - 1) % reach.span + 1,
    }[reach.kind]
    assert seen_so_far(positions, reach) == sum(seen(j) for j in range(1, positions + 1))


@given(counts, contexts, reaches, st.lists(st.integers(1, 5000), min_size=1, max_size=5))
def test_chunks_cover_the_pairs_of_one_prefill(new: int, context: int, reach: Reach, cuts: list[int]) -> None:
    whole = pass_numbers(new, context)
    done, pairs, seen, tokens = 0, 0.0, 0.0, 0.0
    for size in [*cuts, new]:
        piece = min(size, new - done)
        if piece == 0:
            break
        part = pass_numbers(piece, context + done)
        pairs, seen, tokens = pairs + part.pairs, seen + part.pairs_at(reach), tokens + part.tokens
        done += piece
    assert (tokens, pairs, seen) == (whole.tokens, whole.pairs, whole.pairs_at(reach))


@given(counts, contexts, counts, contexts)
def test_passes_add_up(new: int, context: int, other_new: int, other_context: int) -> None:
    both = pass_numbers(new, context) + pass_numbers(other_new, other_context)
    assert both.tokens == new + other_new
    assert both.sequences == 2
    one, other = (operators(WINDOWED, pass_numbers(n, c), ElementBytes()) for n, c in ((new, context), (other_new, other_context)))
    mixed = operators(WINDOWED, both, ElementBytes())
    for together, a, b in zip(mixed, one, other, strict=True):
        assert together.flops == pytest.approx(a.flops + b.flops, rel=1e-12)
        assert together.kv_bytes == pytest.approx(a.kv_bytes + b.kv_bytes, rel=1e-12)
        assert together.activation_bytes == pytest.approx(a.activation_bytes + b.activation_bytes, rel=1e-12)
        assert together.weight_bytes == a.weight_bytes  # the weights cross once, whatever the pass carries


@given(st.integers(1, 5000), st.integers(1, 400), st.integers(1, 8), reaches)
def test_the_mean_step_is_the_mean_of_the_steps(prompt: int, output: int, batch: int, reach: Reach) -> None:
    mean = mean_decode_numbers(prompt, output, batch)
    steps = [pass_numbers(1, prompt + i, batch) for i in range(max(output - 1, 1))]
    for kind in (FULL, reach):
        assert mean.positions_at(kind) == pytest.approx(math.fsum(float(s.positions_at(kind)) for s in steps) / len(steps), rel=1e-12)
        assert mean.pairs_at(kind) == mean.positions_at(kind)


def test_the_mean_position_of_the_founding_request() -> None:
    # 299 steps reading 2,001 to 2,299 positions
    assert mean_decode_numbers(2000, 300).positions == 2150


def test_operators_by_hand() -> None:
    work = by_name(operators(TINY, pass_numbers(3, 1, batch=2), ElementBytes(2, 2, 2)))
    # two layers, T = 6; [8 -> 8 + 2*4 = 16]: 2*8*16 = 256 weights
    assert (work["qkv"].flops, work["qkv"].weight_bytes, work["qkv"].activation_bytes) == (2 * 6 * 256, 512, 2 * 2 * 6 * 24)
    assert (work["attention_output"].flops, work["attention_output"].bytes) == (2 * 6 * 128, 256 + 2 * 2 * 6 * 16)
    assert (work["gate_up"].flops, work["gate_up"].bytes) == (2 * 6 * 512, 1024 + 2 * 2 * 6 * 40)
    assert (work["down"].flops, work["down"].bytes) == (2 * 6 * 256, 512 + 2 * 2 * 6 * 24)
    # logits of S = 2 rows: [8 -> 32], once
    assert (work["logits"].flops, work["logits"].bytes) == (2 * 2 * 256, 512 + 2 * 2 * 40)
    # 4 * (4 heads * 2) * 18 pairs * 2 layers; K and V of 2 heads * 2, 2 bytes: 16 per position and layer, R = 8
    assert (work["attention"].flops, work["attention"].bytes) == (4 * 8 * 18 * 2, 16 * 8 * 2)
    # 10 * T * H * a per layer, and 2*16 + 8 norm weights
    assert (work["norms_rope_residual"].flops, work["norms_rope_residual"].bytes) == (0, 10 * 6 * 8 * 2 * 2 + 40 * 2)
    assert sum(one.launches for one in work.values()) == 2 * 4 + 1


def test_a_plain_mlp_has_one_matrix_up() -> None:
    plain = dataclasses.replace(TINY, groups=(dataclasses.replace(TINY.groups[0], mlp=Mlp(16, gated=False)),))
    work = by_name(operators(plain, pass_numbers(1), ElementBytes()))
    assert work["up"].flops == 2 * 2 * 8 * 16
    assert "gate_up" not in work


def test_number_formats_scale_their_own_bytes() -> None:
    work = by_name(operators(TINY, pass_numbers(1, 9), ElementBytes(weight=0.5625, activation=4, kv=1)))
    assert work["qkv"].weight_bytes == 256 * 0.5625
    assert work["qkv"].activation_bytes == 2 * 4 * 24
    assert work["attention"].kv_bytes == 2 * 8 * 10


@pytest.mark.parametrize("model", [TINY, LLAMA_8B, WINDOWED])
def test_a_decode_step_reads_every_weight_but_an_untied_input_table(model) -> None:
    work = operators(model, pass_numbers(1, 100), ElementBytes(weight=2))
    assert sum(float(one.weight_bytes) for one in work) == 2 * model.decode_weight_parameters


def test_tensor_parallel_ranks_share_the_work() -> None:
    numbers = pass_numbers(3, 1, batch=2)
    alone, two, four = (by_name(operators(TINY, numbers, ElementBytes(), Placement(tp))) for tp in (1, 2, 4))
    for name in ("attention_output", "gate_up", "down", "logits"):
        assert two[name].flops == alone[name].flops / 2
        assert two[name].weight_bytes == alone[name].weight_bytes / 2
    assert two["attention"].bytes == alone["attention"].bytes / 2
    # four ranks, two KV heads: each keeps one, so K and V are copied. qkv columns: 2 + 2*1*2 = 6
    assert four["qkv"].weight_bytes == 2 * 8 * 6 * 2
    assert four["attention"].bytes == two["attention"].bytes
    assert four["attention"].flops == alone["attention"].flops / 4


def test_all_reduce_moves_the_ring_volume() -> None:
    # 2*(4-1)/4 * T 6 * H 8 * 2 bytes
    assert all_reduce_bytes(TINY, 6, ElementBytes(), 4) == 1.5 * 6 * 8 * 2
    assert all_reduce_bytes(TINY, 6, ElementBytes(), 1) == 0


def test_windowed_and_full_layers_are_two_operators() -> None:
    work = by_name(operators(WINDOWED, pass_numbers(1, 9999), ElementBytes()))
    per_position = 2 * 4 * 256 * 2
    assert work["attention"].bytes == 2 * per_position * 10_000
    assert work["window_attention"].bytes == 10 * per_position * 1024


@given(st.lists(st.tuples(counts, contexts, st.integers(1, 64)), min_size=1, max_size=6), st.sampled_from([1, 2, 4, 8]))
def test_arrays_are_the_scalars_side_by_side(cells: list[tuple[int, int, int]], tp: int) -> None:
    new, context, batch = (np.asarray(column, dtype=np.float64) for column in zip(*cells, strict=True))
    together = operators(WINDOWED, pass_numbers(new, context, batch), ElementBytes(), Placement(float(tp)))
    for place, (n, c, b) in enumerate(cells):
        alone = operators(WINDOWED, pass_numbers(n, c, b), ElementBytes(), Placement(tp))
        for many, one in zip(together, alone, strict=True):
            assert np.broadcast_to(many.flops, new.shape)[place] == one.flops
            assert np.broadcast_to(many.bytes, new.shape)[place] == one.bytes
