"""The engine and the transaction rules: the one place that knows how SQLite and PostgreSQL begin.

SQLAlchemy's own transactions on SQLite lose updates and leave half of a failed migration behind, because the driver begins late
and never before DDL. Here the driver's transactions are switched off and ours begin at once: BEGIN IMMEDIATE for a writer, so
that what it read is still true when it writes, BEGIN for a reader, which sees one snapshot and stops nobody (WAL).
PostgreSQL readers get the same by REPEATABLE READ, READ ONLY.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DatabaseError, DataError, IntegrityError, ProgrammingError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool
from sqlmodel import Session

from app.domain.errors import PhaselineError

BUSY_TIMEOUT_S = 15
_READS = "phaseline_reads"
_POSTGRESQL_NAMES = ("postgresql", "postgres", "postgresql+psycopg")
_WAL_LIMIT_BYTES = 64 * 1024 * 1024


class DatabaseUnusable(PhaselineError):
    """The database cannot be used as it stands; the message says what to do."""


class DatabaseBusy(DatabaseUnusable):
    """Somebody else wrote for longer than a writer waits; trying again is right."""


class DatabaseFull(DatabaseUnusable):
    """There is no room left where the database lies."""


class Database:
    """One database, opened by its URL: `sqlite:///path/to/file.db` or `postgresql+psycopg://user@host/name`.

    Nothing is connected until the first use. Threads may share it. Raises DatabaseUnusable for a URL it cannot serve.
    """

    def __init__(self, url: str) -> None:
        self.url = parse_url(url)
        self.engine = make_engine(self.url)
        self._reader = self.engine.execution_options(**_reader_options(self.dialect))

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self.url.get_backend_name()

    @property
    def path(self) -> Path | None:
        """The SQLite file, or None on PostgreSQL."""
        return Path(self.url.database) if self.dialect == "sqlite" and self.url.database else None

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session on one snapshot. Writing in it is an error; it never waits for a writer."""
        with explained(), Session(self._reader, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session whose work is stored when the block ends, and not at all when it raises."""
        with explained(), Session(self.engine, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        """Close the connections that are not in use."""
        self.engine.dispose()


def parse_url(url: str) -> URL:
    """The URL with its driver named. Raises DatabaseUnusable when it is none, or one of a database we do not serve."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise DatabaseUnusable(
            "DATABASE_URL is not a database URL: write sqlite:///path/to/phaseline.db or postgresql+psycopg://user@host/name."
        ) from error
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        if not parsed.database or parsed.database == ":memory:" or parsed.query:
            raise DatabaseUnusable(
                "DATABASE_URL names an SQLite database that is no plain file, which threads cannot share: write sqlite:///path/to/phaseline.db."
            )
        return parsed
    if parsed.drivername in _POSTGRESQL_NAMES:
        return parsed.set(drivername="postgresql+psycopg")
    raise DatabaseUnusable(f"DATABASE_URL names {parsed.drivername}: use sqlite:///… or postgresql+psycopg://….")


def make_engine(url: URL, *, for_migration: bool = False) -> Engine:
    """An engine that begins as the module's docstring says.

    For a migration it keeps no connection and, on SQLite, leaves foreign keys unenforced: a table that is rebuilt there is dropped
    on the way, which would take the rows that refer to it along. `migrate` checks the references before it commits.
    """
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url, for_migration)
    try:
        if for_migration:
            return create_engine(url, poolclass=NullPool)
        return create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=30, connect_args={"connect_timeout": 10})
    except ModuleNotFoundError as error:
        raise DatabaseUnusable("PostgreSQL needs the driver psycopg: install phaseline[postgres].") from error


def _reader_options(dialect: str) -> dict[str, object]:
    if dialect == "sqlite":
        return {_READS: True}
    return {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}


def _sqlite_engine(url: URL, for_migration: bool) -> Engine:
    # isolation_level None: the driver begins nothing by itself; its commit and rollback still end what we began.
    arguments = {"isolation_level": None, "timeout": BUSY_TIMEOUT_S}
    if for_migration:
        engine = create_engine(url, connect_args=arguments, poolclass=NullPool)
    else:
        engine = create_engine(url, connect_args=arguments, pool_size=10, max_overflow=40)

    def configure(connection: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        for pragma in _pragmas(enforce=not for_migration):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    event.listen(engine, "connect", configure)
    event.listen(engine, "begin", _begin)
    return engine


def _pragmas(enforce: bool) -> tuple[str, ...]:
    return (
        f"busy_timeout={BUSY_TIMEOUT_S * 1000}",
        "journal_mode=WAL",
        "synchronous=NORMAL",
        f"foreign_keys={'ON' if enforce else 'OFF'}",
        f"journal_size_limit={_WAL_LIMIT_BYTES}",
        "temp_store=MEMORY",
    )


def _begin(connection: Connection) -> None:
    reads = bool(connection.get_execution_options().get(_READS))
    if connection.info.get(_READS, False) != reads:
        connection.exec_driver_sql(f"PRAGMA query_only={'ON' if reads else 'OFF'}")
        connection.info[_READS] = reads
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


@contextmanager
def explained() -> Iterator[None]:
    """Turn the failures an operator can mend into one sentence each; leave the rest as they are."""
    try:
        yield
    except (IntegrityError, ProgrammingError, DataError):
        # Faults of ours, and their text holds what users wrote.
        raise
    except DatabaseError as error:
        mendable = _explain(str(error.orig).lower())
        if mendable is None:
            raise
        raise mendable from error


def _explain(reason: str) -> DatabaseUnusable | None:
    if "database is locked" in reason:
        return DatabaseBusy(f"Another process has been writing to the database for more than {BUSY_TIMEOUT_S} s; try again.")
    if "disk is full" in reason or "no space left" in reason:
        return DatabaseFull("There is no room left where the database lies; nothing was stored. Free some space and try again.")
    if "unable to open database file" in reason:
        return DatabaseUnusable("The database file cannot be opened: check that DATA_DIR exists and is writable.")
    if "readonly database" in reason:
        return DatabaseUnusable(
            "The database cannot be written: check the permissions of DATA_DIR, and that nothing writes in a reading session."
        )
    if "not a database" in reason or "malformed" in reason:
        return DatabaseUnusable("The database file is damaged or is no database: restore a backup, or name another file in DATABASE_URL.")
    if "connection" in reason and any(word in reason for word in ("failed", "refused", "closed")):
        return DatabaseUnusable(
            "The PostgreSQL server of DATABASE_URL does not answer: check that it runs and that address and password are right."
        )
    return None
