"""The codec of raw samples: times to the microsecond, counts exactly, NaN as NaN."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.store import samples
from app.store.samples import MICROSECONDS, STRETCH, WHOLE, decode, encode, known, stretches

HALF_A_MICROSECOND = 0.5e-6
NARROW, WIDE, PLAIN = 1, 2, 3


def some(elements: st.SearchStrategy[float]) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, st.integers(1, 50), elements=elements)


anything = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(some(st.one_of(st.just(np.nan), st.floats(0, 4000))))
def test_ordinary_times_are_kept_to_half_a_microsecond_in_four_bytes(values: np.ndarray) -> None:
    blob = encode(values, MICROSECONDS)
    assert blob[0] == NARROW
    back = decode(blob, MICROSECONDS)
    assert np.array_equal(np.isnan(back), np.isnan(values))
    assert np.nanmax(np.abs(back - values), initial=0.0) <= HALF_A_MICROSECOND * (1 + 1e-6)


@given(some(anything), st.sampled_from((MICROSECONDS, WHOLE)))
def test_any_doubles_come_back_close_or_as_unknown(values: np.ndarray, scale: float) -> None:
    back = decode(encode(values, scale), scale)
    is_known = np.isfinite(values) & (np.abs(values) <= 1e15)
    assert np.array_equal(np.isnan(back), ~is_known)
    error = np.abs(back[is_known] - values[is_known])
    allowed = HALF_A_MICROSECOND if scale == MICROSECONDS else 0.0
    assert np.all(error <= allowed + np.abs(values[is_known]) * 1e-15)


@given(some(st.one_of(st.just(np.nan), st.integers(0, 10**12).map(float))))
def test_counts_are_kept_exactly(values: np.ndarray) -> None:
    assert np.array_equal(decode(encode(values, WHOLE), WHOLE), values, equal_nan=True)


@pytest.mark.parametrize(
    ("value", "scale", "layout"),
    [
        (4294.967294, MICROSECONDS, NARROW),  # 2**32 - 2 µs: the largest that fits, 2**32 - 1 means unknown
        (4294.967295, MICROSECONDS, WIDE),
        (7200.0, MICROSECONDS, WIDE),  # two hours into a run
        (-0.25, MICROSECONDS, WIDE),  # a clock that ran backwards
        (1e12, MICROSECONDS, PLAIN),  # 1e18 µs: beyond what a double counts exactly
        (4294967294.0, WHOLE, NARROW),
        (4294967295.0, WHOLE, WIDE),
        (0.5, WHOLE, PLAIN),
        (np.nan, MICROSECONDS, NARROW),
    ],
)
def test_a_stretch_is_as_narrow_as_its_values_allow(value: float, scale: float, layout: int) -> None:
    blob = encode(np.array([value, np.nan]), scale)
    assert blob[0] == layout
    assert np.array_equal(decode(blob, scale), np.array([value, np.nan]), equal_nan=True)


def test_a_column_is_cut_into_stretches_that_join_again() -> None:
    values = np.arange(STRETCH * 2 + 3, dtype=np.float64)
    parts = list(stretches(values))
    assert [part.size for part in parts] == [STRETCH, STRETCH, 3]
    assert np.array_equal(np.concatenate([decode(encode(part, WHOLE), WHOLE) for part in parts]), values)
    assert list(stretches(np.empty(0))) == []


def test_gaps_of_a_stream_take_less_than_two_bytes_each() -> None:
    # Around 10 ms, 20 % spread: 14 random bits above the microsecond, of 64.
    gaps = np.random.default_rng(3).lognormal(np.log(0.010), 0.2, 100_000)
    assert len(encode(gaps, MICROSECONDS)) / gaps.size < 2.0


def test_known_keeps_what_is_finite_and_not_absurd() -> None:
    assert known(np.array([1.0, np.nan, np.inf, -np.inf, 1.1e15, -3.0])).tolist() == [1.0, -3.0]


@pytest.mark.parametrize(
    ("blob", "says"),
    [
        (b"", "layout 0"),
        (b"\x09abc", "layout 9"),
        (b"\x01abc", "cannot be decompressed"),
        (b"\x01" + samples.zstandard.ZstdCompressor().compress(b"12345"), "middle of a number"),
    ],
)
def test_bytes_that_are_no_stretch_are_refused(blob: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        decode(blob, WHOLE)
