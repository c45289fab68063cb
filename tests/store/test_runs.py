"""Stored runs: read, changed, deleted."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, text

from app.domain.run import Distribution, Flag, Run
from app.store import runs, uploads
from app.store.database import Database
from app.store.records import NewRun, RunChanges, SavedUpload, StoredRun
from app.store.tables import metadata

Store = Callable[..., SavedUpload]
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(hours=1)
NOTHING = (1, 0, -5, 2**63 - 1, 2**63, 10**40)


def _get(database: Database, run_id: int) -> StoredRun:
    with database.read() as session:
        stored = runs.get(session, run_id)
    assert stored is not None
    return stored


def _update(database: Database, run_id: int, changes: RunChanges) -> StoredRun:
    with database.write() as session:
        stored = runs.update(session, run_id, changes, LATER)
    assert stored is not None
    return stored


def test_ids_that_name_nothing_give_nothing(database: Database) -> None:
    with database.write() as session:
        for run_id in NOTHING:
            assert runs.get(session, run_id) is None
            assert runs.update(session, run_id, {"label": "x"}, LATER) is None
            assert runs.delete(session, run_id) is False
        assert runs.get_many(session, NOTHING) == ()
        assert runs.get_many(session, ()) == ()


def test_several_come_in_the_order_asked_for_each_once(database: Database, store_file: Store, a_run: NewRun) -> None:
    first, second, third = store_file([a_run, a_run, a_run]).run_ids
    with database.read() as session:
        found = runs.get_many(session, (third, first, 2**70, first, second + 100))
    assert [stored.id for stored in found] == [third, first]


def test_reading_takes_the_same_number_of_queries_however_many(database: Database, store_file: Store, a_run: NewRun) -> None:
    ids = [run_id for _ in range(4) for run_id in store_file([a_run, a_run]).run_ids]

    def queries(wanted: list[int]) -> int:
        seen: list[str] = []

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if statement.startswith("SELECT"):
                seen.append(statement)

        with database.read() as session:
            # This database's own statements: an application of other tests may keep house in the same process.
            engine = session.connection().engine
            event.listen(engine, "before_cursor_execute", note)
            found = runs.get_many(session, wanted)
            event.remove(engine, "before_cursor_execute", note)
        assert len(found) == len(wanted)
        return len(seen)

    assert queries(ids[:1]) == queries(ids) == 5


def test_a_change_touches_what_it_names_and_nothing_else(database: Database, store_file: Store, a_run: NewRun) -> None:
    (run_id,) = store_file([a_run]).run_ids
    before = _get(database, run_id)
    after = _update(
        database, run_id, {"label": None, "model": "Qwen3-8B", "model_slug": None, "tp": 4, "tags": ("b", "a", "b"), "mbu": 0.5}
    )
    assert after.run == replace(before.run, label=None, model="Qwen3-8B", tp=4)
    assert (after.model_slug, after.tags, after.mbu, after.mfu, after.updated_at) == (None, ("a", "b"), 0.5, 0.41, LATER)
    assert replace(after, run=before.run, model_slug=before.model_slug, tags=before.tags, mbu=before.mbu, updated_at=NOON) == before
    assert _get(database, run_id) == after


def test_every_key_of_a_change_can_be_set(database: Database, store_file: Store, a_run: NewRun) -> None:
    changes: RunChanges = {
        "label": "l", "notes": "n", "tags": (), "engine": "sglang", "engine_version": "1", "model": "m", "model_slug": "ms",
        "hardware": "h", "hardware_slug": "hs", "devices": 8, "tp": 2, "pp": 3, "ep": 4, "dp": 5, "weight_dtype": "fp8", "kv_dtype": "fp8",
        "said_by_person": {"tp": 2},
        "flags": (Flag("f", "e"),), "warnings": ("w",), "mbu": 0.1, "mfu": 0.2, "prefill_share": 0.3,
    }  # fmt: skip
    assert changes.keys() == RunChanges.__annotations__.keys()
    (run_id,) = store_file([a_run]).run_ids
    stored = _update(database, run_id, changes)
    for name, value in changes.items():
        assert getattr(stored if hasattr(stored, name) else stored.run, name) == value


def test_a_change_is_found_by_search_and_by_tag(database: Database, store_file: Store, a_run: NewRun) -> None:
    (run_id,) = store_file([a_run]).run_ids
    _update(database, run_id, {"label": "Überraschung", "tags": ("fresh",)})
    with database.read() as session:
        search = session.execute(text("SELECT search FROM run")).scalar_one()
        assert session.execute(text("SELECT tag, project FROM run_tag")).all() == [("fresh", "default")]
    assert "überraschung" in search
    assert "fresh" in search
    assert "result.json" in search
    assert "nightly" not in search


def test_a_change_is_cleaned_as_an_upload_is(database: Database, store_file: Store, a_run: NewRun) -> None:
    (run_id,) = store_file([a_run]).run_ids
    stored = _update(database, run_id, {"label": "a\x00\ud800", "model": "m" * 999, "mbu": float("nan")})
    assert (stored.run.label, stored.run.model, stored.mbu) == ("a\ufffd", "m" * 200, None)


def test_two_changes_at_once_both_count(database: Database, store_file: Store, a_run: NewRun) -> None:
    (run_id,) = store_file([NewRun(a_run.run)]).run_ids

    def add(tag: str) -> None:
        with database.write() as session:
            stored = runs.update(session, run_id, {}, LATER)
            assert stored is not None
            runs.update(session, run_id, {"tags": (*stored.tags, tag)}, LATER)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(add, "abcdef"))
    assert _get(database, run_id).tags == tuple("abcdef")


def test_a_change_waits_for_the_one_before_and_builds_on_it(database: Database, store_file: Store, a_run: NewRun) -> None:
    (run_id,) = store_file([a_run]).run_ids
    with ThreadPoolExecutor(1) as pool:
        with database.write() as session:
            runs.update(session, run_id, {"label": "changed first"}, LATER)
            second = pool.submit(_update, database, run_id, {"model": "changed-second"})
            time.sleep(0.2)
            assert not second.done()
        assert second.result().run.label == "changed first"
    with database.read() as session:
        search = session.execute(text("SELECT search FROM run")).scalar_one()
    # The text that searches look into is made of both.
    assert "changed first" in search
    assert "changed-second" in search


def test_deleting_takes_everything_of_the_run_and_the_file_with_the_last(
    database: Database, store_file: Store, sampled_run: NewRun
) -> None:
    saved = store_file([sampled_run, sampled_run])
    first, second = saved.run_ids
    with database.write() as session:
        assert runs.delete(session, first)
    with database.read() as session:
        assert runs.get(session, first) is None
        assert runs.get(session, second) is not None
        assert uploads.original(session, saved.upload.id) is not None
    with database.write() as session:
        assert runs.delete(session, second)
        assert not runs.delete(session, second)
    with database.read() as session:
        assert {name: session.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in metadata.tables} == dict.fromkeys(
            metadata.tables, 0
        )


def test_the_runs_of_a_file_deleted_at_once_leave_no_file(database: Database, store_file: Store) -> None:
    saved = store_file([NewRun(Run("f"))] * 8)

    def delete(run_id: int) -> bool:
        with database.write() as session:
            return runs.delete(session, run_id)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(delete, saved.run_ids))
    with database.read() as session:
        assert uploads.get(session, saved.upload.id) is None


def test_an_id_is_never_used_again(database: Database, store_file: Store, a_run: NewRun) -> None:
    first = store_file([a_run])
    with database.write() as session:
        runs.delete(session, first.run_ids[0])
    again = store_file([a_run])
    assert again.run_ids[0] > first.run_ids[0]
    assert again.upload.id > first.upload.id


@pytest.mark.parametrize("count", [1, 40])
def test_runs_of_one_file_keep_their_own_metrics(database: Database, store_file: Store, count: int) -> None:
    saved = store_file([NewRun(Run("f", metrics={"ttft_s": Distribution(mean=float(number))})) for number in range(count)])
    with database.read() as session:
        found = runs.get_many(session, saved.run_ids)
    assert [stored.run.metrics["ttft_s"] for stored in found] == [Distribution(mean=float(number)) for number in range(count)]
    assert [stored.seq_in_file for stored in found] == list(range(count))
