"""Bringing a database to this version's schema: in one transaction, once, whoever starts at the same time.

Whether there is anything to do is read from the scripts and the database's one row; alembic is loaded only then (see `scripts`).
On SQLite a file lock beside the database decides who goes first, and a copy is kept of a database that is about to change; on
PostgreSQL an advisory lock decides. Either the whole upgrade is there afterwards or nothing of it.
"""

import fcntl
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import Connection, inspect

from app.store.database import Database, DatabaseUnusable, explained, make_engine

SCRIPTS = Path(__file__).resolve().parents[2] / "migrations"
# Any number that is ours alone; PostgreSQL's advisory locks have no names.
_ADVISORY_LOCK = 7_315_804_201
# The two lines of a migration that order it; the first one of all has None, which is read as an empty text.
_STATED = re.compile(r"^((?:down_)?revision)\b[^=\n]*= *(?:\"(\w+)\"|None) *$", re.MULTILINE)


class SchemaTooNew(DatabaseUnusable):
    """The database was written by a later version of Phaseline."""


class SchemaOutdated(DatabaseUnusable):
    """The database has an older schema, or none, and nothing may be stored before it is upgraded."""


def head(scripts: Path = SCRIPTS) -> str:
    """The revision this version works with. Raises DatabaseUnusable when the migrations are missing."""
    return _revisions(scripts)[0]


def current(database: Database) -> str | None:
    """The revision the database has, None when it is empty or not there yet (and then it is not made)."""
    if database.path is not None and not database.path.exists():
        return None
    with database.read() as session:
        return _revision(session.connection())


def is_current(database: Database) -> bool:
    """True when the database has exactly this version's schema."""
    return current(database) == head()


def require_current(database: Database) -> None:
    """Raise SchemaTooNew or SchemaOutdated, each with what to do, unless the schema is this version's."""
    revision = current(database)
    _refuse_newer(revision, SCRIPTS)
    if revision != head():
        raise SchemaOutdated("The database does not have this version's schema: start with PHASELINE_AUTO_MIGRATE=1 to upgrade it.")


def upgrade(database: Database, scripts: Path = SCRIPTS) -> bool:
    """Bring the database to the newest revision; True when there was something to do.

    Makes the folder and the file of an SQLite database. One that had an older schema is copied to `backups/` beside it first.
    Raises SchemaTooNew for one that a later version wrote; a migration that fails leaves the database as it was.
    """
    newest = head(scripts)
    with _alone(database) as connection:
        revision = _revision(connection)
        _refuse_newer(revision, scripts)
        if revision == newest:
            return False
        if database.path is not None and revision is not None:
            _keep_copy(database.path, revision)
        from app.store.scripts import run_to_head  # alembic, which most starts do not need

        run_to_head(scripts, connection)
        _check_references(connection)
    return True


def downgrade(database: Database, revision: str, scripts: Path = SCRIPTS) -> None:
    """Take the schema back to an earlier revision (`base`: to nothing) in one transaction; what only later ones hold is lost."""
    from app.store.scripts import run_back

    with _alone(database) as connection:
        run_back(scripts, connection, revision)
        _check_references(connection)


def write_revision(message: str, revision: str) -> None:
    """Write a new migration from what differs between the tables and the migrations so far: the start of one, to be read and tested."""
    from app.store.scripts import write_script

    with TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{folder}/empty.db")
        upgrade(database)
        with _alone(database) as connection:
            write_script(SCRIPTS, connection, message, revision)
        database.close()


@lru_cache
def _revisions(scripts: Path) -> tuple[str, ...]:
    """All revisions in the folder, the newest first; they do not change while a process runs."""
    stated = [dict(_STATED.findall(path.read_text(encoding="utf-8"))) for path in (scripts / "versions").glob("*.py")]
    # What stands before each revision -> the revision.
    after = {each.get("down_revision"): each.get("revision") for each in stated}
    revisions: list[str] = []
    while following := after.pop(revisions[-1] if revisions else "", None):
        revisions.append(following)
    if not revisions or len(revisions) != len(stated):
        raise DatabaseUnusable(
            f"The migrations in {scripts} are not one whole line: the installation is incomplete; install Phaseline again."
        )
    return tuple(reversed(revisions))


def _revision(connection: Connection) -> str | None:
    """What alembic stored: one row, or none in a database that was taken back to nothing."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()
    return found


def _refuse_newer(revision: str | None, scripts: Path) -> None:
    if revision is not None and revision not in _revisions(scripts):
        raise SchemaTooNew(
            f"The database has schema {revision}, which this version of Phaseline does not know: a newer version wrote it. "
            "Install that version again, or restore a backup made before it."
        )


@contextmanager
def _alone(database: Database) -> Iterator[Connection]:
    """A connection in a transaction that no second process migrates beside; committed when the block ends, undone when it raises."""
    engine = make_engine(database.url, for_migration=True)
    lock = nullcontext() if database.path is None else _file_lock(database.path)
    with explained(), lock, engine.begin() as connection:
        if database.path is None:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
        yield connection


@contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    """Wait until no other process holds the lock beside the database; the system frees it when a process dies."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = open(path.with_name(f"{path.name}.lock"), "w")  # noqa: SIM115 - closed below, whatever happens
    except OSError as error:
        raise DatabaseUnusable(
            f"The folder {path.parent} cannot be written ({error.strerror}): check DATA_DIR and its permissions."
        ) from error
    with closing(lock):
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _keep_copy(path: Path, revision: str) -> None:
    """A consistent copy in `backups/`, under its name only when it is whole."""
    folder = path.parent / "backups"
    folder.mkdir(exist_ok=True)
    unfinished = folder / f"{path.stem}-{revision}.partial"
    unfinished.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM INTO ?", (str(unfinished),))
    os.replace(unfinished, folder / f"{path.stem}-before-upgrade-from-{revision}.db")


def _check_references(connection: Connection) -> None:
    if connection.dialect.name != "sqlite":
        return
    dangling = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    if dangling:
        tables = ", ".join(sorted({str(row[0]) for row in dangling}))
        raise DatabaseUnusable(f"The upgrade would leave rows of {tables} that refer to nothing, so nothing was changed: please report it.")
