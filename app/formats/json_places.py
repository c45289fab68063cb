"""Where in a JSON text something stands, for messages: the path at a character, the place of a key that an object has twice."""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from app.domain.text import clean_text

# The deepest nesting that is read; a path is not longer.
DEEPEST = 64
# A string, a finished list of figures, a mark, or commas with nothing but figures between them: long lists are passed in one step.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|\[[^\[\]{}"]*\]|[{}\[\]:]|,(?:[^\[\]{}":,]*,)*', re.DOTALL)


@dataclass
class _Level:
    """An object or list that the scan is inside of: the key or the index it stands at, and the keys it has had."""

    is_object: bool
    key: str | None = None
    index: int = 0
    keys: set[str] = field(default_factory=set)

    def step(self) -> str:
        return f".{self.key}" if self.is_object and self.key else "" if self.is_object else f"[{self.index}]"


def path_at(text: str, offset: int) -> str:
    """The JSON path at character `offset` of `text` (like `benchmarks[3].duration`), which need not be valid JSON; "" at the top."""
    last = deque(_scan(text, offset), maxlen=1)
    return _path(last[0][1]) if last else ""


def repeated_at(text: str, key: str, number: int, first_line: int = 1) -> str:
    """Where `key` stands in an object that has it already, the `number`th time in `text`: ` (line 3, [2].metrics.mean)`, "" if nowhere."""
    name = clean_text(key, 60)
    for offset, levels in _scan(text, len(text)):
        if text[offset] != ":" or levels[-1].key != name:
            continue
        number -= name in levels[-1].keys
        if not number:
            return f" (line {first_line + text.count(chr(10), 0, offset)}, {_path(levels)})"
        levels[-1].keys.add(name)
    return ""


def _scan(text: str, end: int) -> Iterator[tuple[int, list[_Level]]]:
    """The levels that each mark of JSON before `end` leaves the reader in, with the place of the mark; one list, which changes."""
    levels: list[_Level] = []
    last_string = ""
    for match in _TOKEN.finditer(text, 0, end):
        mark = match.group()
        if mark in "{[":
            levels.append(_Level(is_object=mark == "{"))
        elif mark.startswith('"'):
            last_string = mark
        elif not levels:
            continue
        elif mark in "}]":
            levels.pop()
        elif mark == ":":
            levels[-1].key = clean_text(last_string.strip('"'), 60)
        elif mark.startswith(","):
            levels[-1].index += mark.count(",")
            levels[-1].key = None
        yield match.start(), levels


def _path(levels: list[_Level]) -> str:
    return "".join(level.step() for level in levels[:DEEPEST]).lstrip(".")
