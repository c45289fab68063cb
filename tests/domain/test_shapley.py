"""Shares of a change among what changed, against sums worked out by hand and the definition over all orders."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.shapley import Floats, shapley

CORNERS = st.integers(0, 4).flatmap(lambda n: st.lists(st.floats(-1e3, 1e3), min_size=2**n, max_size=2**n))


def shares(corners: Sequence[float]) -> Floats:
    """The shares of a game whose value for each set of bits is listed."""
    return shapley(len(corners).bit_length() - 1, lambda subset: np.array([corners[subset]]))[:, 0]


def test_the_sides_of_a_rectangle() -> None:
    # 3 x 5 -> 4 x 7: the width made 1 x (5 + 7)/2 = 6 of the 13, the height 2 x (3 + 4)/2 = 7.
    assert shares([15, 20, 21, 28]) == pytest.approx([6, 7])


def test_the_glove_game() -> None:
    # One left glove (bit 0) and two right ones: a pair is worth 1. The left owner gets 4/6, each right one 1/6.
    assert shares([0, 0, 0, 1, 0, 1, 0, 1]) == pytest.approx([4 / 6, 1 / 6, 1 / 6])


def test_nothing_differs() -> None:
    assert shapley(0, lambda subset: np.array([1.0, 2.0])).shape == (0, 2)


@given(CORNERS)
def test_the_shares_are_the_mean_over_all_orders(corners: list[float]) -> None:
    factors = len(corners).bit_length() - 1
    found = np.zeros(factors)
    orders = list(permutations(range(factors)))
    for order in orders:
        at = 0
        for factor in order:
            found[factor] += corners[at | 1 << factor] - corners[at]
            at |= 1 << factor
    assert shares(corners) == pytest.approx(found / len(orders), abs=1e-6)


@given(CORNERS)
def test_the_shares_sum_to_the_change(corners: list[float]) -> None:
    assert shares(corners).sum() == pytest.approx(corners[-1] - corners[0], abs=1e-6)


@given(CORNERS)
def test_swapping_the_ends_flips_every_sign(corners: list[float]) -> None:
    # The set that is swapped back is the rest of the set that was swapped.
    assert shares(corners[::-1]) == pytest.approx(-shares(corners), abs=1e-6)


@given(CORNERS, st.randoms(use_true_random=False))
def test_the_order_in_which_factors_are_listed_does_not_matter(corners: list[float], random: "object") -> None:
    factors = len(corners).bit_length() - 1
    places = list(range(factors))
    random.shuffle(places)  # type: ignore[attr-defined]
    relisted = [corners[sum(1 << places[bit] for bit in range(factors) if subset >> bit & 1)] for subset in range(len(corners))]
    assert shares(relisted) == pytest.approx([shares(corners)[place] for place in places], abs=1e-6)
