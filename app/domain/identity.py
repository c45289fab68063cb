"""Who was measured, in words: what the file says, and what a person says in its place. The two are kept apart, the person's counts.

A word is a text (model, hardware, engine, number formats, label) or a degree or count (devices, tp, pp, ep, dp). What is not said is
absent, never empty and never 0.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.domain.run import Run

Word = str | int
Words = Mapping[str, Word]

TEXTS = ("model", "hardware", "engine", "weight_dtype", "kv_dtype")
COUNTS = ("devices", "tp", "pp", "ep", "dp")
IDENTITY = (*TEXTS, *COUNTS)
LABEL = "label"
SAID = (*IDENTITY, LABEL)


def words_of(run: Run) -> dict[str, Word]:
    """What a run says about itself, by key of SAID; what it does not say is left out."""
    return {key: value for key in SAID if (value := getattr(run, key)) is not None}


def with_words(run: Run, words: Words) -> Run:
    """The run with these words in place of all its own: a key that is absent becomes not known."""
    fields: dict[str, Any] = {key: words.get(key) for key in SAID}
    return replace(run, **fields)


def together(by_file: Words, by_person: Words) -> dict[str, Word]:
    """The words that count: a person's where they said something, else the file's."""
    return {**by_file, **by_person}


def corrected(by_person: Words, said: Mapping[str, Word | None]) -> dict[str, Word]:
    """What a person has said after they say more: None takes a word back, so that the file's counts again."""
    kept = {key: value for key, value in by_person.items() if key not in said}
    return kept | {key: value for key, value in said.items() if value is not None}


def words_from(data: Mapping[str, Any]) -> dict[str, Word]:
    """Words from stored plain data; anything that is no word of SAID is left out."""
    return {key: value for key, value in data.items() if key in SAID and isinstance(value, str | int) and not isinstance(value, bool)}
