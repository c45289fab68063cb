"""Profiles of devices, models and engines: shipped ones from the catalog, which are read-only, and those of users.

One class serves the three tables, since they differ in nothing but the dataclass they hold: HARDWARE, MODELS and ENGINES.
"""

import dataclasses
import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar, cast

from sqlalchemy import delete, select, text
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session, col

from app.domain.architecture import ModelArchitecture
from app.domain.engine import EngineProfile
from app.domain.errors import PhaselineError, UnknownName
from app.domain.hardware import HardwareProfile
from app.domain.plain import from_plain, to_plain
from app.store.model_data import read_architecture
from app.store.tables import EngineProfileRow, HardwareProfileRow, ModelProfileRow, ProfileTable
from app.store.types import storable_json, storable_text

T = TypeVar("T")
Origin = Literal["catalog", "user"]
CATALOG: Origin = "catalog"
USER: Origin = "user"


class SlugTaken(PhaselineError):
    """Another profile has this slug already."""


class ReadOnlyProfile(PhaselineError):
    """A profile of the catalog, which is cloned and never changed."""


@dataclass(frozen=True)
class NewProfile(Generic[T]):
    """A profile about to be stored. `source` is what it was made from (a model's config.json), where that is kept."""

    slug: str
    name: str
    data: T
    aliases: tuple[str, ...] = ()
    source: Mapping[str, Any] | None = None
    notes: str = ""


@dataclass(frozen=True)
class Profile(Generic[T]):
    """A stored profile; `origin` says whether it is the catalog's or a user's."""

    slug: str
    name: str
    origin: Origin
    data: T
    aliases: tuple[str, ...]
    source: Mapping[str, Any] | None
    notes: str
    created_at: datetime
    updated_at: datetime

    @property
    def read_only(self) -> bool:
        """True for a shipped profile."""
        return self.origin == CATALOG


