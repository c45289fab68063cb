"""JSON text from anybody's file: one document, one a line, or several one after another, with limits and without surprises.

NaN and Infinity are let through as floats (tools write them); the gate in `record` keeps them out of a run. What is refused here:
nesting beyond DEEPEST, numbers no computer holds, and a key that stands twice in one object with different figures.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pydantic_core import from_json

from app.domain.errors import ImportRefused
from app.domain.text import clean_text
from app.formats.json_places import DEEPEST, path_at, repeated_at

_PLACES_TOLD = 3
_NESTING: set[type] = {dict, list}
_KEY_END = re.compile(r'"\s*:')
_SPACE = re.compile(r"\s*")
_HUGE_NUMBER = re.compile(r"\d{4301}")
# What may be left of a word or number when a file ends in its middle.
_CUT_TAIL = re.compile(r"-?(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|N|Na|I|In|Inf|Infi|Infin|Infini|Infinit|[.eE][+-]?|)\Z")


class JsonProblem(Exception):
    """Text that is not JSON: what is wrong, at which character, and whether the text simply ends too early."""

    def __init__(self, what: str, offset: int, cut: bool) -> None:
        super().__init__(what)
        self.what = what
        self.offset = offset
        self.cut = cut


@dataclass(frozen=True)
class Part:
    """One JSON value of a file. `where` begins every path into it: empty for the only one, else like `line 3: `."""

    where: str
    value: object


@dataclass(frozen=True)
class Parts:
    """The JSON values of a file, and what was odd about reading them. `cut` says which value at the end was cut off and is left out."""

    parts: tuple[Part, ...]
    warnings: tuple[str, ...]
    cut: str | None = None


@dataclass
class _Duplicates:
    """Keys that stand twice in one object, gathered while reading."""

    text: str
    first_line: int = 1
    notes: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def pairs(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        result: dict[str, object] = {}
        for key, value in pairs:
            if key in result:
                self._seen_twice(key, result[key], value)
            result[key] = value
        return result

    @property
    def warnings(self) -> list[str]:
        """The first of them one by one, how many more there are."""
        more = self.seen.total() - len(self.notes)
        return [*self.notes, *([f"{more} more keys stand twice in one object."] if more else [])]

    def _seen_twice(self, key: str, first: object, second: object) -> None:
        name = clean_text(key, 60)
        self.seen[name] += 1
        figures_differ = first != second and (first == first or second == second) and (is_figure(first) or is_figure(second))
        if not figures_differ and len(self.notes) == _PLACES_TOLD:
            # Finding a place reads the whole text again.
            return
        place = repeated_at(self.text, key, self.seen[name], self.first_line)
        if figures_differ:
            raise ImportRefused(
                f"The key “{name}” stands twice in one object{place} with different values: take one of them out of the file."
            )
        same = first == second or (first != first and second != second)
        what = ", with the same value." if same else "; the last one is used."
        self.notes.append(f"The key “{name}” stands twice in one object{place}{what}")


def is_figure(value: object) -> bool:
    """Whether a value holds figures, so that two different ones under one key cannot both be meant."""
    return isinstance(value, (int, float, list, dict)) and not isinstance(value, bool)


def read_parts(text: str) -> Parts:
    """Every JSON value in `text`. Raises JsonProblem when it is not JSON, ImportRefused when it is and cannot be used."""
    try:
        value, warnings = _read_value(text)
    except JsonProblem as problem:
        whole = problem
    else:
        return Parts((Part("", value),), tuple(warnings))
    return _read_lines(text) or _read_one_after_another(text, whole)


def _read_value(text: str, first_line: int = 1) -> tuple[object, list[str]]:
    try:
        value = from_json(text)
    except ValueError:
        # The quick reader declines lone surrogates, which are fine here, and does not say where an error is.
        value, warnings = _read_carefully(text, first_line)
        _check_depth(value)
        return value, warnings
    if _has_spare_keys(text, _check_depth(value)):
        return _read_carefully(text, first_line)
    return value, []


def _read_carefully(text: str, first_line: int) -> tuple[object, list[str]]:
    duplicates = _Duplicates(text, first_line)
    with _explained(text):
        return json.loads(text, object_pairs_hook=duplicates.pairs), duplicates.warnings


@contextmanager
def _explained(text: str) -> Iterator[None]:
    """What the reader of `text` raises, as JsonProblem or ImportRefused."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise _problem(text, error) from error
    except RecursionError as error:
        raise ImportRefused(_too_deep()) from error
    except ValueError as error:
        raise ImportRefused(_huge_number(text)) from error


def _problem(text: str, error: json.JSONDecodeError) -> JsonProblem:
    tail = text[error.pos : error.pos + 40].strip()
    cut = error.msg.startswith("Unterminated string") or (bool(_CUT_TAIL.match(tail)) and error.pos >= len(text.rstrip()) - len(tail))
    if error.msg.startswith("Invalid \\") and error.pos >= len(text.rstrip()) - 6:
        cut = True
    return JsonProblem(error.msg, error.pos, cut)


