"""What an importer is: an id, a title, a way to tell whether a file is its own, and a way to read it."""

from collections.abc import Callable
from dataclasses import dataclass

from app.domain.run import Run
from app.formats.document import Document


@dataclass(frozen=True)
class Importer:
    """One result format.

    `matches` answers None when the file is this format, else the reason why not; it looks at content, never at the file's name.
    `parse` gives one run for each operating point; it raises ImportRefused with a sentence when there is none to be had.
    """

    id: str
    title: str
    matches: Callable[[Document], str | None]
    parse: Callable[[Document], list[Run]]


@dataclass(frozen=True)
class ParsedFile:
    """What a file gave: its format, its runs in file order, and what was odd about the file as a whole."""

    format: str
    runs: tuple[Run, ...]
    warnings: tuple[str, ...] = ()


NOT_JSON = "not JSON"


def json_decline(document: Document) -> str | None:
    """Why a document is nothing for an importer of JSON objects, None when it may be."""
    if not document.is_json:
        return NOT_JSON
    return document.stray
