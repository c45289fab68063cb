"""What the file says and what a person says, kept apart."""

from hypothesis import given
from hypothesis import strategies as st

from app.domain.identity import COUNTS, SAID, TEXTS, Word, corrected, together, with_words, words_from, words_of
from app.domain.run import Run

RUN = Run("f", model="m", hardware="h", devices=2, tp=2, label="l", engine_version="1", pp=None)

words = st.dictionaries(st.sampled_from(SAID), st.text(min_size=1, max_size=5) | st.integers(1, 8), max_size=len(SAID))
changes = st.dictionaries(st.sampled_from(SAID), st.none() | st.text(min_size=1, max_size=5), max_size=len(SAID))


def test_a_run_says_what_it_knows_and_nothing_else() -> None:
    assert words_of(RUN) == {"model": "m", "hardware": "h", "devices": 2, "tp": 2, "label": "l"}
    assert words_of(Run("f")) == {}


def test_other_words_take_the_place_of_all() -> None:
    changed = with_words(RUN, {"model": "other", "pp": 4})
    assert words_of(changed) == {"model": "other", "pp": 4}
    assert changed.engine_version == "1", "what nobody can say otherwise stays"


def test_a_person_counts_before_the_file() -> None:
    assert together({"model": "file", "tp": 1}, {"model": "person", "ep": 8}) == {"model": "person", "tp": 1, "ep": 8}


def test_a_word_taken_back_leaves_the_files() -> None:
    said: dict[str, Word] = {"model": "person", "tp": 2}
    assert corrected(said, {"model": None, "ep": 8}) == {"tp": 2, "ep": 8}
    assert together({"model": "file"}, corrected(said, {"model": None})) == {"model": "file", "tp": 2}


@given(words, words)
def test_words_survive_a_run(by_file: dict[str, Word], by_person: dict[str, Word]) -> None:
    assert words_of(with_words(Run("f"), together(by_file, by_person))) == {**by_file, **by_person}


@given(words, changes, changes)
def test_saying_two_things_is_saying_both_at_once(said: dict[str, Word], first: dict[str, str | None], then: dict[str, str | None]) -> None:
    assert corrected(corrected(said, first), then) == corrected(said, {**first, **then})


def test_stored_words_are_checked() -> None:
    assert words_from({"model": "m", "tp": 2, "notes": "n", "ep": None, "dp": True, "pp": [1]}) == {"model": "m", "tp": 2}


def test_every_word_is_a_field_of_a_run() -> None:
    assert set(SAID) <= set(Run.__dataclass_fields__)
    assert len(set(SAID)) == len(TEXTS) + len(COUNTS) + 1
