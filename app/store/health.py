"""Whether the database is sound and can be written: what a readiness probe and `phaseline check` ask."""

from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from app.store.database import Database, DatabaseUnusable

_WRITABLE = {"sqlite": "SELECT 1", "postgresql": "SELECT 1 WHERE current_setting('transaction_read_only') = 'off'"}


def write_problem(database: Database) -> str | None:
    """Why the database cannot be written now, in one sentence; None when it can. Takes the write lock and gives it back."""
    try:
        # On SQLite the first statement of a writer takes the lock, whatever it is.
        with database.write() as session:
            writable = session.execute(text(_WRITABLE[database.dialect])).first()
    except DatabaseUnusable as error:
        return str(error)
    except DatabaseError as error:
        return f"The database refuses to be written: {error.orig}"
    return None if writable else "The PostgreSQL server is read-only (a standby?): name the primary in DATABASE_URL."


def integrity_problem(database: Database) -> str | None:
    """What is damaged, in one sentence; None when nothing was found. Reads the whole file on SQLite; PostgreSQL checks itself."""
    if database.dialect != "sqlite":
        return None
    try:
        with database.read() as session:
            findings = [str(row[0]) for row in session.execute(text("PRAGMA quick_check(3)"))]
    except DatabaseUnusable as error:
        return str(error)
    except (DatabaseError, UnicodeDecodeError) as error:
        return f"The database file is damaged ({error}): restore a backup."
    return None if findings == ["ok"] else f"The database file is damaged ({'; '.join(findings)}): restore a backup."
