"""A private PostgreSQL server that lives as long as the test session, for the tests that run on both databases.

A conftest that wants it imports the fixtures: `from tests.postgres import postgres_server, postgres_template`.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from app.store.database import Database
from app.store.migrate import upgrade

TEMPLATE = "migrated"
_numbers = iter(range(10**9))


@dataclass(frozen=True)
class Server:
    """A running PostgreSQL server, reached through its socket folder."""

    folder: Path

    def url(self, name: str) -> str:
        """The address of one of its databases."""
        return f"postgresql+psycopg://app@/{name}?host={self.folder}"

    def run(self, statement: str) -> None:
        """Run a statement that makes or removes a database."""
        with closing(psycopg.connect(f"host={self.folder} user=app dbname=postgres", autocommit=True)) as connection:
            connection.execute(statement.encode())


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    elsewhere = shutil.which("initdb")
    return Path(elsewhere).parent if elsewhere else None


def _skip(reason: str) -> None:
    if os.environ.get("PHASELINE_TESTS_NO_SKIP") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A private server without durability, for this test process alone; stopped and removed at the end."""
    programs = _programs()
    if programs is None:
        _skip("PostgreSQL is not installed, so the store is tested on SQLite alone: apt-get install postgresql")
        return
    # The server refuses to run as root, and its folder must be reachable by the user it runs as.
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    folder = Path(tempfile.mkdtemp(prefix="pl-pg-"))
    if as_user:
        shutil.chown(folder, "postgres")
    data, control = folder / "data", str(programs / "pg_ctl")
    quick = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c full_page_writes=off -c synchronous_commit=off"

    def call(*command: str) -> None:
        subprocess.run([*as_user, *command], check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)

    try:
        call(str(programs / "initdb"), "-D", str(data), "-A", "trust", "-U", "app", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
        call(control, "-D", str(data), "-o", quick, "-l", str(folder / "log"), "-w", "start")
        try:
            yield Server(folder)
        finally:
            call(control, "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_template(postgres_server: Server) -> Server:
    """The server, with an upgraded database to copy."""
    postgres_server.run(f"CREATE DATABASE {TEMPLATE}")
    database = Database(postgres_server.url(TEMPLATE))
    upgrade(database)
    database.close()
    return postgres_server


@contextmanager
def own_database(server: Server, how: str = "") -> Iterator[str]:
    """A database of one's own on the server (`how`: like `TEMPLATE name`), by its address; dropped afterwards."""
    name = f"test_{next(_numbers)}"
    server.run(f"CREATE DATABASE {name} {how}")
    try:
        yield server.url(name)
    finally:
        server.run(f"DROP DATABASE {name} WITH (FORCE)")
