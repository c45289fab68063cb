"""Which operating points are worth measuring: by hand where one answer is plain, and what holds of every choice."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.points_to_measure import MOST_POINTS, points_to_measure
from app.domain.prediction import Request
from app.domain.remainder import covariance, place_of
from app.domain.request_rules import Load


def loads(clients: tuple[int, ...], prompts: tuple[int, ...] = (1024,), tp: tuple[int, ...] = (1,)) -> list[Load]:
    return [
        Load.of(Request(concurrency=one, prompt_tokens=prompt, output_tokens=128, tp=devices))
        for one, prompt, devices in itertools.product(clients, prompts, tp)
    ]


def test_few_points_are_all_measured_and_equal_ones_once() -> None:
    asked = loads((1, 4, 16))
    assert points_to_measure(["a"] * 3, asked) == [0, 1, 2]
    assert points_to_measure(["a"] * 6, [*asked, *asked]) == [0, 1, 2]
    assert points_to_measure([], []) == []


def test_one_point_is_the_middle_and_three_reach_both_sides() -> None:
    asked = loads((1, 2, 4, 8, 16, 32, 64))
    assert points_to_measure(["a"] * 7, asked, 1) == [3]
    three = sorted(points_to_measure(["a"] * 7, asked, 3))
    assert three[0] < 3 < three[-1]


def test_another_model_is_measured_before_a_near_twin() -> None:
    asked = loads((8, 9, 8))
    assert set(points_to_measure(["a", "a", "b"], asked, 2)) in ({0, 2}, {1, 2})


def test_clients_lengths_and_devices_are_all_spread() -> None:
    asked = loads((1, 4, 16, 64, 256), (128, 1024, 8192), (1, 2, 4, 8))
    chosen = [asked[place] for place in points_to_measure(["a"] * len(asked), asked)]
    assert len(chosen) == MOST_POINTS
    assert len({load.concurrency for load in chosen}) >= 3
    assert len({load.prompt_tokens for load in chosen}) >= 2
    assert len({load.tp for load in chosen}) >= 3


def test_what_is_left_unknown_is_less_than_after_the_first_ones() -> None:
    asked = loads((1, 2, 4, 8, 16, 32, 64, 128), (128, 1024, 8192))
    models = ["a"] * len(asked)
    near = covariance(models, [tuple(map(float, place_of(load))) for load in asked], "prefill")

    def unknown(taken: list[int]) -> float:
        told = near[:, taken] @ np.linalg.solve(near[np.ix_(taken, taken)] + 0.088**2 * np.eye(len(taken)), near[taken])
        return float(np.trace(near - told))

    assert unknown(points_to_measure(models, asked, 6)) < 0.5 * unknown(list(range(6)))


@settings(max_examples=30, deadline=None)
@given(
    sizes=st.lists(
        st.tuples(st.sampled_from([1, 8, 64]), st.sampled_from([100, 3000]), st.sampled_from([1, 4]), st.sampled_from("ab")), max_size=40
    ),
    most=st.integers(1, 20),
)
def test_every_choice_is_of_different_questions_and_says_the_same_again(sizes: list[tuple[int, int, int, str]], most: int) -> None:
    asked = [Load.of(Request(concurrency=clients, prompt_tokens=prompt, tp=tp)) for clients, prompt, tp, _ in sizes]
    models = [model for *_, model in sizes]
    chosen = points_to_measure(models, asked, most)
    assert len(chosen) == min(most, len(set(sizes)))
    assert len({sizes[place] for place in chosen}) == len(chosen)
    assert chosen == points_to_measure(models, asked, most)
