"""Change points: none in noise at the stated rate, planted ones found where they were planted, outliers are no levels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.change_points import BOUNDS, FALSE_ALARMS, FEWEST, MOST, SHORTEST, change_points, levels
from benchmarks.change_points import bound

SERIES = 400


@pytest.mark.parametrize("n", [8, 20, 45])
@pytest.mark.parametrize("noise", ["normal", "skewed"])
def test_noise_raises_alarms_at_the_stated_rate(n: int, noise: str) -> None:
    """Of 400 series 4 alarms are expected; 13 or more come by chance once in ten thousand."""
    generator = np.random.default_rng(n)
    draws = generator.normal(10, 0.1, (SERIES, n)) if noise == "normal" else 10 * generator.lognormal(0, 0.4, (SERIES, n))
    alarms = sum(bool(change_points(row.tolist())) for row in draws)
    assert alarms <= 12, f"{alarms} of {SERIES}, where {FALSE_ALARMS:.0%} is said"


@pytest.mark.parametrize(("before", "after"), [(20, 20), (27, 3), (3, 27), (9, 3), (4, 4)])
@pytest.mark.parametrize("factor", [1.1, 0.9])
def test_a_planted_shift_is_found_where_it_is(before: int, after: int, factor: float) -> None:
    """10 % in noise of 1 %."""
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(1, 0.01, before + after)
        values = noise * np.r_[np.full(before, 10.0), np.full(after, 10.0 * factor)]
        assert change_points(values.tolist()) == (before,), seed


def test_what_went_and_came_back_is_found_too() -> None:
    values = np.random.default_rng(3).normal(1, 0.01, 36) * np.r_[np.full(20, 10.0), np.full(5, 11.0), np.full(11, 10.0)]
    assert change_points(values.tolist()) == (20, 25)
    assert levels(values.tolist()) == (slice(0, 20), slice(20, 25), slice(25, 36))


def test_several_levels_are_told_apart() -> None:
    values = np.random.default_rng(5).normal(1, 0.01, 45) * np.repeat([10.0, 12.0, 11.0], 15)
    assert change_points(values.tolist()) == (15, 30)


@pytest.mark.parametrize("wild", [1, 2])
@pytest.mark.parametrize("place", [0, 12, 28])
@pytest.mark.parametrize("factor", [0.5, 1.6, 4.0])
def test_one_or_two_wild_runs_are_no_level(wild: int, place: int, factor: float) -> None:
    for seed in range(10):
        values = np.random.default_rng(seed).normal(10, 0.1, 30)
        values[place : place + wild] *= factor
        assert change_points(values.tolist()) == (), seed


def test_wild_runs_hide_no_level_and_three_of_them_are_one() -> None:
    values = np.random.default_rng(3).normal(1, 0.01, 30) * np.r_[np.full(15, 10.0), np.full(15, 11.0)]
    values[[4, 22]] *= 3
    assert change_points(values.tolist()) == (15,)
    values = np.random.default_rng(3).normal(10, 0.1, 30)
    values[27:] *= 1.6
    assert change_points(values.tolist()) == (27,)


def test_equal_figures_and_short_series_have_none() -> None:
    assert change_points([5.0] * 50) == ()
    assert change_points([10.0] * 3 + [20.0] * 4) == ()
    assert change_points([]) == ()
    assert levels([]) == ()
    assert levels([1.0]) == (slice(0, 1),)


@pytest.mark.parametrize("values", [[1.0] * (MOST + 1), [float("nan")] * 10, [0.0] * 10, [-1.0] * 10, [float("inf")] * 10])
def test_what_cannot_be_looked_at_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite figures above 0"):
        change_points(values)


@given(st.lists(st.floats(1e-6, 1e6), max_size=60), st.floats(1e-3, 1e3))
def test_levels_divide_the_series_and_do_not_depend_on_the_unit(values: list[float], scale: float) -> None:
    found = levels(values)
    assert [index for level in found for index in range(level.start, level.stop)] == list(range(len(values)))
    if len(found) > 1:
        assert min(level.stop - level.start for level in found) >= SHORTEST
        assert len(values) >= FEWEST
    whole_ms = [round(value * 1000) + 1 for value in values]
    # A power of two changes no digit of the logarithms' differences but the last.
    assert change_points([value * 2.0 ** round(np.log2(scale)) for value in map(float, whole_ms)]) == change_points(
        [float(v) for v in whole_ms]
    )


@pytest.mark.parametrize("n", [8, 16, 29])
def test_the_bounds_are_those_that_are_drawn(n: int) -> None:
    assert bound(n, drawn=4000) == pytest.approx(BOUNDS[n], rel=0.04)


def test_bounds_grow_with_the_number_of_runs_and_reach_to_the_end() -> None:
    assert list(BOUNDS.values()) == sorted(BOUNDS.values())
    assert (min(BOUNDS), max(BOUNDS)) == (FEWEST, MOST)
