"""The log-binned histogram: exact where it says so, within half a percent elsewhere, the same however it was put together."""

import math

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.store.histogram import EXACT, Histogram

HALF_A_PERCENT = 0.005
times = st.floats(1e-9, 1e6)
any_known = st.one_of(st.just(0.0), times, times.map(lambda value: -value))


def columns(elements: st.SearchStrategy[float], smallest: int = 1) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, st.integers(smallest, 60), elements=elements)


def made(values: np.ndarray) -> Histogram:
    histogram = Histogram.of(values)
    assert histogram is not None
    return histogram


def test_worked_by_hand() -> None:
    # 1, 2, 3, 4: mean 2.5, squared deviations 2.25 + 0.25 + 0.25 + 2.25 = 5, std = sqrt(5 / 4); median halfway between 2 and 3.
    histogram = made(np.array([4.0, 1.0, 3.0, 2.0]))
    assert (histogram.count, histogram.min, histogram.max, histogram.mean) == (4, 1.0, 4.0, 2.5)
    assert histogram.squares == 5.0
    assert histogram.std == pytest.approx(1.1180339887)
    assert histogram.percentile(50) == 2.5
    # Rank 0.33 * 3 = 0.99: almost 2; not among the kept quantiles, so from the bins.
    assert 33 not in EXACT
    assert histogram.percentile(33) == pytest.approx(1.99, rel=HALF_A_PERCENT)


def test_what_is_not_known_is_left_out() -> None:
    assert Histogram.of(np.array([np.nan, np.inf, -np.inf, 2e15])) is None
    assert Histogram.of(np.empty(0)) is None
    assert made(np.array([np.nan, 7.0])).count == 1


@given(columns(any_known), st.floats(0, 100))
def test_percentiles_are_within_half_a_percent_of_numpy(values: np.ndarray, percent: float) -> None:
    # The true percentile lies between two neighbours in rank, each known to half a percent of its own size.
    rank = percent / 100 * (values.size - 1)
    neighbours = np.sort(values)[[math.floor(rank), math.ceil(rank)]]
    error = abs(made(values).percentile(percent) - np.percentile(values, percent))
    assert error <= HALF_A_PERCENT * np.abs(neighbours).max()


@given(columns(any_known))
def test_the_kept_quantiles_and_the_ends_are_exact(values: np.ndarray) -> None:
    histogram = made(values)
    assert [histogram.percentile(percent) for percent in EXACT] == [float(value) for value in np.percentile(values, EXACT)]
    assert (histogram.percentile(0), histogram.percentile(100)) == (values.min(), values.max())
    assert histogram.mean == pytest.approx(values.mean(), abs=1e-12)
    assert histogram.std == pytest.approx(values.std(), rel=1e-9, abs=1e-12)


@settings(max_examples=40)
@given(columns(any_known), columns(any_known), columns(any_known))
def test_merging_is_associative_and_gives_the_histogram_of_all_values(first: np.ndarray, second: np.ndarray, third: np.ndarray) -> None:
    one, two, three = made(first), made(second), made(third)
    left, right, whole = one.merge(two).merge(three), one.merge(two.merge(three)), made(np.concatenate((first, second, third)))
    for merged in (left, right):
        assert (merged.count, merged.min, merged.max) == (whole.count, whole.min, whole.max)
        assert merged.bins.tolist() == whole.bins.tolist()
        assert merged.counts.tolist() == whole.counts.tolist()
        assert merged.mean == pytest.approx(whole.mean, rel=1e-9, abs=1e-9)
        assert merged.squares == pytest.approx(whole.squares, rel=1e-9, abs=1e-6)
        # Quantiles of parts say nothing exact about the whole.
        assert merged.quantiles is None


@settings(max_examples=40)
@given(columns(any_known))
def test_a_histogram_survives_being_written(values: np.ndarray) -> None:
    for histogram in (made(values), made(values).merge(made(values))):
        back = Histogram.from_bytes(histogram.to_bytes())
        assert (back.count, back.mean, back.squares, back.min, back.max, back.quantiles) == (
            histogram.count, histogram.mean, histogram.squares, histogram.min, histogram.max, histogram.quantiles,
        )  # fmt: skip
        assert back.bins.tolist() == histogram.bins.tolist()
        assert back.counts.tolist() == histogram.counts.tolist()


def test_a_merged_histogram_of_many_values_is_close_and_small() -> None:
    values = np.random.default_rng(5).lognormal(-4.6, 0.5, 200_000)
    merged = made(values[:150_000]).merge(made(values[150_000:]))
    for percent in (0.1, 1, 25, 50, 90, 99, 99.9):
        assert merged.percentile(percent) == pytest.approx(np.percentile(values, percent), rel=HALF_A_PERCENT)
    # 200,000 doubles are 1.6 MB.
    assert len(merged.to_bytes()) < 3000


def test_the_extremes_of_a_double_have_bins() -> None:
    values = np.array([5e-324, -5e-324, 1e15, -1e15, 0.0])
    histogram = made(values)
    assert histogram.counts.tolist() == [1, 1, 1, 1, 1]
    assert histogram.percentile(50) == 0.0


@settings(max_examples=30)
@given(columns(times, smallest=2))
def test_the_cumulative_distribution_ascends_to_one(values: np.ndarray) -> None:
    middles, shares = made(values).cdf()
    assert np.all(np.diff(middles) >= 0)
    assert np.all(np.diff(shares) > 0)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("percent", [-0.1, 100.1])
def test_a_percentile_outside_the_scale_is_refused(percent: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 100"):
        made(np.array([1.0])).percentile(percent)


def test_an_unknown_version_is_refused() -> None:
    raw = bytearray(zstandard.ZstdDecompressor().decompress(made(np.array([1.0])).to_bytes()))
    raw[0] = 99
    with pytest.raises(ValueError, match="version 99"):
        Histogram.from_bytes(zstandard.ZstdCompressor().compress(bytes(raw)))
