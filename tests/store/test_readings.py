"""Readings on both databases: what is due, what takes the place of what, and nothing by halves."""

import io
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from app.domain.errors import Conflict
from app.domain.run import RequestSamples, Run
from app.store import readings, requests, run_list, runs, uploads
from app.store.database import Database
from app.store.readings import NewReading, Replacement, apply, count_outdated, deleted_runs, history, outdated
from app.store.records import NewRun, NewUpload, RunFilters, StoredRun
from app.store.rows import as_stored, to_rows
from tests.store.conftest import NOON, Store

LATER = datetime(2026, 6, 1, 12, tzinfo=UTC)
VERSIONS = {"vllm_bench_serve": 3, "llama_bench": 1}
CHANGES = [{"part": "metric", "key": "ttft_s.mean", "kind": "changed", "old": 0.1, "new": 0.2}]


def stored(database: Database, run_id: int) -> StoredRun:
    with database.read() as session:
        found = runs.get(session, run_id)
    assert found is not None
    return found


def reading(database: Database, run_ids: tuple[int, ...], new: Mapping[int, NewRun], **changes: object) -> NewReading:
    """A reading by version 3 that puts `new` in the place of stored runs."""
    seen = {each: stored(database, each) for each in run_ids}
    upload = seen[run_ids[0]].upload
    target = NewUpload(upload.name, upload.format, upload.received_at, upload.project)
    replacements = [
        Replacement(each, uploads.prepare(run, target, 0), seen[each].run.importer_version, CHANGES) for each, run in new.items()
    ]
    made = NewReading(
        upload.id, "vllm_bench_serve", 3, {each: found.updated_at for each, found in seen.items()}, replacements, (), (), False
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_what_an_older_importer_read_is_due(database: Database, store_file: Store, a_run: NewRun) -> None:
    def version(number: int, **changes: object) -> NewRun:
        return replace(a_run, run=replace(a_run.run, importer_version=number, **changes))  # type: ignore[arg-type]

    first = store_file([version(2), version(1), version(3)], name="a.json").run_ids
    store_file([version(3)])
    store_file([version(0, format="unknown")])
    second = store_file([version(2)], name="b.json", project="other").run_ids
    with database.read() as session:
        due = outdated(session, VERSIONS)
        assert [(file.name, file.project, file.from_version, file.run_id, file.runs) for file in due] == [
            ("a.json", "default", 1, first[0], 2),
            ("b.json", "other", 2, second[0], 1),
        ]
        assert outdated(session, VERSIONS, after=due[0].upload_id) == due[1:]
        assert outdated(session, VERSIONS, limit=1) == due[:1]
        assert count_outdated(session, VERSIONS) == 2
        assert outdated(session, {}) == ()
        listed = run_list.page(session, RunFilters(read_before=VERSIONS), sort="id").items
    assert [item.id for item in listed] == [first[0], first[1], second[0]]


def test_a_replacement_keeps_what_is_a_persons(database: Database, store_file: Store, sampled_run: NewRun, a_run: NewRun) -> None:
    (run_id,) = store_file([sampled_run]).run_ids
    before = stored(database, run_id)
    new = NewRun(
        Run("vllm_bench_serve", model="other", importer_version=3), tags=("not these",), notes="nor this", said_by_file={"model": "other"}
    )
    with database.write() as session:
        assert apply(session, reading(database, (run_id,), {run_id: new}), LATER) == ()
    after = stored(database, run_id)
    assert (after.tags, after.notes, after.created_at, after.project, after.upload.id) == (
        before.tags, before.notes, before.created_at, before.project, before.upload.id,
    )  # fmt: skip
    assert (after.run, after.said_by_file, after.updated_at) == (new.run, {"model": "other"}, LATER)
    with database.read() as session:
        assert requests.load(session, run_id) is None
        assert [(each.from_version, each.to_version, list(each.changes)) for each in history(session, run_id)] == [(1, 3, CHANGES)]
        assert [item.id for item in run_list.page(session, RunFilters(q="other nightly")).items] == [run_id]
        assert run_list.page(session, RunFilters(q="llama-3.1")).items == ()
    with database.write() as session:
        runs.delete(session, run_id)
        assert session.execute(text("SELECT count(*) FROM run_reading")).scalar_one() == 0


def test_samples_are_replaced(database: Database, store_file: Store, sampled_run: NewRun, samples: RequestSamples) -> None:
    (run_id,) = store_file([sampled_run]).run_ids
    slower = replace(samples, ttft_s=samples.ttft_s * 2)
    new = replace(sampled_run, run=replace(sampled_run.run, samples=slower, importer_version=3))
    with database.write() as session:
        apply(session, reading(database, (run_id,), {run_id: new}), LATER)
    with database.read() as session:
        found = requests.load(session, run_id)
    assert found is not None
    assert found.ttft_s[0] == pytest.approx(0.2)


def test_gone_runs_are_marked_or_removed_and_new_ones_come(database: Database, store_file: Store, a_run: NewRun) -> None:
    ids = store_file([a_run, a_run, a_run]).run_ids
    target = NewUpload("result.json", "vllm_bench_serve", NOON)
    with database.write() as session:
        (added,) = apply(session, reading(database, ids, {}, gone=ids[:1], added=(uploads.prepare(a_run, target, 3),)), LATER)
    assert stored(database, ids[0]).gone_since == 3
    assert stored(database, added).tags == ("h100", "nightly")
    with database.read() as session:
        assert uploads.run_ids(session, stored(database, added).upload.id) == (*ids, added)
    with database.write() as session:
        apply(session, reading(database, (*ids, added), {}, gone=ids[:1], remove_gone=True), LATER)
    with database.read() as session:
        assert runs.get(session, ids[0]) is None
        assert deleted_runs(session, stored(database, added).upload.id) == []


def test_a_run_changed_meanwhile_stops_it_all(database: Database, store_file: Store, a_run: NewRun) -> None:
    ids = store_file([a_run, a_run]).run_ids
    made = reading(database, ids, {ids[0]: replace(a_run, run=replace(a_run.run, model="new"))})
    with database.write() as session:
        runs.update(session, ids[1], {"notes": "n"}, LATER)
    before = [stored(database, each) for each in ids]
    with pytest.raises(Conflict, match="meanwhile"), database.write() as session:
        apply(session, made, LATER)
    with database.write() as session:
        runs.delete(session, ids[1])
    with pytest.raises(Conflict, match="meanwhile"), database.write() as session:
        apply(session, reading(database, ids[:1], {}, seen=made.seen), LATER)
    assert stored(database, ids[0]) == before[0]


def test_a_failure_half_way_leaves_what_was_there(
    database: Database, store_file: Store, sampled_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = store_file([sampled_run]).run_ids
    before = stored(database, run_id)
    made = reading(database, (run_id,), {run_id: replace(sampled_run, run=replace(sampled_run.run, model="new"))})

    def failing(*_: object) -> None:
        raise RuntimeError("half way")

    monkeypatch.setattr(readings, "insert_parts", failing)
    with pytest.raises(RuntimeError, match="half way"), database.write() as session:
        apply(session, made, LATER)
    assert stored(database, run_id) == before
    with database.read() as session:
        assert requests.load(session, run_id) is not None


def test_a_file_remembers_its_deleted_runs(database: Database, store_file: Store, a_run: NewRun) -> None:
    saved = store_file([replace(a_run, said_by_file={"model": "m"}), a_run])
    with database.write() as session:
        runs.delete(session, saved.run_ids[0])
    with database.read() as session:
        (point,) = deleted_runs(session, saved.upload.id)
    assert point[0][0] == "m"
    with database.write() as session:
        runs.delete(session, saved.run_ids[1])
        assert uploads.get(session, saved.upload.id) is None
        assert deleted_runs(session, saved.upload.id) == []


def test_a_run_is_known_before_it_is_stored(database: Database, a_run: NewRun) -> None:
    odd = replace(a_run.run, labels={"a": "x\x00"}, warnings=("w\ud800",), devices=2**70)
    upload = NewUpload("n", "f", NOON)
    saved = uploads.store(database, upload, io.BytesIO(b"x"), [replace(a_run, run=odd)])
    assert as_stored(to_rows(replace(a_run, run=odd), upload, 0)) == stored(database, saved.run_ids[0]).run
