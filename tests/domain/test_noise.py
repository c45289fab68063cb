"""The spread between repeats, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.comparison import noise_of
from app.domain.noise import spread, spread_around


def test_a_spread_by_hand() -> None:
    # differences 1, -2; (1 + 4) / (2 * 2) = 1.25; mean 10
    assert spread([10.0, 11.0, 9.0]) == pytest.approx(math.sqrt(1.25) / 10)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [1.0, 0.0, 1.0], [1.0, float("nan"), 1.0]])
def test_fewer_than_three_repeats_have_no_spread(values: list[float]) -> None:
    assert spread(values) is None


def test_repeats_that_agree_have_none_to_speak_of() -> None:
    assert spread([5.0] * 4) == 0.0


def test_under_noise_it_is_the_standard_deviation() -> None:
    values = np.random.default_rng(1).normal(100, 2, 5000)
    assert spread(values.tolist()) == pytest.approx(0.02, rel=0.05)


def test_a_regression_does_not_hide_in_the_noise_it_makes() -> None:
    """Four runs at 10 and three at 11: one difference of 1 in six, so 1 / sqrt(12) / mean = 2.8 %, where the deviation would be 5 %."""
    values = [10.0, 10.0, 10.0, 10.0, 11.0, 11.0, 11.0]
    found = spread_around(values, 0)
    assert found == pytest.approx(math.sqrt(1 / 12) / np.mean(values))
    assert noise_of(found) < 0.1


def test_only_the_level_of_the_run_counts() -> None:
    generator = np.random.default_rng(2)
    values = [*generator.normal(10, 0.1, 20), *generator.normal(20, 1.0, 20)]
    assert spread_around(values, 5) == pytest.approx(0.01, rel=0.4)
    assert spread_around(values, 30) == pytest.approx(0.05, rel=0.4)


def test_very_long_series_count_from_their_newest_runs() -> None:
    values = [10.0, 10.1] * 150
    assert spread_around(values, 10) is None
    assert spread_around(values, 250) is not None
    assert spread_around([0.0, 1.0, 1.0, 1.0], 2) is None


@pytest.mark.parametrize(("between", "noise"), [(None, 0.03), (0.0, 0.03), (0.015, 0.03), (0.02, 0.04), (0.1, 0.2)])
def test_the_noise_is_twice_the_spread_and_never_below_3_percent(between: float | None, noise: float) -> None:
    assert noise_of(between) == pytest.approx(noise)


@given(st.lists(st.floats(0.1, 100), min_size=3, max_size=30), st.floats(0.01, 100))
def test_a_spread_has_no_unit(values: list[float], scale: float) -> None:
    assert spread([value * scale for value in values]) == pytest.approx(spread(values), abs=1e-9)
