"""Damaged copies of our own small files, as many as wanted: copy number N of a format is the same bytes in every run.

A format is covered by its folder in tests/data. What is done to a copy: values of its JSON replaced, dropped, doubled or exchanged at any
depth, numbers of its text replaced, lines and cells moved, bytes cut, turned, repeated, the encoding changed, files of two formats mixed.
"""

import json
import random
import re
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from app.domain.errors import ImportRefused
from app.formats import IMPORTERS
from app.formats.document import read_document

DATA = Path(__file__).resolve().parents[1] / "data"
FORMATS = tuple(importer.id for importer in IMPORTERS)
_LONGEST_FILE = 200_000
_MOST_STEPS = 4
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_SEPARATOR = re.compile(rb"[,;|\t]")
_NUMBERS = (
    *(
        b"0",
        b"-0",
        b"-1",
        b"1",
        b"2.5",
        b"NaN",
        b"-Infinity",
        b"Infinity",
        b"nan",
        b"inf",
        b"1e999",
        b"1e-320",
        b"1e308",
        b"1e18",
        b"1e-16",
    ),
    *(b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809", b"9" * 400, b"9" * 4400, b"1,234.5", b"1.234,5", b"null"),
    *(b"true", b'""', b'"12"', b"[]", b"{}", b"-", b"0x10", b"1e", b"--1", b"1 000", "٣".encode(), b"2026-05-01"),
)
_SNIPPETS = (
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\n", b"\r\n", b"\r", b"\t", b"\x00", b"\xff", b"\xc3\x28", b"\xef\xbb\xbf"),
    *(b"\\ud800", b"\\u0000", "\u202e".encode(), b";", b"|", b"=", b"'", b"%", b"ms", b"Metric,avg,min,max,p1\n", b"build_commit,"),
    *(
        b"============ Serving Benchmark Result ============\n",
        b"| model | size | params | backend | test | t/s |\n",
        b"<html>",
        b"# TYPE ",
    ),
    *(b"INSERT INTO test (build_commit) VALUES (", b"prompt eval time = ", b"[" * 70, b'{"a":' * 70),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 5, 0.5, 10**40, 2**63 - 1, 2**63, 2**64, 1e308, 1e-300, 1e17, -0.0, float("nan"), float("inf")),
    *(
        -float("inf"),
        "",
        "x",
        "1",
        "-1",
        "1e5",
        "NaN",
        "inf",
        "\ud800",
        "a\u0000b",
        "m" * 5000,
        "2026-13-45T99:00:00Z",
        "1970-01-01T00:00:00Z",
    ),
    *([], [1], [None], [-1], ["x"], [1e308, 1e308], [0, 0, 0], [[1]], [[]], [{}], {}, {"count": -1}, {"mean": 1}, {"a": {"b": [1, 2]}}),
)


@cache
def files_of(format_id: str) -> tuple[bytes, ...]:
    """Our small files of a format."""
    return tuple(path.read_bytes() for path in sorted((DATA / format_id).iterdir()))


@cache
def values_of(format_id: str) -> tuple[str, ...]:
    """The JSON of those that are JSON, each as a text that holds the list of its values."""
    found = []
    for data in files_of(format_id):
        try:
            parts = read_document("", data).parts
        except ImportRefused:
            continue
        if parts:
            found.append(json.dumps([part.value for part in parts]))
    return tuple(found)


