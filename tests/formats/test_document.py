"""From bytes to text and JSON values: encodings, several documents, limits, and refusals that say where."""

import json

import pytest

from app.domain.errors import ImportRefused
from app.formats.document import archive_kind, read_document
from app.formats.json_places import path_at

OBJECT = {"a": 1.5, "name": "é"}
TEXT = json.dumps(OBJECT, ensure_ascii=False)


def refusal(data: bytes) -> str:
    with pytest.raises(ImportRefused) as refused:
        read_document("x.json", data)
    return refused.value.reason


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (TEXT.encode(), None),
        (TEXT.encode("utf-8-sig"), "UTF-8 by its byte-order mark"),
        (TEXT.encode("utf-16"), "UTF-16 by its byte-order mark"),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "UTF-16 by its byte-order mark"),
        (TEXT.encode("utf-32"), "UTF-32 by its byte-order mark"),
        (TEXT.encode("utf-16-le"), "every other byte is zero"),
        (TEXT.encode("utf-16-be"), "every other byte is zero"),
        (TEXT.encode("latin-1"), "Windows-1252"),
    ],
)
def test_encodings(data: bytes, note: str | None) -> None:
    document = read_document("x", data)
    assert document.entries[0].values == OBJECT
    if note is None:
        assert document.warnings == ()
    else:
        assert note in document.warnings[0]


def test_bytes_that_are_no_text_in_a_name() -> None:
    document = read_document("x", b'{"name": "\xc3\xa9\xff"}')
    assert document.entries[0].values == {"name": "é\ufffd"}
    assert "1 places are not UTF-8 (the first at byte 12)" in document.warnings[0]


def test_lone_surrogates_are_read() -> None:
    assert read_document("x", b'{"name": "a\\ud800b"}').entries[0].values == {"name": "a\ud800b"}


@pytest.mark.parametrize(
    ("text", "wheres"),
    [
        ('{"a": 1}', [""]),
        ('[{"a": 1}, {"a": 2}]', ["[0].", "[1]."]),
        ('{"a": 1}\n\n{"a": 2}\n', ["line 1: ", "line 3: "]),
        ('[{"a": 1}]\n[{"a": 2}]', ["line 1: [0].", "line 2: [0]."]),
        ('{"a": 1}{"a": 2}', ["document 1: ", "document 2: "]),
        ('{\n"a": 1\n}\n{\n"a": 2\n}\n', ["document 1: ", "document 2: "]),
        ('{"a": 1}\n{\n"a": 2\n}', ["document 1: ", "document 2: "]),
        ('{"a": "x\u2028y"}\n{"a": 2}', ["line 1: ", "line 2: "]),
    ],
)
def test_one_value_or_several(text: str, wheres: list[str]) -> None:
    document = read_document("x", text.encode())
    assert [entry.where for entry in document.entries] == wheres
    assert document.stray is None
    assert document.warnings == ()


@pytest.mark.parametrize("tail", ['{"a": 1, "b', '{"a": tr', '{"a": 1.', '{"a": "x\\u00', '{"a": [1, 2', "{"])
def test_a_last_line_cut_off_is_left_out(tail: str) -> None:
    document = read_document("x", ('{"a": 1}\n{"a": 2}\n' + tail).encode())
    assert len(document.entries) == 2
    assert document.warnings == ("Line 3 is cut off and left out; the 2 lines before it are read.",)


def test_a_last_document_cut_off_is_left_out() -> None:
    document = read_document("x", b'{\n"a": 1\n}\n{\n"a": 2,\n')
    assert len(document.entries) == 1
    assert "Document 2 is cut off (line 6) and left out" in document.warnings[0]


