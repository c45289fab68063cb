"""What every use case needs: the settings, the database, the catalog."""

from dataclasses import dataclass, field
from threading import Event

from app.catalog import Catalog, load
from app.services.clock import Bell, ServerClock
from app.settings import Settings
from app.store.database import Database


@dataclass(frozen=True)
class Context:
    """One per process; handed to services, never global. `prepared` is set once the database is this version's."""

    settings: Settings
    database: Database
    catalog: Catalog
    clock: ServerClock = field(default_factory=ServerClock)
    bell: Bell = field(default_factory=Bell)
    prepared: Event = field(default_factory=Event)


def make_context(settings: Settings) -> Context:
    """Open the database that the settings name (its folder is made when missing) and load the catalog."""
    if settings.database_url is None:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    return Context(settings, Database(settings.resolved_database_url), load())
