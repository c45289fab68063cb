"""A frozen dataclass of the domain as plain JSON data, and back.

Reading back takes what an older or newer version wrote: a key that is not known is left out, a missing one gets the field's default.
"""

import dataclasses
import types
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """Dataclasses and mappings as dicts, tuples as lists, everything else as it is."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[T], data: Mapping[str, Any]) -> T:
    """The dataclass `kind` from what `to_plain` gave. Raises TypeError when a field without default is missing."""
    hints = _field_types(kind)  # type: ignore[arg-type]
    return kind(**{name: _revive(hints[name], item) for name, item in data.items() if name in hints})


@lru_cache
def _field_types(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _revive(hint: Any, value: Any) -> Any:
    """The value as its annotation says: nested dataclasses, tuples and mappings of them; None stays None."""
    if value is None:
        return None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _revive(next(part for part in arguments if part is not type(None)), value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return from_plain(hint, value)
    if origin is tuple:
        return tuple(_revive(part, item) for part, item in zip(_parts(arguments, len(value)), value, strict=True))
    if isinstance(value, Mapping) and len(arguments) == 2:
        return {key: _revive(arguments[1], item) for key, item in value.items()}
    return value


def _parts(arguments: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    return (arguments[0],) * size if len(arguments) == 2 and arguments[1] is Ellipsis else arguments
