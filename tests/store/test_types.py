"""Column types: what one database stores in silence and the other refuses is settled before either sees it."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store.types import MAX_NAME, finite, is_id, storable_json, storable_name, storable_text

any_text = st.text(st.characters(exclude_categories=()))
any_data = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), any_text),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(any_text, inner, max_size=4)),
    max_leaves=12,
)


@given(any_text)
def test_any_text_becomes_one_that_utf8_carries(text: str) -> None:
    stored = storable_text(text)
    assert stored.encode().decode() == stored
    assert "\x00" not in stored
    assert storable_text(stored) == stored


def test_ordinary_text_is_kept_as_it_is() -> None:
    assert storable_text("Größe 模型 🚀\n") == "Größe 模型 🚀\n"
    assert storable_text("a\x00b\ud800c") == "ab\ufffdc"


def test_a_name_is_cut_where_an_index_ends() -> None:
    assert storable_name("x" * 1000) == "x" * MAX_NAME


@given(any_data)
def test_any_data_becomes_strict_json(data: object) -> None:
    text = json.dumps(storable_json(data), allow_nan=False)
    assert json.loads(text) == storable_json(data)
    text.encode()


def test_numbers_that_are_none_become_unknown() -> None:
    assert [finite(value) for value in (1.5, 0.0, math.nan, math.inf, -math.inf, None)] == [1.5, 0.0, None, None, None, None]


@pytest.mark.parametrize(("value", "names"), [(1, True), (2**63 - 1, True), (0, False), (-1, False), (2**63, False), (10**30, False)])
def test_an_id_fits_64_bits(value: int, names: bool) -> None:
    assert is_id(value) is names
