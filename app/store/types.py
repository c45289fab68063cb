"""Column types that hold the same values on SQLite and PostgreSQL, whatever a file contained.

SQLite stores NaN as NULL without a word, PostgreSQL refuses NUL in text, neither takes a lone surrogate: each type settles its
case on the way in, so that no caller has to remember it.
"""

import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy import JSON, Double, Text
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.types import TypeDecorator

MAX_INT64 = 2**63 - 1
MAX_NAME = 200


def is_id(value: int) -> bool:
    """True when `value` can name a row: ids beyond 64 bits name nothing, and the driver would overflow on them."""
    return 1 <= value <= MAX_INT64


def storable_text(text: str) -> str:
    """The text without NUL, lone surrogates replaced by U+FFFD: what both databases store and UTF-8 can carry."""
    return text.replace("\x00", "").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def storable_name(text: str) -> str:
    """Storable text of at most MAX_NAME characters."""
    return storable_text(text)[:MAX_NAME]


def finite(value: float | None) -> float | None:
    """The value, or None where it is NaN or infinite: unknown is NULL, never a number that breaks JSON."""
    return None if value is None or not math.isfinite(value) else float(value)


def storable_json(value: Any) -> Any:
    """A copy of plain data in which every number is finite (else null) and every text storable."""
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, Mapping):
        return {storable_text(str(key)): storable_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(item) for item in value]
    return value


class CleanText(TypeDecorator[str]):
    """Text of any length that both databases accept."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Take out what a database refuses."""
        return None if value is None else storable_text(value)


class Name(TypeDecorator[str]):
    """Text that an index may hold: as CleanText, cut at MAX_NAME characters (PostgreSQL refuses index entries beyond 2,704 bytes)."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Take out what a database refuses and cut what an index cannot hold."""
        return None if value is None else storable_name(value)


class FiniteDouble(TypeDecorator[float]):
    """A double that is never NaN or infinite; those become NULL."""

    impl = Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        """Turn what is not a number into unknown."""
        return finite(value)


class FiniteJson(TypeDecorator[Any]):
    """JSON without NaN, Infinity, NUL or lone surrogates; None is SQL NULL."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        """Clean the whole tree."""
        return storable_json(value)
