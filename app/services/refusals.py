"""Files that gave no run, in the one shape in which API and commands tell of them."""

from collections.abc import Sequence
from typing import Any

from app.domain.run import Flag
from app.services.summary import flags_json


def refusal_json(file: str, reason: str, tried: Sequence[tuple[str, str]], flag: str | None) -> dict[str, Any]:
    """The file, why it was refused, what each importer said, and in `flags` what is odd about the file where a word says it."""
    flags = (Flag(flag, reason),) if flag else ()
    said = [{"format": format_id, "reason": why} for format_id, why in tried]
    return {"file": file, "reason": reason, "tried": said, "flags": flags_json(flags)}
