"""JSON that every reader takes: no NaN, no Infinity."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any


def strict_json(value: Any, ascii_only: bool = False) -> str:
    """`value` (plain data) as compact JSON text; a number that is not finite is null, since it is not known."""
    try:
        return _dumps(value, ascii_only)
    except ValueError:
        return _dumps(_finite(value), ascii_only)


def _dumps(value: Any, ascii_only: bool) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=ascii_only, separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
