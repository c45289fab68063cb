"""Nothing but ImportRefused ever comes out of reading a file: anything at all, and thousands of damaged copies of ours for each format.

A copy that fails is told by its format and number and shown as short as it can be made. Once mended it goes into `corpus`, and stays.
"""

import json
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app import formats
from app.domain.run import Run
from app.formats import ollama
from app.formats.document import Document
from tests.formats.damage import FORMATS, damaged
from tests.formats.soundness import check, shrunk

CORPUS = Path(__file__).with_name("corpus")
QUICK = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
FEW = 150
# Each format gets 20,000 copies or more, all of them together a million or more.
MANY = max(20_000, -(-1_000_000 // len(FORMATS)))
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(10**40), max_value=10**40),
    st.floats(),
    st.text(max_size=20),
    st.lists(st.one_of(st.none(), st.floats(), st.integers(), st.text(max_size=3)), max_size=6),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


@QUICK
@given(st.binary(max_size=400))
def test_arbitrary_bytes(data: bytes) -> None:
    check(data)


@QUICK
@given(st.text(max_size=300))
def test_arbitrary_text(text: str) -> None:
    check(text.encode("utf-8", errors="surrogatepass"))


@QUICK
@given(st.recursive(VALUES, lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4)))
def test_arbitrary_json(value: object) -> None:
    check(json.dumps(value).encode())


@pytest.mark.parametrize("format_id", FORMATS)
def test_damaged_files(format_id: str) -> None:
    check_all(format_id, range(FEW))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format_id", FORMATS)
def test_many_damaged_files(format_id: str) -> None:
    check_all(format_id, range(FEW, MANY))


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_what_once_failed(path: Path) -> None:
    check(path.read_bytes())


def test_a_planted_fault_is_found_and_shown_short(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(document: Document) -> list[Run]:
        if "eval_count" not in document.text:
            raise KeyError("eval_count")
        return ollama.parse(document)

    planted = [replace(each, parse=parse) if each.id == "ollama" else each for each in formats.IMPORTERS]
    monkeypatch.setattr(formats, "IMPORTERS", tuple(planted))
    with pytest.raises(AssertionError, match=r"damaged\('ollama', \d+\) raises KeyError") as found:
        check_all("ollama", range(MANY))
    assert len(str(found.value)) < 400


def check_all(format_id: str, numbers: range) -> None:
    for number in numbers:
        data = damaged(format_id, number)
        try:
            check(data)
        except Exception as error:
            short = shrunk(data, partial(fails, type(error)))
            raise AssertionError(f"damaged({format_id!r}, {number}) raises {error!r}; so does {short!r}") from error


def fails(kind: type[Exception], data: bytes) -> bool:
    """Whether reading this fails in the same way; in another way is not the same fault."""
    with suppress(Exception):
        try:
            check(data)
        except kind:
            return True
    return False
