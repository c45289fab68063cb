"""YAML text from anybody's file, read event by event with limits: nothing is built but lists, objects, words and figures.

PyYAML's parser (libyaml where it is there) finds the structure; what it would construct is not asked for. Tags are passed over, so that
the Python objects which tools of 2025 dumped come out as plain values. Plain words are read by the core schema of YAML 1.2: dates and
"yes" stay words. References to an earlier part (aliases) count what they stand for, so that a few lines cannot unfold into gigabytes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import yaml

from app.domain.errors import ImportRefused
from app.domain.text import clean_text
from app.formats.json_places import DEEPEST
from app.formats.json_reading import Part, Parts, is_figure

MOST_VALUES = 2_000_000
_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FIRST_KEY = re.compile(r"[A-Za-z_][\w-]{0,80}:(?:[ \t]|\Z)")
_LINES_TRIED = 50
_NOTES_TOLD = 3
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]{1,4300}\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]{1,400}|[0-9]{1,400}(?:\.[0-9]{0,400})?)(?:[eE][-+]?[0-9]{1,6})?\Z")
_SPECIAL = {".inf": float("inf"), "+.inf": float("inf"), "-.inf": float("-inf"), ".nan": float("nan")}
_STRING_TAG = "tag:yaml.org,2002:str"


class YamlProblem(Exception):
    """Text that is not YAML: what is wrong and on which line."""

    def __init__(self, what: str, line: int | None) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


def looks_like_yaml(text: str) -> bool:
    """Whether the first line that says something begins with a key, as the results of tools do."""
    for number, line in enumerate(text[:20_000].split("\n")):
        words = line.rstrip("\r")
        if number >= _LINES_TRIED:
            return False
        if words.strip() and not words.lstrip().startswith("#") and not words.startswith(("---", "%YAML")):
            return _FIRST_KEY.match(words) is not None
    return False


def read_yaml(text: str) -> Parts:
    """The documents of a YAML text. Raises YamlProblem when it is none, ImportRefused when it is and cannot be used."""
    try:
        return _documents(yaml.parse(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        if "nesting" in str(getattr(error, "problem", "")):
            # libyaml has a limit of its own, which it meets while it looks ahead.
            raise ImportRefused(_too_deep()) from error
        mark = getattr(error, "problem_mark", None)
        what = clean_text(str(getattr(error, "problem", None) or "it cannot be parsed"), 120)
        raise YamlProblem(what, None if mark is None else mark.line + 1) from error
    except UnicodeEncodeError as error:
        raise YamlProblem("it holds characters that no text can have", None) from error


@dataclass
class _Level:
    """A list or an object that is being filled, and how many values it holds with all that is inside."""

    value: list[object] | dict[str, object]
    anchor: str | None
    size: int = 1
    depth: int = 0
    key: str | None = None


@dataclass(frozen=True)
class _Anchored:
    """A part that may be referred to again: its value, how many values that unfolds to, and how deep it goes."""

    value: object
    size: int
    depth: int


@dataclass
class _Builder:
    """Takes events one by one; `values` are the finished documents."""

    values: list[object] = field(default_factory=list)
    levels: list[_Level] = field(default_factory=list)
    anchors: dict[str, _Anchored] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    repeated: int = 0
    count: int = 0

    def take(self, event: object) -> None:
        """Note one event of the parser."""
        if isinstance(event, yaml.ScalarEvent):
            self._add(_scalar(event), 1, 0, event.anchor, event)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            if len(self.levels) >= DEEPEST:
                raise ImportRefused(_too_deep())
            self.levels.append(_Level({} if isinstance(event, yaml.MappingStartEvent) else [], event.anchor))
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            level = self.levels.pop()
            self._add(level.value, level.size, level.depth + 1, level.anchor, event)
        elif isinstance(event, yaml.AliasEvent):
            known = self.anchors.get(event.anchor)
            if known is None:
                raise ImportRefused(f"{_line(event)} refers to “{clean_text(event.anchor, 40)}”, which is not complete there.")
            self._add(known.value, known.size, known.depth, None, event)
        elif isinstance(event, yaml.DocumentStartEvent):
            self.anchors = {}

    def _add(self, value: object, size: int, depth: int, anchor: str | None, event: yaml.Event) -> None:
        """Put a finished value where it belongs."""
        if anchor is not None:
            self.anchors[anchor] = _Anchored(value, size, depth)
        self.count += size if isinstance(event, yaml.AliasEvent) else 1
        if self.count > MOST_VALUES:
            raise ImportRefused(f"The YAML unfolds to more than {MOST_VALUES} values ({_line(event)}): no result file does. Send the JSON.")
        if not self.levels:
            self.values.append(value)
            return
        level = self.levels[-1]
        level.size += size
        level.depth = max(level.depth, depth)
        if len(self.levels) + depth > DEEPEST:
            raise ImportRefused(_too_deep())
        if isinstance(level.value, list):
            level.value.append(value)
        elif level.key is None:
            level.key = _key(value, event)
        else:
            self._set(level.value, level.key, value, event)
            level.key = None

    def _set(self, place: dict[str, object], key: str, value: object, event: yaml.Event) -> None:
        if key in place:
            self._seen_twice(key, place[key], value, event)
        place[key] = value

    def _seen_twice(self, key: str, first: object, second: object, event: yaml.Event) -> None:
        """The rule for JSON: figures that differ are refused, anything else is said."""
        name = f"The key “{clean_text(key, 60)}” stands twice in one object (line {_number(event)})"
        same = first == second or (first != first and second != second)
        if not same and (is_figure(first) or is_figure(second)):
            raise ImportRefused(f"{name} with different values: take one of them out of the file.")
        self.repeated += 1
        if len(self.notes) < _NOTES_TOLD:
            self.notes.append(f"{name}{', with the same value.' if same else '; the last one is used.'}")

    def warnings(self) -> tuple[str, ...]:
        """What was odd."""
        more = self.repeated - len(self.notes)
        return (*self.notes, *((f"{more} more keys stand twice in one object.",) if more else ()))


def _documents(events: Iterator[object]) -> Parts:
    builder = _Builder()
    for event in events:
        builder.take(event)
    values = builder.values
    parts = tuple(Part(f"document {number}: " if len(values) > 1 else "", value) for number, value in enumerate(values, 1))
    return Parts(parts, builder.warnings())


def _key(value: object, event: yaml.Event) -> str:
    if isinstance(value, (list, dict)):
        raise ImportRefused(f"{_line(event)} has a list or an object as a key: no result file has.")
    return "" if value is None else value if isinstance(value, str) else str(value)


def _scalar(event: yaml.ScalarEvent) -> object:
    """A plain word as the value it stands for; a quoted one, or one with a tag of its own, as a word."""
    word: str = event.value
    if event.style or event.tag == _STRING_TAG:
        return word
    if word in _NULL:
        return None
    if word in _BOOL:
        return _BOOL[word]
    if _INTEGER.match(word):
        return int(word)
    if _FLOAT.match(word):
        return float(word)
    if word.isdecimal() and len(word) > 4300:
        raise ImportRefused(f"{_line(event)} holds a number of more than 4300 digits: no count or time is that large.")
    return _SPECIAL.get(word.lower(), word)


def _number(event: yaml.Event) -> int:
    return int(event.start_mark.line) + 1


def _line(event: yaml.Event) -> str:
    return f"line {_number(event)}"


def _too_deep() -> str:
    return f"The YAML is nested more than {DEEPEST} levels deep: no result file of a benchmark is."
