"""YAML from anybody's file: the same values as JSON, bounded, and never more than lists, objects, words and figures."""

import json
import math
import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.errors import ImportRefused
from app.formats import yaml_reading
from app.formats.document import Document, read_document
from app.formats.yaml_reading import YamlProblem, looks_like_yaml, read_yaml

# PyYAML leaves these texts bare, since they are no numbers of YAML 1.1; of the core schema, which is JSON's, they are.
NUMBERS_OF_1_2 = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|0o[0-7]+|0x[0-9a-fA-F]+")
TEXTS = st.text(max_size=12).filter(lambda text: not NUMBERS_OF_1_2.fullmatch(text))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | TEXTS,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXTS, children, max_size=4),
    max_leaves=25,
)


def value(text: str) -> object:
    (part,) = read_yaml(text).parts
    return part.value


def document(text: str) -> Document:
    return read_document("x", text.encode())


@settings(max_examples=60, deadline=None)
@given(VALUES, st.sampled_from([None, False, True]))
def test_what_pyyaml_dumps_comes_back(original: Any, flow: bool | None) -> None:
    # What a tool dumps is what JSON would have said of it.
    assert value(yaml.dump(original, default_flow_style=flow)) == original


def test_plain_words_are_those_of_the_core_schema() -> None:
    text = "a: yes\nb: 2025-05-01 12:00:00\nc: 012\nd: 1e-05\ne: .inf\nf: .nan\ng: ~\nh: '7'\ni: -.inf\nj: 1_000\nk: 12:30\nl: TRUE\n"
    found = value(text)
    assert isinstance(found, dict)
    assert math.isnan(found.pop("f"))
    assert found == {
        "a": "yes", "b": "2025-05-01 12:00:00", "c": 12, "d": 1e-05, "e": math.inf, "g": None,
        "h": "7", "i": -math.inf, "j": "1_000", "k": "12:30", "l": True,
    }  # fmt: skip


def test_python_objects_are_plain_values_and_nothing_is_run() -> None:
    text = (
        "a: !!python/tuple [1, 2]\nb: !!python/object/apply:os.system ['exit 3']\nc: !!python/object:x.Y {d: 4}\ne: !!python/name:os.x ''\n"
    )
    assert value(text) == {"a": [1, 2], "b": ["exit 3"], "c": {"d": 4}, "e": ""}


def test_an_alias_is_what_it_stands_for() -> None:
    assert value("a: &x [1, {b: 2}]\nc: *x\nd: [*x]\n") == {"a": [1, {"b": 2}], "c": [1, {"b": 2}], "d": [[1, {"b": 2}]]}


def test_aliases_cannot_unfold_without_end() -> None:
    # Ten times each line: 10^9 words from a few hundred bytes.
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(ImportRefused, match="unfolds to more than 2000000 values"):
        read_yaml("\n".join(lines))


def test_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_reading, "MOST_VALUES", 10)
    # Eight words, the list and the object around it are ten.
    assert value("a: [1, 2, 3, 4, 5, 6, 7]\n") == {"a": [1, 2, 3, 4, 5, 6, 7]}
    with pytest.raises(ImportRefused, match="more than 10 values"):
        read_yaml("a: [1, 2, 3, 4, 5, 6, 7, 8]\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: &x [*x]\n", "line 1 refers to “x”, which is not complete there"),
        ("a: *nobody\n", "“nobody”, which is not complete there"),
        ("[a, b]: 1\n", "line 1 has a list or an object as a key"),
        ("a: " + "[" * 5000 + "]" * 5000, "nested more than 64 levels deep"),
        ("a: &d " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*d" + "]" * 40 + "\n", "nested more than 64 levels deep"),
        ("a: " + "9" * 5000, "line 1 holds a number of more than 4300 digits"),
        ("b:\n  mean: 1\n  mean: 2\n", "The key “mean” stands twice in one object (line 3) with different values"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_line(text: str, expected: str) -> None:
    with pytest.raises(ImportRefused) as refused:
        read_yaml(text)
    assert expected in refused.value.reason


def test_a_key_that_stands_twice_with_words_is_said() -> None:
    read = read_yaml("a: x\na: y\nb: 1\nb: 1\n" + "c: w\n" * 5)
    assert read.warnings == (
        "The key “a” stands twice in one object (line 2); the last one is used.",
        "The key “b” stands twice in one object (line 4), with the same value.",
        "The key “c” stands twice in one object (line 6), with the same value.",
        "3 more keys stand twice in one object.",
    )


@pytest.mark.parametrize("text", ["a: [1, 2\n", "a: 'x\n", "a:\n\t- b\n", "a: {b: c\n---\n", "a: \x00b\n"])
def test_what_is_no_yaml_says_so(text: str) -> None:
    with pytest.raises(YamlProblem):
        read_yaml(text)


def test_documents_of_a_file_are_told_apart() -> None:
    read = read_yaml("a: 1\n---\nb: 2\n...\n")
    assert [(part.where, part.value) for part in read.parts] == [("document 1: ", {"a": 1}), ("document 2: ", {"b": 2})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("benchmarks:\n- a: 1\n", True),
        ("# by a tool\n\n---\nversion: '0.1'\nrun:\n  uid: x\n", True),
        ("a:b\n", False),
        ("prompt eval time = 1 ms\n", False),
        ("total duration:  4.6s\n", False),
        ("Metric,avg,min\n", False),
        ("", False),
        ("\n" * 100 + "a: 1\n", False),
    ],
)
def test_what_looks_like_yaml(text: str, expected: bool) -> None:
    assert looks_like_yaml(text) is expected


def test_only_what_has_structure_is_taken_for_yaml() -> None:
    log = "build_info: b9010\nprompt eval time: none\n"
    assert not document(log).is_json
    assert document(log).text == log
    read = document("a:\n  b: 1\n")
    assert (read.is_json, read.language, read.warnings) == (True, "YAML", ())
    assert read.entries[0].values == {"a": {"b": 1}}
    assert "may be cut off" in document("a:\n  b: 1").warnings[0]


def test_text_that_is_no_yaml_stays_text_for_the_others() -> None:
    read = document("a: b: c\nx\n")
    assert not read.is_json
    assert read.broken is not None
    assert "as YAML it cannot be read (line 1: mapping values are not allowed in this context)" in read.broken


def test_json_is_not_read_as_yaml() -> None:
    assert document(json.dumps({"a": {"b": 1}})).language == "JSON"
