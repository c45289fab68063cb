"""Runs of a database from before words and readings were kept: they stay, and nothing is made up about them."""

from dataclasses import replace

from app.store import readings, runs
from app.store.database import Database
from app.store.migrate import downgrade, upgrade
from app.store.records import NewRun
from tests.store.conftest import NOON, Store


def test_a_run_of_the_first_schema_is_read_after_the_upgrade(database: Database, store_file: Store, a_run: NewRun) -> None:
    saved = store_file([a_run])
    (run_id,) = saved.run_ids
    downgrade(database, "0001")
    assert upgrade(database) is True
    with database.read() as session:
        found = runs.get(session, run_id)
        assert readings.history(session, run_id) == ()
        assert readings.deleted_runs(session, saved.upload.id) == []
    assert found is not None
    before = replace(a_run.run, workload=replace(a_run.run.workload, shortest_length=None))
    assert (found.run, found.tags, found.notes) == (before, ("h100", "nightly"), a_run.notes)
    assert (found.said_by_file, dict(found.said_by_person), found.gone_since, found.run.dp) == (None, {}, None, None)
    with database.write() as session:
        changed = runs.update(session, run_id, {"tp": 4, "said_by_person": {"tp": 4}}, NOON)
    assert changed is not None
    assert changed.said_by_person == {"tp": 4}
