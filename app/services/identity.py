"""What a person says about a run, cleaned: forms, JSON and the command line all come through here."""

from collections.abc import Mapping
from typing import Any

from app.domain.dtypes import number_format
from app.domain.errors import InvalidRequest
from app.domain.identity import COUNTS, LABEL, TEXTS, Word
from app.domain.text import clean_text

_FORMATS = ("weight_dtype", "kv_dtype")
_MOST = 4096


def said(values: Mapping[str, Any]) -> dict[str, Word | None]:
    """The words among `values`, cleaned; None where a key is there without one. Raises InvalidRequest naming what cannot be used."""
    found: dict[str, Word | None] = {}
    for key in (*TEXTS, LABEL):
        if key in values:
            text = clean_text(str(values[key] or ""))
            found[key] = (number_format(text, key).key if key in _FORMATS else text) if text else None
    for key in COUNTS:
        if key in values:
            found[key] = None if values[key] in (None, "") else whole_number(values[key], key)
    return found


def whole_number(value: Any, key: str) -> int:
    """A count of devices or a degree, 1 to 4096. Raises InvalidRequest."""
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if not 1 <= number <= _MOST:
        raise InvalidRequest(key, f"“{key}” must be a whole number from 1 to {_MOST}.")
    return number