@dataclass(frozen=True)
class Synchronised:
    """What loading the catalog changed, by slug. `shadowed` are entries left out because a user has a profile of that slug."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    shadowed: tuple[str, ...]


class Profiles(Generic[T]):
    """The profiles of one kind. `read` makes one from its stored data, `noun` is the word for one in a message."""

    def __init__(self, table: type[ProfileTable], read: Callable[[Mapping[str, Any]], T], noun: str) -> None:
        self._table = table
        self._read = read
        self._noun = noun

    def all(self, session: Session) -> tuple[Profile[T], ...]:
        """Every profile, by name; one query."""
        rows = session.execute(select(self._table).order_by(col(self._table.name), col(self._table.slug))).scalars()
        return tuple(self._profile(row) for row in rows)

    def of_users(self, session: Session) -> tuple[Profile[T], ...]:
        """The profiles that users made, by name; one query."""
        mine = select(self._table).where(col(self._table.origin) == USER)
        return tuple(self._profile(row) for row in session.execute(mine.order_by(col(self._table.name), col(self._table.slug))).scalars())

    def get(self, session: Session, slug: str) -> Profile[T] | None:
        """The profile with this slug, or None."""
        row = self._row(session, slug)
        return None if row is None else self._profile(row)

    def require(self, session: Session, slug: str) -> Profile[T]:
        """The profile with this slug. Raises UnknownName, with the closest slugs there are."""
        return self._profile(self._known(session, slug))

    def create(self, session: Session, new: NewProfile[T], now: datetime) -> Profile[T]:
        """Store a user's profile. Raises SlugTaken."""
        taken = SlugTaken(f"There is a {self._noun} “{new.slug}” already: choose another name.")
        if self._row(session, new.slug) is not None:
            raise taken
        row = self._table(slug=new.slug, origin=USER, created_at=now, updated_at=now, **_columns(new))
        session.add(row)
        try:
            session.flush()
        except IntegrityError as error:
            # Somebody else was faster, between the question and the answer.
            raise taken from error
        session.refresh(row)
        return self._profile(row)

    def update(self, session: Session, slug: str, new: NewProfile[T], now: datetime) -> Profile[T]:
        """Replace all of a user's profile but its slug. Raises UnknownName and ReadOnlyProfile."""
        row = self._writable(session, slug)
        for name, value in _columns(new).items():
            setattr(row, name, value)
        row.updated_at = now
        session.flush()
        session.refresh(row)
        return self._profile(row)

    def clone(self, session: Session, slug: str, new_slug: str, new_name: str, now: datetime) -> Profile[T]:
        """Copy any profile to a user's one under a new slug and name, without its aliases. Raises UnknownName and SlugTaken."""
        base = self.require(session, slug)
        own = {"slug": new_slug, "name": new_name, "aliases": ()}
        fields = {field.name for field in dataclasses.fields(cast(Any, base.data))}
        data = dataclasses.replace(cast(Any, base.data), **{name: value for name, value in own.items() if name in fields})
        return self.create(session, NewProfile(new_slug, new_name, data, (), base.source, base.notes), now)

    def delete(self, session: Session, slug: str) -> None:
        """Delete a user's profile. Runs that name it keep their words. Raises UnknownName and ReadOnlyProfile."""
        session.delete(self._writable(session, slug))
        session.flush()

    def synchronise(self, session: Session, entries: Sequence[NewProfile[T]], now: datetime) -> Synchronised:
        """Make the shipped profiles exactly these entries, writing only what differs; users' profiles are never touched."""
        if session.get_bind().dialect.name == "postgresql":
            # Two servers that start at once must not both add an entry; on SQLite a writer is alone anyway.
            session.execute(text(f"LOCK TABLE {self._table.__tablename__} IN SHARE ROW EXCLUSIVE MODE"))
        rows = {row.slug: row for row in session.execute(select(self._table)).scalars()}
        added, changed, shadowed = [], [], []
        for entry in entries:
            row = rows.get(entry.slug)
            if row is None:
                session.add(self._table(slug=entry.slug, origin=CATALOG, created_at=now, updated_at=now, **_columns(entry)))
                added.append(entry.slug)
            elif row.origin == USER:
                shadowed.append(entry.slug)
            elif _differs(row, entry):
                for name, value in _columns(entry).items():
                    setattr(row, name, value)
                row.updated_at = now
                changed.append(entry.slug)
        shipped = {entry.slug for entry in entries}
        removed = sorted(slug for slug, row in rows.items() if row.origin == CATALOG and slug not in shipped)
        session.flush()
        if removed:
            session.execute(delete(self._table).where(col(self._table.slug).in_(removed)))
        return Synchronised(tuple(added), tuple(changed), tuple(removed), tuple(shadowed))

    def _row(self, session: Session, slug: str) -> ProfileTable | None:
        return session.execute(select(self._table).where(col(self._table.slug) == slug)).scalar_one_or_none()

    def _known(self, session: Session, slug: str) -> ProfileTable:
        row = self._row(session, slug)
        if row is None:
            slugs = list(session.execute(select(col(self._table.slug))).scalars())
            near = tuple(difflib.get_close_matches(slug, slugs, n=3, cutoff=0.5))
            hint = f"; the closest are {', '.join(near)}" if near else ""
            raise UnknownName(f"There is no {self._noun} “{slug}”{hint}.", near)
        return row

    def _writable(self, session: Session, slug: str) -> ProfileTable:
        row = self._known(session, slug)
        if row.origin == CATALOG:
            raise ReadOnlyProfile(f"The {self._noun} “{slug}” belongs to the catalog and cannot be changed: clone it and change the copy.")
        return row

    def _profile(self, row: ProfileTable) -> Profile[T]:
        return Profile(
            slug=row.slug,
            name=row.name,
            origin=cast(Origin, row.origin),
            data=self._read(row.data),
            aliases=tuple(row.aliases),
            source=row.source,
            notes=row.notes,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


def _read_hardware(data: Mapping[str, Any]) -> HardwareProfile:
    return from_plain(HardwareProfile, data)


def _read_engine(data: Mapping[str, Any]) -> EngineProfile:
    return from_plain(EngineProfile, data)


HARDWARE: Profiles[HardwareProfile] = Profiles(HardwareProfileRow, _read_hardware, "hardware profile")
MODELS: Profiles[ModelArchitecture] = Profiles(ModelProfileRow, read_architecture, "model profile")
ENGINES: Profiles[EngineProfile] = Profiles(EngineProfileRow, _read_engine, "engine profile")


def _columns(new: NewProfile[T]) -> dict[str, Any]:
    return {
        "name": storable_text(new.name),
        "aliases": storable_json(list(new.aliases)),
        "data": storable_json(to_plain(new.data)),
        "source": None if new.source is None else storable_json(dict(new.source)),
        "notes": storable_text(new.notes),
    }


def _differs(row: ProfileTable, entry: NewProfile[T]) -> bool:
    return any(getattr(row, name) != value for name, value in _columns(entry).items())
