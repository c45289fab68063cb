"""Devices, models and engines by name: the shipped ones and those that users made, and every change to the latter."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Any, Literal

from app.catalog import Catalog, ModelEntry, normalise_device_name, normalise_model_name
from app.domain.calibration import calibrated
from app.domain.configs import from_config
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest, NotFound, UnknownName
from app.domain.hardware import HardwareProfile
from app.domain.prediction import Request
from app.domain.request_rules import MODES
from app.domain.serving import MODEL_VERSION
from app.domain.suggestion import Lexicon, lexicon
from app.domain.text import clean_text
from app.services.context import Context
from app.services.profile_json import hardware_from, slug_of
from app.store import calibrations
from app.store.calibrations import StoredCalibration
from app.store.profiles import ENGINES, HARDWARE, MODELS, NewProfile

_NEAR = 3
_LONG_NUMBER = 19
_Spellings = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ProfileBook:
    """Every profile that a name can mean at this moment. A user's own profile is found before a shipped one."""

    catalog: Catalog
    own_hardware: Mapping[str, HardwareProfile]
    own_models: Mapping[str, ModelEntry]
    calibrations: Mapping[int, StoredCalibration] = field(default_factory=dict)

    def engine_of(self, request: Request, hardware: HardwareProfile) -> EngineProfile | None:
        """The engine profile that a request is priced with: the one it names, scaled where it names a calibration.

        Raises UnknownName for an engine, and InvalidRequest for a calibration that is not there, is void or is of something else.
        """
        engine = self.engine(request.engine) if request.engine else None
        words = request.calibration
        if words in MODES or not (words.isascii() and words.isdigit()):
            return engine
        found = self.calibrations.get(int(words)) if len(words) < _LONG_NUMBER else None
        if found is None:
            raise InvalidRequest("calibration", f"There is no calibration {words[:20]}: the page of a device lists what was fitted.")
        if found.model_version != MODEL_VERSION:
            raise InvalidRequest("calibration", f"Calibration {found.id} was fitted on model version {found.model_version}: fit it anew.")
        of = (found.hardware_slug, found.engine_slug, found.weight_dtype)
        if of != (hardware.slug, engine.slug if engine else None, request.weight_dtype):
            of_what = f"{found.hardware_slug}, {found.engine_slug or 'no engine'}, {found.weight_dtype}"
            raise InvalidRequest("calibration", f"Calibration {found.id} is of {of_what}: ask for these, or for the default.")
        return calibrated(engine, found.fit, words)

    @cached_property
    def lexicon(self) -> Lexicon:
        """Every spelling of a device, model or engine, for finding them among other words."""
        names = self.catalog.names
        devices, models = dict(names["hardware"].keys()), dict(names["model"].keys())
        devices |= {
            normalise_device_name(name): slug for slug, item in self.own_hardware.items() for name in (slug, item.name, *item.aliases)
        }
        models |= {normalise_model_name(name): slug for slug, item in self.own_models.items() for name in (slug, item.name, *item.aliases)}
        shared = _lexicon(tuple(devices.items()), tuple(models.items()), tuple(names["engine"].keys().items()))
        return replace(shared, heard={})

    def hardware(self, words: str) -> HardwareProfile:
        """The device of this slug, name or alias. Raises UnknownName with near names."""
        found = self.find_hardware(words)
        if found is None:
            raise _unknown("device", words, self._near("hardware", words, self.own_hardware))
        return found

    def model(self, words: str) -> ModelEntry:
        """The model of this slug, name or alias. Raises UnknownName with near names."""
        found = self.find_model(words)
        if found is None:
            raise _unknown("model", words, self._near("model", words, self.own_models))
        return found

    def engine(self, words: str) -> EngineProfile:
        """The engine profile of this slug, name or alias. Raises UnknownName with near names."""
        found = self.find_engine(words)
        if found is None:
            raise _unknown("engine", words, self._near("engine", words, ()))
        return found

    def find_hardware(self, words: str | None) -> HardwareProfile | None:
        """The same, or None when no device answers to these words."""
        wanted = normalise_device_name(words) if words else ""
        if not words or not wanted:
            return None
        for item in self.own_hardware.values():
            if wanted in {normalise_device_name(name) for name in (item.slug, item.name, *item.aliases)}:
                return item
        return self.catalog.find_hardware(words)

    def find_model(self, words: str | None) -> ModelEntry | None:
        """The same, or None when no model answers to these words."""
        wanted = normalise_model_name(words) if words else ""
        if not words or not wanted:
            return None
        for item in self.own_models.values():
            if wanted in {normalise_model_name(name) for name in (item.slug, item.name, *item.aliases)}:
                return item
        return self.catalog.find_model(words)

    def _near(self, kind: Literal["hardware", "model", "engine"], words: str, own: Iterable[str]) -> tuple[str, ...]:
        """Slugs that look like `words`, users' own first."""
        mine = get_close_matches(slug_of(words), tuple(own), n=_NEAR)
        return tuple(dict.fromkeys((*mine, *self.catalog.suggest(words, kind))))[:_NEAR]

    def find_engine(self, words: str | None) -> EngineProfile | None:
        """The same, or None when no engine answers to these words."""
        return self.catalog.find_engine(words) if words else None

    def all_hardware(self) -> list[tuple[str, HardwareProfile]]:
        """Every device with its origin, users' own first, then by vendor and name."""
        own = [("user", item) for item in self.own_hardware.values()]
        shipped = [("catalog", item) for item in self.catalog.hardware.values() if item.slug not in self.own_hardware]
        return own + sorted(shipped, key=lambda pair: (pair[1].vendor, pair[1].name))

    def all_models(self) -> list[tuple[str, ModelEntry]]:
        """Every model with its origin, users' own first, then by name."""
        own = [("user", item) for item in self.own_models.values()]
        shipped = [("catalog", item) for item in self.catalog.models.values() if item.slug not in self.own_models]
        return own + sorted(shipped, key=lambda pair: pair[1].name.lower())

    def hardware_origin(self, slug: str) -> str:
        """`user` or `catalog`."""
        return "user" if slug in self.own_hardware else "catalog"

    def model_origin(self, slug: str) -> str:
        """`user` or `catalog`."""
        return "user" if slug in self.own_models else "catalog"


