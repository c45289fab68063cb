"""What happens before the first request, and whether the installation is sound."""

from dataclasses import dataclass

from app.domain.errors import PhaselineError
from app.services.context import Context
from app.services.profiles import sync_catalog
from app.store import health, migrate


@dataclass(frozen=True)
class Check:
    """One thing that must hold; `detail` says what was found and, when it does not hold, what to do."""

    name: str
    ok: bool
    detail: str


def prepare(context: Context) -> None:
    """Bring the database to this version's schema (unless AUTO_MIGRATE is off) and load the catalog into it.

    Raises PhaselineError when the schema is not this version's.
    """
    if context.settings.auto_migrate:
        migrate.upgrade(context.database)
    else:
        migrate.require_current(context.database)
    sync_catalog(context)
    context.prepared.set()


def readiness(context: Context) -> list[Check]:
    """Whether requests can be served: the schema is right and the database takes a writer."""
    return [_schema(context), _writable(context)]


def soundness(context: Context) -> list[Check]:
    """Everything `phaseline check` looks at."""
    catalog = context.catalog
    counts = f"{len(catalog.hardware)} devices, {len(catalog.models)} models, {len(catalog.engines)} engines"
    return [Check("catalog", True, counts), *readiness(context), _sound(context)]


def _schema(context: Context) -> Check:
    try:
        migrate.require_current(context.database)
    except PhaselineError as error:
        return Check("schema", False, str(error))
    return Check("schema", True, "this version's")


def _writable(context: Context) -> Check:
    problem = health.write_problem(context.database)
    return Check("database", problem is None, problem or f"{context.database.dialect}, writable")


def _sound(context: Context) -> Check:
    problem = health.integrity_problem(context.database)
    return Check("integrity", problem is None, problem or "nothing damaged found")
