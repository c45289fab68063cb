"""The catalog: devices, models and engines as facts, each figure with its source and label, loaded once from the TOML files here.

`load()` gives the one Catalog of a process. Look-ups are exact after normalisation (see `names`): an unknown spelling gives None,
and `suggest` lists near names for the message.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar

from app.catalog.names import CatalogFault, NameIndex, normalise_device_name, normalise_engine_name, normalise_model_name, slugify
from app.catalog.reading import ModelEntry, differing_shapes, read_device, read_engine, read_model
from app.domain.engine import EngineProfile
from app.domain.hardware import HardwareProfile

__all__ = [
    "Catalog",
    "CatalogFault",
    "ModelEntry",
    "build",
    "differing_shapes",
    "load",
    "normalise_device_name",
    "normalise_engine_name",
    "normalise_model_name",
    "slugify",
]

FOLDER = Path(__file__).parent
Kind = Literal["hardware", "model", "engine"]
Document = Mapping[str, Any]


class _Named(Protocol):
    """What every kind of entry has."""

    @property
    def slug(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def aliases(self) -> tuple[str, ...]: ...


_EntryT = TypeVar("_EntryT", bound=_Named)


@dataclass(frozen=True)
class Catalog:
    """All shipped entries by slug, in the order of the files, and the spellings that find them."""

    hardware: Mapping[str, HardwareProfile]
    models: Mapping[str, ModelEntry]
    engines: Mapping[str, EngineProfile]
    names: Mapping[Kind, NameIndex]

    def find_hardware(self, words: str) -> HardwareProfile | None:
        """The device that `words` (slug, catalog name or a spelling that an engine prints) names; None when none or several."""
        slug = self.names["hardware"].find(words)
        return None if slug is None else self.hardware[slug]

    def find_model(self, words: str) -> ModelEntry | None:
        """The model whose shapes `words` (slug, owner/name, path or GGUF file name) means; None when none does."""
        slug = self.names["model"].find(words)
        return None if slug is None else self.models[slug]

    def find_engine(self, words: str) -> EngineProfile | None:
        """The engine profile that `words` names, as files spell engines; None when none does."""
        slug = self.names["engine"].find(words)
        return None if slug is None else self.engines[slug]

    def suggest(self, words: str, among: Kind | None = None, limit: int = 3) -> tuple[str, ...]:
        """Up to `limit` slugs of each kind asked for (all when None) that look like `words`, for the message about an unknown name."""
        kinds = self.names if among is None else (among,)
        return tuple(slug for kind in kinds for slug in self.names[kind].near(words, limit))


@cache
def load() -> Catalog:
    """The shipped catalog, read once per process. A contradiction in it raises CatalogFault."""
    return build(*(_document(name) for name in ("hardware.toml", "models.toml", "engines.toml")))


def build(hardware: Document, models: Document, engines: Document) -> Catalog:
    """A catalog from the three parsed files; raises CatalogFault on a name with two meanings or a figure without its origin."""
    devices = _by_slug("hardware", (read_device(entry) for entry in hardware["device"]))
    exact_source = models["exact_parameters_source"]
    shapes = _by_slug("model", (read_model(entry, exact_source) for entry in models["model"]))
    profiles = _by_slug("engine", (read_engine(entry) for entry in engines["engine"]))

    def shapes_differ(holder: str, slug: str) -> str:
        fields = differing_shapes(shapes[holder].architecture, shapes[slug].architecture)
        return f", whose shapes differ in {', '.join(fields)}" if fields else ", whose shapes are the same"

    names: dict[Kind, NameIndex] = {
        "hardware": _index("hardware", normalise_device_name, devices.values()),
        "model": _index("model", normalise_model_name, shapes.values(), shapes_differ),
        "engine": _index("engine", normalise_engine_name, profiles.values()),
    }
    return Catalog(devices, shapes, profiles, MappingProxyType(names))


def _document(name: str) -> Document:
    with (FOLDER / name).open("rb") as file:
        return tomllib.load(file)


def _by_slug(kind: Kind, entries: Iterable[_EntryT]) -> Mapping[str, _EntryT]:
    found: dict[str, _EntryT] = {}
    for entry in entries:
        if entry.slug in found:
            raise CatalogFault(f"{kind} {entry.slug}: two entries have this slug; give one another name")
        found[entry.slug] = entry
    return MappingProxyType(found)


def _index(
    kind: Kind,
    normalise: Callable[[str], str],
    entries: Iterable[_Named],
    why_not: Callable[[str, str], str] = lambda holder, slug: "",
) -> NameIndex:
    index = NameIndex(kind, normalise)
    for entry in entries:
        index.claim(entry.slug, (entry.slug, entry.name, *entry.aliases), why_not)
    return index