def test_a_broken_line_in_the_middle_names_its_line() -> None:
    assert refusal(b'{"a": 1}\n{"a": \n{"a": 3}\n').startswith("Line 2 is not JSON")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "The file is empty"),
        (b" \n\t ", "The file is empty"),
        (b"\xef\xbb\xbf", "The file is empty"),
        (b"{}", "only an empty list or object"),
        (b"[]", "only an empty list or object"),
        (b"[{}, {}]", "only an empty list or object"),
        (b"<!DOCTYPE html><html><body>502</body></html>", "This is HTML"),
        (b"\n <html lang='en'>", "This is HTML"),
        (b"\x1f\x8b\x08\x00rest", "This is a gzip archive"),
        (b"PK\x03\x04rest", "This is a zip archive"),
        (b"\x28\xb5\x2f\xfdrest", "This is a zstd archive"),
        (b"\x00\x01\x02" * 50, "This is a binary file"),
        (b"\x89PNG\r\n\x1a\n" + b"\x00\xff\xe9" * 40, "This is a binary file"),
        (b'{"a": ' + b"[" * 70 + b"]" * 70 + b"}", "nested more than 64 levels deep"),
        (b"[" * 5000 + b"]" * 5000, "nested more than 64 levels deep"),
        (b"[" * 100_000, "nested more than 64 levels deep"),
        (b'{"a": {"b": [1, ' + b"9" * 5000 + b"]}}", "a.b[1] holds a number of more than 4300 digits"),
        (b'{"duration": 1.5, "duration": 2.5}', "“duration” stands twice in one object (line 1, duration) with different values"),
        (b'{"x": {"ttfts": [1], "ttfts": [2]}}', "“ttfts” stands twice"),
    ],
)
def test_refusals(data: bytes, message: str) -> None:
    assert message in refusal(data)


def test_depth_up_to_the_limit_is_read() -> None:
    assert read_document("x", b'{"a": ' + b"[" * 62 + b"1" + b"]" * 62 + b"}").is_json


def test_duplicate_keys_that_do_no_harm_are_noted() -> None:
    document = read_document("x", b'{"a": 1, "a": 1, "tag": "x", "tag": "y", "n": NaN, "n": NaN}')
    assert document.entries[0].values["tag"] == "y"
    assert len(document.warnings) == 3
    assert "with the same value" in document.warnings[0]
    assert "the last one is used" in document.warnings[1]


def test_text_that_looks_like_a_key_is_no_duplicate() -> None:
    assert read_document("x", b'{"a": "\\"b\\": ", "c": ": ", "b": 1}').warnings == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"benchmarks": [{"a": 1}, {"a": 2}, {"a": 3}, {"a": 4, "b', "ends at byte 57, inside benchmarks[3]"),
        ('{"a": [1, 2', "ends at byte 11, inside a[1]"),
        ('{"a": 1,\n"b": nope}', "This is not JSON (line 2, inside b"),
        ('{"a": 1} trailing', "This is not JSON (line 1"),
    ],
)
def test_broken_json_says_where(text: str, message: str) -> None:
    document = read_document("x", text.encode())
    assert not document.is_json
    assert document.broken is not None
    assert message in document.broken


def test_values_that_are_no_objects_are_named() -> None:
    assert read_document("x", b'[{"a": 1}, 5]').stray == "[1] is a number, not an object"
    assert read_document("x", b'{"a": 1}\n["x"]').stray == "line 2: [0] is text, not an object"


def test_plain_text_is_no_json() -> None:
    document = read_document("x.log", b"hello: 1\n")
    assert not document.is_json
    assert document.broken is None


@pytest.mark.parametrize("name", ["../../etc/passwd", "x" * 4096, "a\x00b\n.json", "<script>.json"])
def test_names_are_only_words(name: str) -> None:
    assert len(read_document(name, b'{"a": 1}').name) <= 200


def test_archives_by_their_first_bytes() -> None:
    assert archive_kind(b"\x1f\x8b") == "gzip"
    assert archive_kind(b"\x00" * 257 + b"ustar") == "tar"
    assert archive_kind(b"{}") is None


@pytest.mark.parametrize(
    ("text", "offset", "path"),
    [
        ('{"a": {"b": [10, 20, 30]}}', 21, "a.b[2]"),
        ('{"a": {"b": [10, 20, 30]}, "c": 1}', 32, "c"),
        ("[[1], [2, 3]]", 10, "[1][1]"),
        ('{"a}": "x,{", "b": 1}', 20, "b"),
        ("", 0, ""),
        ('{"a": [[1, 2], [], [3, 4, 5', 27, "a[2][2]"),
        ('{"a": [1, 2], "b": [{"c": [1, 2]}, {"d": [3, 4]}, 5', 51, "b[2]"),
        ('["x", "y", 1, 2, "z"', 20, "[4]"),
        ('{"a": 1, "b": 2, "c": [0, [1], 2, [3, "]", 4', 44, "c[3][2]"),
    ],
)
def test_path_at(text: str, offset: int, path: str) -> None:
    assert path_at(text, offset) == path
