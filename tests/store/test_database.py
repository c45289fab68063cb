"""The transaction rules: nothing lost, nothing left by halves, readers never wait."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError
from sqlmodel import Session

from app.store.database import Database, DatabaseBusy, DatabaseUnusable, explained

THREADS, UPDATES = 8, 100


def _counter(database: Database) -> None:
    with database.write() as session:
        session.execute(text("CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)"))
        session.execute(text("INSERT INTO counter VALUES (1, 0)"))


def _value(session: Session) -> int:
    return int(session.execute(text("SELECT n FROM counter WHERE id = 1")).scalar_one())


def test_no_read_modify_write_update_is_lost(bare_database: Database) -> None:
    _counter(bare_database)
    # SQLite's writers exclude each other; on PostgreSQL whoever reads to write says so.
    lock = " FOR UPDATE" if bare_database.dialect == "postgresql" else ""

    def work() -> None:
        for _ in range(UPDATES):
            with bare_database.write() as session:
                n = session.execute(text(f"SELECT n FROM counter WHERE id = 1{lock}")).scalar_one()
                session.execute(text("UPDATE counter SET n = :n WHERE id = 1"), {"n": n + 1})

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work) for _ in range(THREADS)]:
            done.result()
    with bare_database.read() as session:
        assert _value(session) == THREADS * UPDATES


def test_a_write_that_raises_leaves_nothing_not_even_tables(bare_database: Database) -> None:
    def fail() -> None:
        with bare_database.write() as session:
            session.execute(text("CREATE TABLE a (n INTEGER)"))
            session.execute(text("CREATE TABLE b (n INTEGER)"))
            session.execute(text("INSERT INTO a VALUES (1)"))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    with bare_database.write() as session:
        # Both can be made again, so neither was left.
        session.execute(text("CREATE TABLE a (n INTEGER)"))
        session.execute(text("CREATE TABLE b (n INTEGER)"))


def test_a_reader_does_not_wait_for_a_writer_and_sees_one_snapshot(bare_database: Database) -> None:
    _counter(bare_database)
    with bare_database.write() as writer:
        writer.execute(text("UPDATE counter SET n = 7 WHERE id = 1"))
        with bare_database.read() as reader:
            assert _value(reader) == 0
    with bare_database.read() as reader:
        assert _value(reader) == 7
        with bare_database.write() as writer:
            writer.execute(text("UPDATE counter SET n = 8 WHERE id = 1"))
        assert _value(reader) == 7
    with bare_database.read() as reader:
        assert _value(reader) == 8


def test_a_reading_session_cannot_write_and_the_next_writer_can(bare_database: Database) -> None:
    _counter(bare_database)
    with pytest.raises((DatabaseUnusable, DatabaseError)), bare_database.read() as session:
        session.execute(text("UPDATE counter SET n = 1"))
    with bare_database.write() as session:
        session.execute(text("UPDATE counter SET n = 2"))
    with bare_database.read() as session:
        assert _value(session) == 2


def test_readers_and_a_writer_at_once_raise_nothing(bare_database: Database) -> None:
    _counter(bare_database)
    stop = threading.Event()

    def read() -> int:
        reads = 0
        while not stop.is_set():
            with bare_database.read() as session:
                assert _value(session) == _value(session)
            reads += 1
        return reads

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        for n in range(50):
            with bare_database.write() as session:
                session.execute(text("UPDATE counter SET n = :n WHERE id = 1"), {"n": n})
        stop.set()
        assert all(reader.result() > 0 for reader in readers)


def test_sqlite_runs_in_wal_with_foreign_keys(sqlite_database: Database) -> None:
    with sqlite_database.read() as session:
        # Left to itself the driver would begin late, and end what we began in its own way.
        assert session.connection().connection.dbapi_connection.isolation_level is None  # type: ignore[union-attr]
        settings = {name: session.execute(text(f"PRAGMA {name}")).scalar_one() for name in ("journal_mode", "synchronous", "foreign_keys")}
    # synchronous 1 is NORMAL.
    assert settings == {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1}


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("not a url", "is not a database URL"),
        ("sqlite://", "no plain file"),
        ("sqlite:///:memory:", "no plain file"),
        ("mysql://localhost/x", "names mysql"),
    ],
)
def test_a_url_that_cannot_be_served_is_refused_in_a_sentence(url: str, says: str) -> None:
    with pytest.raises(DatabaseUnusable, match=says):
        Database(url)


def test_a_postgresql_url_gets_its_driver() -> None:
    assert Database("postgresql://app@example/phaseline").url.drivername == "postgresql+psycopg"


def test_a_server_that_does_not_answer_is_named_in_a_sentence(tmp_path: Path) -> None:
    database = Database(f"postgresql+psycopg://app@/x?host={tmp_path}")
    with pytest.raises(DatabaseUnusable, match="does not answer"), database.read() as session:
        session.execute(text("SELECT 1"))


def test_a_folder_that_is_missing_is_named_in_a_sentence(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'missing' / 'phaseline.db'}")
    with pytest.raises(DatabaseUnusable, match="cannot be opened"), database.read() as session:
        session.execute(text("SELECT 1"))


def test_a_lock_held_too_long_is_told_as_such(sqlite_database: Database) -> None:
    def write_impatiently() -> None:
        with explained(), sqlite_database.engine.connect() as connection:
            connection.connection.cursor().execute("PRAGMA busy_timeout=1")
            connection.execute(text("SELECT 1"))

    with sqlite_database.write() as holder:
        holder.execute(text("SELECT 1"))
        with pytest.raises(DatabaseBusy, match="try again"):
            write_impatiently()
