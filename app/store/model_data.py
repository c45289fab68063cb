"""A stored model as the architecture of today: what earlier versions kept is brought into its present shape while it is read."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from app.domain.architecture import ModelArchitecture, dense
from app.domain.plain import from_plain

_FLAT = frozenset(signature(dense).parameters)


def read_architecture(data: Mapping[str, Any]) -> ModelArchitecture:
    """The architecture in `data`. Versions that knew dense models only kept their sizes flat, without groups of layers."""
    if "groups" in data:
        return from_plain(ModelArchitecture, data)
    flat: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name in _FLAT}
    return dense(**flat)
