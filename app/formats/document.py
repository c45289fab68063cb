"""From the bytes of a file to what importers look at: its text, and the JSON (or YAML) values in it, whatever it is called.

Refused here, before any importer: nothing at all, archives (they come later), web pages, binary files, broken or bottomless JSON.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from app.domain.errors import ImportRefused
from app.domain.text import clean_text
from app.formats.json_places import path_at
from app.formats.json_reading import JsonProblem, Part, read_parts
from app.formats.yaml_reading import YamlProblem, looks_like_yaml, read_yaml

_ARCHIVES = (
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
)
_MARKS = (
    # The 32-bit marks begin like the 16-bit ones, so they come first.
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_WEB_PAGES = ("<!doctype html", "<html", "<head", "<body", "<?xml", "<!--")


@dataclass(frozen=True)
class Entry:
    """One JSON object that may be a result. `where` begins every path into it, like `line 3: ` or `[2].`."""

    where: str
    values: Mapping[str, object]


@dataclass(frozen=True)
class Document:
    """A file ready to be recognised.

    `parts` are its JSON values (none when it is plain text), or the same kind of values from the `language` YAML; `broken` says why neither
    could be read (`ends_early`: as it is cut off), `cut` what was left out at the end of a file that ends too early.
    """

    name: str
    text: str
    parts: tuple[Part, ...] = ()
    warnings: tuple[str, ...] = ()
    broken: str | None = None
    ends_early: bool = False
    cut: str | None = None
    language: str = "JSON"

    @property
    def is_json(self) -> bool:
        """Whether importers of JSON have something to look at."""
        return bool(self.parts)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The objects of the file in order: its one object, the elements of its list, or the objects of its lines."""
        return tuple(Entry(_where(part, index), value) for part, index, value in self._values() if isinstance(value, dict))

    @cached_property
    def stray(self) -> str | None:
        """Names the first value beside the objects, None when there are only objects."""
        for part, index, value in self._values():
            if not isinstance(value, dict):
                return f"{_where(part, index).rstrip('.: ') or 'the file'} is {_kind(value)}, not an object"
        return None

    @property
    def is_empty(self) -> bool:
        """Whether the JSON holds nothing but empty lists and objects."""
        return not any(value or value == 0 for _, _, value in self._values())

    def _values(self) -> Iterator[tuple[Part, int | None, object]]:
        for part in self.parts:
            if isinstance(part.value, list):
                yield from ((part, index, item) for index, item in enumerate(part.value))
            else:
                yield part, None, part.value


def _where(part: Part, index: int | None) -> str:
    return part.where if index is None else f"{part.where}[{index}]."


def archive_kind(data: bytes) -> str | None:
    """The kind of archive or compressed file that `data` is, by its first bytes; None when it is none."""
    for magic, kind in _ARCHIVES:
        if data.startswith(magic):
            return kind
    return "tar" if data[257:262] == b"ustar" else None


def read_document(name: str, data: bytes) -> Document:
    """Decode a file and read the JSON or YAML in it. Raises ImportRefused with a sentence for the person who sent it."""
    if (kind := archive_kind(data)) is not None:
        raise ImportRefused(f"This is a {kind} archive, which is not unpacked yet: unpack it and send the result files inside.")
    text, warnings = _decode(data)
    stripped = text.strip()
    if not stripped:
        raise ImportRefused("The file is empty: there are no runs in it.")
    start = stripped[:200].lower()
    if start.startswith(_WEB_PAGES):
        raise ImportRefused("This is HTML, a web page and not a result file: it may be an error or sign-in page saved in its place.")
    document = Document(clean_text(name), text, warnings=tuple(warnings))
    if start[0] in "{[":
        return _with_json(document, len(data))
    return _with_yaml(document) if looks_like_yaml(text) else document


def _with_json(document: Document, size: int) -> Document:
    try:
        read = read_parts(document.text)
    except JsonProblem as problem:
        return Document(
            document.name, document.text, warnings=document.warnings, broken=_explain(document.text, problem, size), ends_early=problem.cut
        )
    noted = (*document.warnings, *read.warnings, *((read.cut,) if read.cut else ()))
    full = Document(document.name, document.text, read.parts, noted, cut=read.cut)
    if full.is_empty:
        raise ImportRefused("The file holds only an empty list or object: there are no runs in it.")
    return full


def _with_yaml(document: Document) -> Document:
    """The document with the values of its YAML; as it is where that is none, or has no list or object in it, as a log has not."""
    try:
        read = read_yaml(document.text)
    except YamlProblem as problem:
        where = "" if problem.line is None else f"line {problem.line}: "
        broken = f"The text is no result of a tool that is read here, and as YAML it cannot be read ({where}{problem.what})."
        return replace(document, broken=broken)
    if not any(_has_structure(part.value) for part in read.parts):
        return document
    cut = () if document.text.endswith("\n") else ("The YAML does not end with a line end: it may be cut off, which YAML does not tell.",)
    return replace(document, parts=read.parts, language="YAML", warnings=(*document.warnings, *read.warnings, *cut))


def _has_structure(value: object) -> bool:
    return isinstance(value, dict) and any(isinstance(child, (list, dict)) for child in value.values())


def _explain(text: str, problem: JsonProblem, size: int) -> str:
    path = path_at(text, len(text) if problem.cut else problem.offset)
    inside = f", inside {path}" if path else ""
    if problem.cut:
        return f"The JSON ends at byte {size}{inside}: the file is cut off. Send the whole file."
    line = text.count("\n", 0, problem.offset) + 1
    return f"This is not JSON (line {line}{inside}: {problem.what})."


def _decode(data: bytes) -> tuple[str, list[str]]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            text = data.decode(encoding, errors="replace")
            return text, [f"Read as {encoding.removesuffix('-sig').upper()} by its byte-order mark."]
    if (unmarked := _unmarked_utf16(data)) is not None:
        return data.decode(unmarked, errors="replace"), [f"Read as {unmarked.upper()}: every other byte is zero."]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _decode_damaged(data, error.start)
    if text.count("\0") > 8 and data.count(b"\0") * 50 > len(data):
        raise ImportRefused("This is a binary file, not text: send the JSON, CSV or log that the benchmark wrote.")
    return text, []


def _unmarked_utf16(data: bytes) -> str | None:
    head = data[:256]
    half = len(head) // 2
    if half < 4:
        return None
    if head[1::2].count(0) >= half * 0.9 and not head[0::2].count(0):
        return "utf-16-le"
    if head[0::2].count(0) >= half * 0.9 and not head[1::2].count(0):
        return "utf-16-be"
    return None


def _decode_damaged(data: bytes, first: int) -> tuple[str, list[str]]:
    """Text with bytes that are no UTF-8: an old 8-bit encoding when nothing in it is UTF-8 beyond ASCII, else UTF-8 with marks."""
    if data.count(b"\0") > 8:
        raise ImportRefused("This is a binary file, not text: send the JSON, CSV or log that the benchmark wrote.")
    text = data.decode("utf-8", errors="replace")
    if all(char == "\ufffd" or char.isascii() for char in text):
        return data.decode("cp1252", errors="replace"), [f"Read as Windows-1252 (Latin-1): byte {first} is not UTF-8."]
    return text, [f"{text.count(chr(0xFFFD))} places are not UTF-8 (the first at byte {first}) and show as “\ufffd”."]


def _kind(value: object) -> str:
    names = {str: "text", list: "a list", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
