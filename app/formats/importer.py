"""What an importer is: an id, a title, a way to tell whether a file is its own, and a way to read it."""

from collections.abc import Callable
from dataclasses import dataclass

from app.domain.run import Run
from app.formats.document import Document

# Counts the changes of what every importer passes through (domain/derive.py, domain/checks.py, the readers here): raise it when such a
# change gives other figures, flags or warnings, and leave the importers' own versions alone.
SHARED_VERSION = 5


@dataclass(frozen=True)
class Part:
    """A file that belongs to others of its upload: `result` names what they make together, `place` is where it stands among them."""

    result: str
    place: float


@dataclass(frozen=True)
class Importer:
    """One result format.

    `matches` answers None when the file is this format, else the reason why not; it looks at content, never at the file's name.
    `parse` gives one run for each operating point; it raises ImportRefused with a sentence when there is none to be had.
    `part_of` is there for a format whose files belong together: None for a document that is whole, or another's, else which result of one
    upload it is a part of and its place among the parts, which are then read as one file in that order.
    `version` goes up by one whenever the same file gives anything else than before: stored runs of a lower one can be read again.
    """

    id: str
    title: str
    matches: Callable[[Document], str | None]
    parse: Callable[[Document], list[Run]]
    part_of: Callable[[Document], Part | None] | None = None
    version: int = 1

    @property
    def reading_version(self) -> int:
        """The version that is stored with each run: it rises with this importer's and with what all share."""
        return self.version + SHARED_VERSION


@dataclass(frozen=True)
class ParsedFile:
    """What a file gave: its format, its runs in file order, and what was odd about the file as a whole."""

    format: str
    runs: tuple[Run, ...]
    warnings: tuple[str, ...] = ()


NOT_JSON = "not JSON"


def json_decline(document: Document, *keys: str) -> str | None:
    """Why a document is nothing for an importer of JSON objects that all have these keys, None when it may be."""
    if not document.is_json:
        return NOT_JSON
    if document.stray is not None:
        return document.stray
    for entry in document.entries:
        missing = next((key for key in keys if key not in entry.values), None)
        if missing is not None:
            return f"{entry.where}no key {missing}"
    return None