@lru_cache(maxsize=4)
def _lexicon(devices: _Spellings, models: _Spellings, engines: _Spellings) -> Lexicon:
    """The lexicon of these spellings, worked out anew only when a user's own profiles changed: 1 ms of each page of a run otherwise.

    What was heard with it is the book's own, so that nothing grows here with the texts of runs.
    """
    return lexicon(dict(devices), dict(models), dict(engines))


def _unknown(what: str, words: str, near: tuple[str, ...]) -> UnknownName:
    hint = (
        f" Did you mean {', '.join(near)}?" if near else f" The /{'hardware' if what == 'device' else 'models'} page lists what there is."
    )
    return UnknownName(f"No {what} is called “{clean_text(words, 80)}”.{hint}", near)


def read_book(context: Context) -> ProfileBook:
    """The catalog with the users' profiles and calibrations as they are now: three queries."""
    with context.database.read() as session:
        own_hardware = {item.slug: item.data for item in HARDWARE.of_users(session)}
        own_models = {
            item.slug: ModelEntry(item.slug, item.name, item.data, item.aliases, "user", "entered by hand")
            for item in MODELS.of_users(session)
        }
        fitted = {item.id: item for item in calibrations.every(session)}
    return ProfileBook(context.catalog, own_hardware, own_models, fitted)


def catalog_book(catalog: Catalog) -> ProfileBook:
    """The shipped profiles alone, for the command line without a database."""
    return ProfileBook(catalog, {}, {})


def sync_catalog(context: Context) -> None:
    """Make the database's copy of the catalog that of this version."""
    now, catalog = datetime.now(UTC), context.catalog
    with context.database.write() as session:
        HARDWARE.synchronise(session, [NewProfile(i.slug, i.name, i, i.aliases) for i in catalog.hardware.values()], now)
        MODELS.synchronise(session, [NewProfile(i.slug, i.name, i.architecture, i.aliases) for i in catalog.models.values()], now)
        ENGINES.synchronise(session, [NewProfile(i.slug, i.name, i, i.aliases) for i in catalog.engines.values()], now)


def create_hardware(context: Context, values: Mapping[str, Any]) -> HardwareProfile:
    """A device of the user's own, from figures or as a changed copy (`clone_of`). Raises InvalidRequest, UnknownName or SlugTaken."""
    book = read_book(context)
    draft = {key: value for key, value in values.items() if key != "clone_of"}
    base = book.hardware(str(values["clone_of"])) if values.get("clone_of") else None
    if base is not None:
        draft.setdefault("name", f"{base.name} copy")
        base = replace(base, aliases=())
    profile = hardware_from(draft, base)
    profile = replace(profile, slug=slug_of(profile.name))
    with context.database.write() as session:
        HARDWARE.create(session, _new_hardware(profile), datetime.now(UTC))
    return profile


def update_hardware(context: Context, slug: str, values: Mapping[str, Any]) -> HardwareProfile:
    """Change figures of a user's device. Raises NotFound, ReadOnlyProfile or InvalidRequest."""
    base = find_hardware(read_book(context), slug)
    _refuse_clone(values)
    profile = hardware_from({key: value for key, value in values.items() if key != "clone_of"}, base)
    with context.database.write() as session:
        HARDWARE.update(session, slug, _new_hardware(profile), datetime.now(UTC))
    return profile


