"""The query by which a series is addressed, on a page and over REST: written and read."""

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from app.domain.errors import InvalidRequest
from app.domain.series import Series
from app.store.records import DEFAULT_PROJECT

_DEFAULTS: Mapping[str, Any] = {"project": DEFAULT_PROJECT, "context_depth_tokens": 0}
_NAMES = ("model", "hardware", "engine")
_COUNTS = ("concurrency", "context_depth_tokens")
_ANCHORS = ("request_rate_per_s", "prompt_tokens", "output_tokens")
_LARGEST = 10**12


def series_query(series: Series) -> dict[str, str]:
    """The query of a series: what is not known and what is usual is left out."""
    values = {field.name: getattr(series, field.name) for field in fields(series)}
    shown = {key: value for key, value in values.items() if value is not None and value != _DEFAULTS.get(key)}
    # Enough digits to find the anchor's own runs again, whose lengths lie within 5 % of it.
    return {key: f"{value:.10g}" if isinstance(value, float) else str(value) for key, value in shown.items()}


def read_series(query: Mapping[str, str]) -> Series:
    """The series that a page's address names. Raises InvalidRequest for a name that is missing or a number that is none."""
    for name in _NAMES:
        if not query.get(name):
            raise InvalidRequest(name, f"A series needs its {name} in the address; the list of series has complete ones.")
    values: dict[str, Any] = {key: query.get(key) or None for key in ("load_mode", "measured_at")}
    for key in _COUNTS:
        number = _number(key, query.get(key))
        values[key] = _DEFAULTS.get(key) if number is None else int(number)
    values |= {key: _number(key, query.get(key)) for key in _ANCHORS}
    names: dict[str, Any] = {name: query[name][:200] for name in _NAMES}
    return Series(project=query.get("project") or DEFAULT_PROJECT, **names, **values)


def _number(key: str, text: str | None) -> float | None:
    if not text:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= _LARGEST:
        raise InvalidRequest(key, f"{key} must be a number from 0 to {_LARGEST:,}.")
    return number
