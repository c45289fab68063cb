"""What the commands share: their usual options, the context they work in, the files they read, how they print."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from app.domain.errors import ImportRefused, TooLarge
from app.domain.text import clean_text
from app.services.context import Context, make_context
from app.services.startup import prepare
from app.services.strict_json import strict_json
from app.settings import UPLOAD_CEILING_BYTES, Settings, load_settings

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Files = Annotated[list[Path], typer.Argument(help="Result files.")]


def ready_context(settings: Settings | None = None) -> Context:
    """The context of a command that reads or stores: the database brought to this version's schema, the catalog loaded into it."""
    context = make_context(settings or load_settings())
    prepare(context)
    return context


def contents(files: Sequence[Path]) -> list[tuple[str, bytes]]:
    """Files under their own names. Raises ImportRefused or TooLarge for one that cannot be read."""
    return [(clean_text(path.name) or "unnamed", _bytes(path)) for path in files]


def to_store(files: Sequence[Path]) -> list[tuple[str, bytes]]:
    """Files under the names they are stored by: with the folders below this one, since those may hint at what was measured."""
    told = (path.name if path.is_absolute() or ".." in path.parts else path.as_posix() for path in files)
    return [(clean_text(name) or "unnamed", _bytes(path)) for name, path in zip(told, files, strict=True)]


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(UPLOAD_CEILING_BYTES + 1)
    except OSError as error:
        raise ImportRefused(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) > UPLOAD_CEILING_BYTES:
        limit = UPLOAD_CEILING_BYTES // 2**20
        raise TooLarge(f"{path} is larger than {limit} MiB, the most this version reads; cut it, or leave per-request arrays out.")
    return data


def print_json(value: Any) -> None:
    """One JSON object on standard output, escaped where the terminal is not UTF-8."""
    in_utf8 = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    sys.stdout.write(strict_json(value, ascii_only=not in_utf8) + "\n")


def print_report(lines: Sequence[str], warnings: Sequence[str], refused: Sequence[Mapping[str, Any]]) -> None:
    """Lines on standard output; warnings and refused files on standard error."""
    for line in lines:
        print(line)
    for message in (*warnings, *(f"{item['file']}: refused: {item['reason']}" for item in refused)):
        print(message, file=sys.stderr)