@cache
def _keys() -> tuple[str, ...]:
    """Every key that stands in any of our files."""
    keys: set[str] = set()
    waiting: list[Any] = [json.loads(text) for format_id in FORMATS for text in values_of(format_id)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            keys.update(value)
        waiting.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    return tuple(sorted(keys))


def damaged(format_id: str, number: int) -> bytes:
    """Damaged copy `number` of a file of this format."""
    rng = random.Random(f"{format_id} {number}")
    documents = values_of(format_id)
    if documents and rng.random() < 0.6:
        data = _rewritten(rng, rng.choice(documents))
        if rng.random() < 0.8:
            return data
    else:
        data = rng.choice(files_of(format_id))
    for _ in range(rng.randint(1, _MOST_STEPS)):
        data = rng.choice(_STEPS)(rng, data)[:_LONGEST_FILE]
    return data


def _rewritten(rng: random.Random, text: str) -> bytes:
    """JSON with some of its values, at any depth, changed; written as one document, as lines or one behind the other."""
    parts = json.loads(text)
    for _ in range(rng.randint(1, _MOST_STEPS)):
        container, key = _place(rng, parts)
        if container is not None:
            rng.choice(_CHANGES)(rng, container, key)
    indent = rng.choice((None, None, 1))
    separator = rng.choice(("\n", "\n", "", "\n\n")) if len(parts) > 1 else ""
    return separator.join(json.dumps(part, indent=indent, ensure_ascii=rng.random() < 0.9) for part in parts).encode(
        "utf-8", "surrogatepass"
    )


def _place(rng: random.Random, value: Any) -> tuple[Any, Any]:
    """A place in a JSON value: what contains it and its key. (None, None) where there is none."""
    found: tuple[Any, Any] = (None, None)
    while isinstance(value, (dict, list)) and value:
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        found, value = (value, key), value[key]
        if rng.random() < 0.15:
            break
    return found


def _replace(rng: random.Random, container: Any, key: Any) -> None:
    container[key] = deepcopy(rng.choice(_VALUES))


def _drop(rng: random.Random, container: Any, key: Any) -> None:
    del container[key]


def _double(rng: random.Random, container: Any, key: Any) -> None:
    """The same value again: under another known key, or once more in the list."""
    if isinstance(container, dict):
        container[rng.choice(_keys())] = deepcopy(container[key])
    else:
        container.insert(key, deepcopy(container[key]))


def _exchange(rng: random.Random, container: Any, key: Any) -> None:
    """The value of another key of the same object or list."""
    other = rng.choice(list(container)) if isinstance(container, dict) else rng.randrange(len(container))
    container[key] = deepcopy(container[other])


def _scale(rng: random.Random, container: Any, key: Any) -> None:
    value = container[key]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        container[key] = value * rng.choice((-1, 0, 1e-9, 1e-3, 0.5, 1e3, 1e6, 1e9, 1e15))
    else:
        container[key] = [value] if rng.random() < 0.5 else str(value)[:100]


def _other_list(rng: random.Random, container: Any, key: Any) -> None:
    """A list shortened, lengthened or shuffled; anything else goes into a list."""
    value = container[key]
    if not isinstance(value, list) or not value:
        container[key] = [value]
    elif rng.random() < 0.4:
        del value[rng.randrange(len(value)) :]
    elif rng.random() < 0.5:
        value.extend(deepcopy(value[: rng.randint(1, 5)]))
    else:
        rng.shuffle(value)


_CHANGES: tuple[Callable[[random.Random, Any, Any], None], ...] = (_replace, _replace, _drop, _double, _exchange, _scale, _other_list)


def _other_number(rng: random.Random, data: bytes) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    match = rng.choice(found)
    return data[: match.start()] + rng.choice(_NUMBERS) + data[match.end() :]


def _other_lines(rng: random.Random, data: bytes) -> bytes:
    """A line dropped, doubled, moved, or put in from any format's file."""
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    act = rng.randrange(5)
    if act == 0:
        del lines[place]
    elif act == 1:
        lines.insert(rng.randrange(len(lines) + 1), lines[place])
    elif act == 2:
        lines.insert(rng.randrange(len(lines)), lines.pop(place))
    elif act == 3:
        foreign = rng.choice(files_of(rng.choice(FORMATS))).split(b"\n")
        lines.insert(place, rng.choice(foreign))
    else:
        lines[place] = lines[place][: rng.randint(0, len(lines[place]))]
    return b"\n".join(lines)


def _other_cells(rng: random.Random, data: bytes) -> bytes:
    """A cell of a table taken out, or a separator too many."""
    found = list(_SEPARATOR.finditer(data))
    if not found:
        return data
    match = rng.choice(found)
    if rng.random() < 0.5:
        return data[: match.start()] + match.group() + data[match.start() :]
    return data[: match.start()] + data[match.end() :]


def _other_bytes(rng: random.Random, data: bytes) -> bytes:
    """A stretch cut, repeated or filled with something else."""
    start = rng.randint(0, len(data))
    end = min(len(data), start + rng.choice((0, 1, 1, 4, 30, 400)))
    filling = rng.choice((b"", rng.choice(_SNIPPETS), rng.choice(_SNIPPETS), rng.randbytes(rng.randint(1, 8)), data[start:end] * 2))
    return data[:start] + filling + data[end:]


def _cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randint(0, len(data))]


def _encoded(rng: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32", "latin-1", "cp1252")), "replace")


def _mixed(rng: random.Random, data: bytes) -> bytes:
    """The file before or behind one of any format."""
    other = rng.choice(files_of(rng.choice(FORMATS)))
    between = rng.choice((b"", b"\n", b"\n\n", b","))
    return data + between + other if rng.random() < 0.5 else other + between + data


_STEPS: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    *(_other_number, _other_number, _other_number, _other_lines, _other_lines, _other_cells, _other_bytes, _other_bytes),
    *(_cut, _encoded, _mixed),
)
