"""Whether a database is sound and can be written, told in a sentence."""

from pathlib import Path

import pytest
from sqlalchemy import text

from app.store.database import Database, DatabaseUnusable
from app.store.health import integrity_problem, write_problem


def test_a_sound_database_has_no_problem(database: Database) -> None:
    assert write_problem(database) is None
    assert integrity_problem(database) is None


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    path = tmp_path / "phaseline.db"
    path.write_bytes(b"this is a text file, and long enough to be looked at" * 100)
    database = Database(f"sqlite:///{path}")
    assert "restore a backup" in (integrity_problem(database) or "")
    assert "restore a backup" in (write_problem(database) or "")
    with pytest.raises(DatabaseUnusable, match="is no database"), database.read() as session:
        session.execute(text("SELECT 1"))
    database.close()


def test_damage_inside_the_file_is_told(sqlite_database: Database) -> None:
    assert sqlite_database.path is not None
    sqlite_database.close()
    content = bytearray(sqlite_database.path.read_bytes())
    # Overwrite pages behind the first, which holds the header and the schema.
    content[8192:40960] = b"\xff" * (40960 - 8192)
    sqlite_database.path.write_bytes(bytes(content))
    assert "damaged" in (integrity_problem(sqlite_database) or "")


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    assert "cannot be opened" in (write_problem(Database(f"sqlite:///{tmp_path / 'none' / 'x.db'}")) or "")


@pytest.mark.postgres
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_a_server_that_only_reads_is_told(database: Database) -> None:
    with database.write() as session:
        name = session.execute(text("SELECT current_database()")).scalar_one()
        session.execute(text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
    database.close()
    assert "read-only" in (write_problem(database) or "")