def _too_deep() -> str:
    return f"The JSON is nested more than {DEEPEST} levels deep: no result file of a benchmark is."


def _huge_number(text: str) -> str:
    match = _HUGE_NUMBER.search(text)
    where = path_at(text, match.start()) if match else ""
    return f"{where or 'The file'} holds a number of more than 4300 digits: no count or time is that large."


def _check_depth(value: object, deepest: int = DEEPEST) -> int:
    """The number of keys in `value`. Raises ImportRefused when it is nested deeper than that."""
    keys = 0
    level: list[object] = [value]
    depth = 0
    while level:
        depth += 1
        if depth > deepest + 1:
            raise ImportRefused(_too_deep())
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                keys += len(item)
                below.extend(_nested(item.values()))
            elif isinstance(item, list):
                below.extend(_nested(item))
        level = below
    return keys


def _nested(values: Collection[object]) -> Iterable[object]:
    """The objects and lists among `values`. Long lists are of one kind, which their types tell quicker than a look at each."""
    kinds = set(map(type, values))
    if not kinds & _NESTING:
        return ()
    return values if kinds <= _NESTING else (value for value in values if type(value) in _NESTING)


def _read_lines(text: str) -> Parts | None:
    """One JSON value a line, or None where the first line is none. A last line that is cut off is left out with a warning."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if len(lines) < 2:
        return None
    if (sound := _read_lines_at_once(lines)) is not None:
        return sound
    parts: list[Part] = []
    warnings: list[str] = []
    cut = None
    for index, (number, line) in enumerate(lines):
        try:
            value, odd = _read_value(line, number)
        except JsonProblem as problem:
            if not parts:
                return None
            if index + 1 == len(lines) and problem.cut:
                cut = f"Line {number} is cut off and left out; {_before(len(parts), 'line')} read."
                break
            return _several_or_refuse(text, lines[index:], problem)
        warnings.extend(odd)
        parts.append(Part(f"line {number}: ", value))
    return Parts(tuple(parts), tuple(warnings), cut)


def _before(count: int, what: str) -> str:
    return f"the {what} before it is" if count == 1 else f"the {count} {what}s before it are"


def _read_lines_at_once(lines: list[tuple[int, str]]) -> Parts | None:
    """Lines that are sound read as one list, many times faster than each by itself; None when anything is odd about them."""
    stripped = [line.strip() for _, line in lines]
    if not all(line[0] in "{[" and line[-1] in "}]" for line in stripped):
        return None
    joined = "[" + ",".join(stripped) + "]"
    try:
        values = from_json(joined)
    except ValueError:
        return None
    if len(values) != len(lines) or _has_spare_keys(joined, _check_depth(values, DEEPEST + 1)):
        return None
    return Parts(tuple(Part(f"line {number}: ", value) for (number, _), value in zip(lines, values, strict=True)), ())


def _has_spare_keys(text: str, keys: int) -> bool:
    # Every key ends in `":`. More of those than keys means a string that looks like one, or a key that stands twice.
    return sum(1 for _ in _KEY_END.finditer(text)) > keys


def _several_or_refuse(text: str, rest: list[tuple[int, str]], problem: JsonProblem) -> Parts:
    """A line that is not JSON may begin a document over several lines; not when the line after it is an object by itself."""
    number = rest[0][0]
    refusal = ImportRefused(f"Line {number} is not JSON ({problem.what}): mend or remove it.")
    if len(rest) > 1 and _is_object(rest[1][1]):
        raise refusal from problem
    try:
        return _read_one_after_another(text, problem)
    except JsonProblem as error:
        raise refusal from error


def _is_object(line: str) -> bool:
    try:
        return isinstance(_read_value(line)[0], dict)
    except JsonProblem:
        return False


def _read_one_after_another(text: str, whole: JsonProblem) -> Parts:
    """Documents written one behind the other, as appended results are. Raises `whole` when not even the first can be read."""
    parts: list[Part] = []
    warnings: list[str] = []
    cut = None
    try:
        for number, (value, odd) in enumerate(_documents(text), 1):
            parts.append(Part(f"document {number}: ", value))
            warnings.extend(odd)
    except JsonProblem as problem:
        if not parts:
            raise whole from problem
        line = text.count("\n", 0, problem.offset) + 1
        if not problem.cut:
            raise JsonProblem(f"after {len(parts)} documents, line {line}: {problem.what}", problem.offset, cut=False) from problem
        cut = f"Document {len(parts) + 1} is cut off (line {line}) and left out; {_before(len(parts), 'document')} read."
    return Parts(tuple(parts), tuple(warnings), cut)


def _documents(text: str) -> Iterator[tuple[object, list[str]]]:
    position = _next(text, 0)
    while position < len(text):
        duplicates = _Duplicates(text)
        decoder = json.JSONDecoder(object_pairs_hook=duplicates.pairs)
        with _explained(text):
            value, position = decoder.raw_decode(text, position)
        _check_depth(value)
        yield value, duplicates.warnings
        position = _next(text, position)


def _next(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position