def store_hardware(context: Context, profile: HardwareProfile) -> HardwareProfile:
    """Store a device of the user's own as it is, under the slug of its name. Raises SlugTaken or InvalidRequest."""
    if not slug_of(profile.name):
        raise InvalidRequest("name", "The name needs at least one letter or digit.")
    named = replace(profile, slug=slug_of(profile.name))
    with context.database.write() as session:
        HARDWARE.create(session, _new_hardware(named), datetime.now(UTC))
    return named


def replace_hardware(context: Context, slug: str, profile: HardwareProfile) -> None:
    """Put `profile` in place of a user's device. Raises UnknownName or ReadOnlyProfile."""
    with context.database.write() as session:
        HARDWARE.update(session, slug, _new_hardware(profile), datetime.now(UTC))


def delete_hardware(context: Context, slug: str) -> None:
    """Delete a user's device; runs that name it keep their words. Raises NotFound or ReadOnlyProfile."""
    find_hardware(read_book(context), slug)
    with context.database.write() as session:
        HARDWARE.delete(session, slug)


def find_hardware(book: ProfileBook, slug: str) -> HardwareProfile:
    """The device with exactly this slug. Raises NotFound."""
    found = book.own_hardware.get(slug) or book.catalog.hardware.get(slug)
    if found is None:
        raise NotFound(f"There is no device “{clean_text(slug, 80)}”: the /hardware page lists what there is.")
    return found


def find_model(book: ProfileBook, slug: str) -> ModelEntry:
    """The model with exactly this slug. Raises NotFound."""
    found = book.own_models.get(slug) or book.catalog.models.get(slug)
    if found is None:
        raise NotFound(f"There is no model “{clean_text(slug, 80)}”: the /models page lists what there is.")
    return found


def _refuse_clone(values: Mapping[str, Any]) -> None:
    if values.get("clone_of"):
        raise InvalidRequest("clone_of", "`clone_of` makes a new profile; to change this one, give the keys to change.")


def _new_hardware(profile: HardwareProfile) -> NewProfile[HardwareProfile]:
    return NewProfile(profile.slug, profile.name, profile, profile.aliases, notes=profile.notes)


def create_model(context: Context, values: Mapping[str, Any]) -> ModelEntry:
    """A model of the user's own, from a config.json or as a copy. Raises UnsupportedModel, InvalidRequest, UnknownName or SlugTaken."""
    name = clean_text(str(values.get("name") or ""))
    if not slug_of(name):
        raise InvalidRequest("name", "A model needs a name with at least one letter or digit.")
    if values.get("config") is not None:
        architecture = from_config(values["config"], name)
    elif values.get("clone_of"):
        architecture = replace(read_book(context).model(str(values["clone_of"])).architecture, name=name)
    else:
        raise InvalidRequest("config", "A model needs its config.json, or `clone_of` another model.")
    entry = ModelEntry(slug_of(name), name, architecture, _aliases(values), "user", "entered by hand")
    with context.database.write() as session:
        MODELS.create(session, _new_model(entry, values.get("config")), datetime.now(UTC))
    return entry


def update_model(context: Context, slug: str, values: Mapping[str, Any]) -> ModelEntry:
    """Change a user's model: its name, aliases or config. Raises NotFound, ReadOnlyProfile, UnsupportedModel or InvalidRequest."""
    before = find_model(read_book(context), slug)
    _refuse_clone(values)
    name = clean_text(str(values.get("name") or before.name))
    architecture = from_config(values["config"], name) if values.get("config") is not None else replace(before.architecture, name=name)
    aliases = _aliases(values) if values.get("aliases") is not None else before.aliases
    entry = ModelEntry(slug, name, architecture, aliases, "user", "entered by hand")
    with context.database.write() as session:
        source = values.get("config") or MODELS.require(session, slug).source
        MODELS.update(session, slug, _new_model(entry, source), datetime.now(UTC))
    return entry


def delete_model(context: Context, slug: str) -> None:
    """Delete a user's model; runs that name it keep their words. Raises NotFound or ReadOnlyProfile."""
    find_model(read_book(context), slug)
    with context.database.write() as session:
        MODELS.delete(session, slug)


def _aliases(values: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(alias for item in values.get("aliases") or () if (alias := clean_text(str(item))))


def _new_model(entry: ModelEntry, config: Mapping[str, Any] | None) -> NewProfile[Any]:
    return NewProfile(entry.slug, entry.name, entry.architecture, entry.aliases, source=config)
