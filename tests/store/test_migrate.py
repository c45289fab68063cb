"""Migrations: from nothing on both databases, all or nothing, once, never over a newer schema."""

import fcntl
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DatabaseError

from app.store import migrate
from app.store.database import Database, DatabaseUnusable
from app.store.migrate import SCRIPTS, SchemaOutdated, SchemaTooNew, current, downgrade, head, is_current, require_current, upgrade
from app.store.tables import RunRow, RunTagRow, UploadRow, metadata

ROOT = Path(__file__).resolve().parents[2]
FAILING = """
def upgrade():
    op.create_table("a", sa.Column("n", sa.Integer()))
    op.create_table("b", sa.Column("n", sa.Integer()))
    op.add_column("run", sa.Column("extra", sa.Integer()))
    op.execute("INSERT INTO a VALUES (1)")
    raise RuntimeError("third statement")
"""
REBUILDING = """
def upgrade():
    with op.batch_alter_table("run") as batch:  # SQLite copies the table, drops it and renames the copy
        batch.alter_column("label", new_column_name="title")
"""
DANGLING = """
def upgrade():
    op.execute("INSERT INTO run_tag (run_id, tag, project) VALUES (99, 'x', 'default')")
"""

ScriptsWith = Callable[[str], Path]


def _tables(database: Database) -> set[str]:
    with database.read() as session:
        return set(inspect(session.connection()).get_table_names())


@pytest.fixture
def scripts_with(tmp_path: Path) -> ScriptsWith:
    """The migrations with one more after the newest, whose body is given."""

    def make(body: str) -> Path:
        folder = tmp_path / "migrations"
        shutil.copytree(SCRIPTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
        head_of = f'import sqlalchemy as sa\nfrom alembic import op\nrevision = "9999"\ndown_revision = "{head()}"\n'
        (folder / "versions" / "9999_next.py").write_text(head_of + textwrap.dedent(body))
        return folder

    return make


def test_from_nothing_to_the_tables_of_this_version_and_back(bare_database: Database) -> None:
    assert upgrade(bare_database) is True
    assert is_current(bare_database)
    require_current(bare_database)
    assert _tables(bare_database) == set(metadata.tables) | {"alembic_version"}
    assert upgrade(bare_database) is False
    downgrade(bare_database, "base")
    assert _tables(bare_database) == {"alembic_version"}
    assert current(bare_database) is None
    assert upgrade(bare_database) is True


def _differences(connection: Connection) -> list[object]:
    return list(compare_metadata(MigrationContext.configure(connection, opts={"compare_type": True}), metadata))


def test_migrations_and_tables_agree(database: Database) -> None:
    with database.read() as session:
        assert _differences(session.connection()) == []
    with database.write() as session:
        session.execute(text("ALTER TABLE run ADD COLUMN extra INTEGER"))
    # The comparison does see a difference.
    with database.read() as session:
        assert len(_differences(session.connection())) == 1


def test_the_migrations_lie_beside_the_package() -> None:
    assert ROOT / "migrations" == SCRIPTS


def test_the_line_of_revisions_is_the_one_that_alembic_reads() -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("path_separator", "os")
    assert list(migrate._revisions(SCRIPTS)) == [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"0002.py": 'revision = "0002"\ndown_revision = "0001"\n'},
        {"0001.py": 'revision = "0001"\ndown_revision = None\n', "0003.py": 'revision = "0003"\ndown_revision = "0002"\n'},
        {"0001.py": 'revision = "0001"\ndown_revision = None\n', "other.py": 'revision = "x"\ndown_revision = None\n'},
        {"0001.py": 'revision = "0001"\ndown_revision = None\n', "empty.py": ""},
    ],
    ids=["none", "no first one", "a gap", "two first ones", "one that says nothing"],
)
def test_migrations_that_are_no_whole_line_are_refused(tmp_path: Path, others: dict[str, str]) -> None:
    (tmp_path / "versions").mkdir()
    for name, content in others.items():
        (tmp_path / "versions" / name).write_text(content)
    with pytest.raises(DatabaseUnusable, match="not one whole line"):
        head(tmp_path)


START = """
import sys
from app.main import create_app
from app.services.startup import prepare
prepare(create_app().state.context)
print("alembic" in sys.modules)
"""


