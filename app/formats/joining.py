"""Files of one upload that mean something only together: they are brought into one file before anything reads or stores them.

The file that is kept holds the text of each part in UTF-8, one behind the other in the order that their importer gives, and their names:
so the same parts are the same bytes again however they were sent, what was uploaded is in the original, and reading it again needs
nothing else.
"""

from collections.abc import Sequence

from app.domain.errors import ImportRefused
from app.formats.document import Document, archive_kind, read_document
from app.formats.importer import Importer

_JSON = (b"{", b"[")
# Objects are whole by themselves, but for files that name the one benchmark they are of.
_NAMES_ITS_BENCHMARK = b'"benchmark_id"'


def joined_parts(files: Sequence[tuple[str, bytes]], importers: Sequence[Importer]) -> list[tuple[str, bytes]]:
    """`files` as (name, bytes), the parts of each result as one file in the place of the first of them."""
    if len(files) < 2:
        return list(files)
    parts = _parts(files, [importer for importer in importers if importer.part_of is not None])
    together: list[tuple[str, bytes]] = []
    for index, file in enumerate(files):
        group = next((group for group in parts if index in group), None)
        if group is None or len(group) == 1:
            together.append(file)
        elif index == min(group):
            together.append(_one_file([document for document, _ in sorted(group.values(), key=lambda part: (part[1], part[0].text))]))
    return together


def _parts(files: Sequence[tuple[str, bytes]], importers: Sequence[Importer]) -> list[dict[int, tuple[Document, float]]]:
    """For each result the files that are parts of it, by index, with their places. Twins in one place are no parts of each other."""
    found: dict[tuple[str, str], dict[int, tuple[Document, float]]] = {}
    for index, (name, data) in enumerate(files):
        document = _document(name, data)
        for importer in importers:
            part = importer.part_of(document) if document is not None and importer.part_of is not None else None
            if document is not None and part is not None:
                found.setdefault((importer.id, part.result), {})[index] = (document, part.place)
                break
    return [group for group in found.values() if len({place for _, place in group.values()}) == len(group)]


def _document(name: str, data: bytes) -> Document | None:
    """The file as it may be a part; None for what is whole by itself, and for what is refused anyway."""
    if archive_kind(data) is not None or (data.lstrip()[:1] in _JSON and _NAMES_ITS_BENCHMARK not in data):
        return None
    try:
        return read_document(name, data)
    except ImportRefused:
        return None


def _one_file(parts: Sequence[Document]) -> tuple[str, bytes]:
    texts = (part.text if part.text.endswith("\n") else part.text + "\n" for part in parts)
    return " + ".join(part.name for part in parts), "".join(texts).encode("utf-8", errors="replace")
