"""What is written: one JSON object a line on standard output, without values of requests and without keys in it.

`redactor` is the one filter between anything that is said (by the server, the worker, a measuring process) and whoever reads it.
"""

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

import structlog

_HIDDEN = "…"
_SHORTEST_SECRET = 6
_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',]+"), rf"\1 {_HIDDEN}"),
    (re.compile(r"\b(sk-|hf_|phw_)[A-Za-z0-9_\-]{6,}"), rf"\1{_HIDDEN}"),
    (
        re.compile(r"(?i)\b((?:api|access|secret)[_-]?(?:key|token)|password|passwd|authorization)(\"?\s*[:=]\s*\"?)[^\s\"',&]+"),
        rf"\1\2{_HIDDEN}",
    ),
    (re.compile(r"(\b[a-z][a-z0-9+.\-]*://)[^/\s@\"']+@"), rf"\1{_HIDDEN}@"),
    (re.compile(r"(\bhttps?://[^\s?\"'<>]+)\?[^\s\"'<>]*"), rf"\1?{_HIDDEN}"),
)


class Redactor:
    """Takes keys, tokens, passwords and query strings out of texts: those that look like it, and those it was told of."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def learn(self, secret: str) -> None:
        """From now on this text is taken out wherever it stands."""
        if len(secret) >= _SHORTEST_SECRET:
            self._known.add(secret)

    def text(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._known:
            text = text.replace(secret, _HIDDEN)
        for pattern, instead in _PATTERNS:
            text = pattern.sub(instead, text)
        return text

    def value(self, value: Any) -> Any:
        """Plain data without secrets in its texts."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        return value


redactor = Redactor()


def _redact(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {key: redactor.value(value) for key, value in event.items()}


def configure_logging() -> None:
    """Use JSON lines with a UTC time; an exception is its traceback as text, never with the values of local names."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redact,
            structlog.processors.JSONRenderer(),
        ],
        cache_logger_on_first_use=True,
    )