def test_a_start_loads_alembic_only_for_a_database_that_is_to_change(tmp_path: Path) -> None:
    def start() -> str:
        environment = {**os.environ, "PHASELINE_DATA_DIR": str(tmp_path), "PHASELINE_DATABASE_URL": "", "PYTHONPATH": str(ROOT)}
        asked = [sys.executable, "-c", START]
        return subprocess.run(asked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout

    assert [start(), start()] == ["True\n", "False\n"]


def test_a_migration_that_fails_half_way_leaves_nothing(database: Database, scripts_with: ScriptsWith) -> None:
    before = _tables(database)
    with pytest.raises(RuntimeError, match="third statement"):
        upgrade(database, scripts_with(FAILING))
    assert _tables(database) == before
    assert current(database) == head()
    with database.read() as session:
        assert "extra" not in {column["name"] for column in inspect(session.connection()).get_columns("run")}


def test_a_rebuilt_table_keeps_the_rows_that_refer_to_it(database: Database, scripts_with: ScriptsWith) -> None:
    _insert_a_run(database)
    assert upgrade(database, scripts_with(REBUILDING)) is True
    with database.read() as session:
        assert session.execute(text("SELECT title FROM run")).scalars().all() == ["kept"]
        assert session.execute(text("SELECT tag FROM run_tag")).scalars().all() == ["t"]
    with database.write() as session:
        session.execute(text("DELETE FROM run"))
        assert session.execute(text("SELECT count(*) FROM run_tag")).scalar_one() == 0


def _insert_a_run(database: Database) -> None:
    day = datetime(2026, 5, 1, tzinfo=UTC)
    with database.write() as session:
        session.add(UploadRow(id=1, project="p", sha256="s", name="n", size=0, format="f", chunk_count=0, received_at=day))
        session.flush()
        session.add(
            RunRow(
                id=1,
                upload_id=1,
                seq_in_file=0,
                project="p",
                label="kept",
                format="f",
                importer_version=1,
                happened_at=day,
                created_at=day,
                updated_at=day,
            )
        )
        session.flush()
        session.add(RunTagRow(run_id=1, tag="t", project="p"))


def test_an_upgrade_that_leaves_references_to_nothing_is_undone(database: Database, scripts_with: ScriptsWith) -> None:
    # SQLite checks at the end of a migration, PostgreSQL at the statement.
    with pytest.raises((DatabaseUnusable, DatabaseError)):
        upgrade(database, scripts_with(DANGLING))
    assert current(database) == head()
    with database.read() as session:
        assert session.execute(text("SELECT count(*) FROM run_tag")).scalar_one() == 0


def test_a_newer_schema_is_refused_and_left_alone(database: Database) -> None:
    with database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = 'from-the-future'"))
    with pytest.raises(SchemaTooNew, match=r"from-the-future.*newer version"):
        upgrade(database)
    with pytest.raises(SchemaTooNew):
        require_current(database)
    assert current(database) == "from-the-future"


def test_an_empty_database_is_not_current_and_asking_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "phaseline.db"
    database = Database(f"sqlite:///{path}")
    assert current(database) is None
    assert not path.exists()
    with pytest.raises(SchemaOutdated, match="AUTO_MIGRATE"):
        require_current(database)


def test_the_folder_of_the_database_is_made(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / '100%' / 'data' / 'phaseline.db'}")
    assert upgrade(database) is True
    database.close()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DatabaseUnusable, match="cannot be written"):
        upgrade(Database(f"sqlite:///{tmp_path / 'file' / 'phaseline.db'}"))


def test_missing_migrations_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusable, match="installation is incomplete"):
        head(tmp_path)


def test_several_at_once_upgrade_once(bare_database: Database) -> None:
    others = [Database(bare_database.url.render_as_string(hide_password=False)) for _ in range(4)]
    # Threads hold separate locks on separately opened files, as processes do.
    with ThreadPoolExecutor(4) as pool:
        did = list(pool.map(upgrade, others))
    assert sorted(did) == [False, False, False, True]
    for other in others:
        other.close()


def test_an_upgrade_waits_for_the_process_that_holds_the_lock(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'phaseline.db'}")
    with ThreadPoolExecutor(1) as pool, open(tmp_path / "phaseline.db.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = pool.submit(upgrade, database)
        time.sleep(0.2)
        assert not waiting.done()
        assert current(database) is None
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert waiting.result() is True
    database.close()


@pytest.mark.postgres
@pytest.mark.parametrize("bare_database", ["postgresql"], indirect=True)
def test_an_upgrade_waits_for_the_server_that_holds_the_lock(bare_database: Database) -> None:
    with ThreadPoolExecutor(1) as pool:
        with bare_database.write() as holder:
            holder.execute(text(f"SELECT pg_advisory_xact_lock({migrate._ADVISORY_LOCK})"))
            waiting = pool.submit(upgrade, bare_database)
            time.sleep(0.2)
            assert not waiting.done()
        assert waiting.result() is True


def test_an_older_sqlite_database_is_copied_before_it_changes(sqlite_database: Database, scripts_with: ScriptsWith) -> None:
    _insert_a_run(sqlite_database)
    assert sqlite_database.path is not None
    upgrade(sqlite_database, scripts_with(REBUILDING))
    copies = list((sqlite_database.path.parent / "backups").iterdir())
    assert [copy.name for copy in copies] == [f"phaseline-before-upgrade-from-{head()}.db"]
    with closing(sqlite3.connect(copies[0])) as connection:
        assert connection.execute("SELECT label FROM run").fetchall() == [("kept",)]


KILLED = """
import os, signal, sys
from pathlib import Path
from sqlalchemy import event
from sqlalchemy.engine import Engine
from app.store.database import Database
from app.store.migrate import current, head, upgrade

folder, statement = Path(sys.argv[1]), 0
while True:
    statement += 1
    path = folder / f"{statement}.db"
    child = os.fork()
    if child == 0:
        seen = 0
        @event.listens_for(Engine, "after_cursor_execute")
        def kill(*_):
            global seen
            seen += 1
            if seen == statement:
                os.kill(os.getpid(), signal.SIGKILL)
        upgrade(Database(f"sqlite:///{path}"))
        os._exit(0)
    killed = os.waitpid(child, 0)[1] == signal.SIGKILL
    database = Database(f"sqlite:///{path}")
    assert current(database) == (None if killed else head()), statement
    assert upgrade(database) is killed
    database.close()
    if not killed:
        break
assert statement > 20
"""


@pytest.mark.soak
def test_a_kill_at_any_statement_leaves_the_old_schema(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=True, cwd=ROOT, timeout=120)


def test_a_new_migration_is_started_from_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "migrations"
    shutil.copytree(SCRIPTS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(migrate, "SCRIPTS", folder)
    migrate.write_revision("nothing new", "9999")
    written = (folder / "versions" / "9999_nothing_new.py").read_text()
    # Nothing differs, so nothing is done; and the file compiles.
    assert written.count("pass") == 2
    compile(written, "9999", "exec")
