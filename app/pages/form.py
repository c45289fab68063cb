"""The prediction form: texts as a person types them in, a question out, and a message beside the field that cannot be used."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import urlencode

from app.domain.prediction import Request
from app.domain.request_rules import FRACTIONS, RATES, TRUTHS
from app.domain.text import clean_text
from app.services.predicting import FOUNDING_HARDWARE, FOUNDING_MODEL, FOUNDING_REQUEST, Question, question_of

_LARGEST = 10_000_000
_FROM_ZERO = ("cached_prefix_tokens", "draft_tokens")
_DECIMAL = re.compile(r"[0-9]{1,3}(\.[0-9]{0,12})?|\.[0-9]{1,12}", re.ASCII)
_NAMES = {"model": FOUNDING_MODEL, "hardware": FOUNDING_HARDWARE}
_WHOLE = frozenset(
    (
        *("prompt_tokens", "output_tokens", "batch", "concurrency", "cached_prefix_tokens", "tp", "pp", "ep", "dp"),
        *("requests_per_client", "draft_tokens"),
        *("prefill_replicas", "decode_replicas", "prefill_tp", "prefill_dp", "prefill_ep"),
    ),
)
_FRACTIONS = frozenset(FRACTIONS)
_TRUTHS = frozenset(TRUTHS)
_REQUESTS = "request_rate_per_s"
_RATES = frozenset((*RATES, _REQUESTS))
_TRUE = ("true", "1", "yes", "on")
_FALSE = ("false", "0", "no", "off")
_RATE = re.compile(r"[0-9]{1,15}(\.[0-9]{0,6})?(e\+?[0-9]{1,2})?", re.ASCII | re.IGNORECASE)
KEYS = (*_NAMES, _REQUESTS, *(item.name for item in fields(Request)))
DEFAULTS: Mapping[str, Any] = {**_NAMES, _REQUESTS: None, **{item.name: getattr(FOUNDING_REQUEST, item.name) for item in fields(Request)}}


@dataclass(frozen=True)
class PredictForm:
    """What stands in the fields (`shown`, texts), what it means (`question`, None when a field is wrong), and the messages by field."""

    shown: Mapping[str, str]
    question: Question | None
    errors: Mapping[str, str] = field(default_factory=dict)

    def carried(self, *fields: str) -> list[tuple[str, str]]:
        """What the address sets and the form, which asks for `fields`, does not ask: hidden fields, so that a change keeps it."""
        return [(key, value) for key, value in self.shown.items() if key not in fields and value != shown_value(DEFAULTS[key])]

    def address(self, path: str, **changes: Any) -> str:
        """`path` with this form's query, changed by `changes`; defaults are left out."""
        values = {**self.shown, **{key: shown_value(value) for key, value in changes.items()}}
        query = {key: value for key, value in values.items() if value != shown_value(DEFAULTS[key])}
        return f"{path}?{urlencode(query)}" if query else path


def shown_value(value: Any) -> str:
    """How a value stands in its field."""
    if isinstance(value, bool):
        return "true" if value else ""
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def read_form(query: Mapping[str, str]) -> PredictForm:
    """The form of a page's address. Thousands separators are taken; an empty field means its default."""
    shown: dict[str, str] = {}
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for key in KEYS:
        text = clean_text(query.get(key, ""))
        if not text:
            shown[key] = shown_value(DEFAULTS[key])
            continue
        shown[key] = text
        if key not in _WHOLE | _FRACTIONS | _RATES | _TRUTHS:
            values[key] = text
            continue
        number = _read(key, text)
        if number is None:
            errors[key] = f"{key} must be {_what(key)}."
        else:
            values[key] = number
            shown[key] = shown_value(number)
    question = None if errors else question_of({**DEFAULTS, **values})
    return PredictForm(shown, question, errors)


def _read(key: str, text: str) -> float | None:
    if key in _TRUTHS:
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None
    return fraction(text) if key in _FRACTIONS else rate(text) if key in _RATES else whole(text)


def _what(key: str) -> str:
    if key in _TRUTHS:
        return "true or false"
    if key == _REQUESTS:
        return "requests per second, such as 2.5"
    if key in _FRACTIONS:
        return "a fraction from 0 to 1, such as 0.8"
    if key in _RATES:
        return "bytes per second, such as 50e9"
    return f"a whole number from {0 if key in _FROM_ZERO else 1} to {_LARGEST:,}"


def fraction(text: str) -> float | None:
    """A number from 0 to 1; None for anything else."""
    if not _DECIMAL.fullmatch(text):
        return None
    number = float(text)
    return number if number <= 1 else None


def rate(text: str) -> float | None:
    """A rate a second above 0, with thousands separators or as 50e9; None for anything else."""
    digits = text.replace(",", "").replace("\u202f", "").replace("\u00a0", "").replace(" ", "")
    number = float(digits) if _RATE.fullmatch(digits) else 0.0
    return number if 0 < number <= 1e15 else None


def whole(text: str) -> int | None:
    """A whole number from 0 to ten million, written with or without thousands separators; None for anything else."""
    digits = text.replace(",", "").replace("\u202f", "").replace("\u00a0", "").replace(" ", "").replace("_", "")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 9:
        return None
    number = int(digits)
    return number if number <= _LARGEST else None
