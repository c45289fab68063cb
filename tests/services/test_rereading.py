"""Files read again: seen first, then changed whole; ids, notes, tags and people's words stay."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.domain.errors import Conflict, ImportRefused, NotFound
from app.domain.run import Run
from app.formats import current_versions
from app.services import rereading, runs
from app.services.context import Context
from app.services.rereading import history, is_outdated, outdated, preview, reading_json, reread, reread_files
from app.services.storing import store_files
from tests.result_files import data_of, served, served_file, served_in_detail
from tests.services.improved import improve, refuse, slower

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 30, 12, tzinfo=UTC)


def sweep(context: Context, clients: tuple[int, ...] = (1, 2, 4), **fields: Any) -> tuple[int, ...]:
    """A file with a run for each number of clients."""
    lines = b"\n".join(data_of(served(max_concurrency=each, tokenizer_id="sweep")) for each in clients)
    return store_files(context, [("sweep.jsonl", lines)], fields, NOON).run_ids


def summary(context: Context, run_id: int) -> dict[str, Any]:
    return runs.view(context, run_id).summary()


def test_a_file_that_was_just_read_has_nothing_to_change(context: Context) -> None:
    for number, data in enumerate((served_file(1), data_of(served_in_detail()))):
        (run_id,) = store_files(context, [(f"{number}.json", data)], {"hardware": "h100-sxm5-80gb", "tp": 2}, NOON).run_ids
        reading = preview(context, run_id)
        assert [(each.run_id, each.outcome, each.changes) for each in reading.runs] == [(run_id, "same", ())]
        assert not reading.is_newer
        assert not is_outdated(runs.view(context, run_id).stored)
    assert outdated(context) == ()


def test_a_preview_says_what_would_change_and_stores_nothing(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sweep(context)
    before = [summary(context, each) for each in ids]
    version = improve(monkeypatch, slower)
    reading = preview(context, ids[1])
    assert (reading.from_version, reading.to_version, reading.applied) == (version - 1, version, False)
    assert [each.run_id for each in reading.of("changed")] == list(ids)
    told = {(change.part, change.key): (change.old, change.new) for change in reading.runs[0].changes}
    assert told["metric", "ttft_s.mean"] == (0.05, 0.1)
    assert told["warning", "read better"] == (None, "read better")
    now = [summary(context, each) for each in ids]
    assert [{**each, "outdated": False} for each in now] == before
    assert all(each["outdated"] for each in now)
    assert [(file.run_id, file.runs, file.from_version) for file in outdated(context)] == [(ids[0], 3, version - 1)]


def test_reading_again_keeps_numbers_notes_tags_and_words(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sweep(context, hardware="h100-sxm5-80gb", tags="nightly")
    runs.correct(context, ids[0], {"notes": "mine", "label": "my own", "tags": ["a", "b"], "tp": 2}, NOON)
    before = [summary(context, each) for each in ids]
    version = improve(monkeypatch, slower)
    reading = reread(context, ids[2], LATER)
    assert reading.applied
    for run_id, old in zip(ids, before, strict=True):
        new = summary(context, run_id)
        kept = ("id", "url", "notes", "tags", "label", "said", "project", "hardware", "tp", "hardware_slug", "workload", "file")
        assert {key: new[key] for key in kept} == {key: old[key] for key in kept}
        assert new["metrics"]["ttft_s"]["mean"] == 0.1
        assert new["warnings"][0] == "read better"
        assert (new["importer_version"], new["outdated"]) == (version, False)
    assert outdated(context) == ()
    assert [each.outcome for each in preview(context, ids[0]).runs] == ["same"] * 3


def test_it_equals_an_import_by_the_importer_of_now(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"hardware": "l4", "model": "llama-3-1-70b", "tp": 2}
    (old,) = store_files(context, [("old.json", served_file(1))], fields, NOON).run_ids
    improve(monkeypatch, slower)
    (fresh,) = store_files(context, [("old.json", served_file(2))], fields, NOON).run_ids
    reread(context, old, LATER)
    differing = {key for key, value in summary(context, old).items() if value != summary(context, fresh)[key]}
    assert differing <= {"id", "url", "labels"}  # the tokenizer makes the bytes differ
    views = runs.views(context, (old, fresh))
    assert views[0].stored.mbu == views[1].stored.mbu
    assert views[0].stored.prefill_share == views[1].stored.prefill_share


def test_samples_are_those_of_the_new_reading(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    (run_id,) = store_files(context, [("d.json", data_of(served_in_detail()))], {}, NOON).run_ids

    def without_the_first(found: list[Run]) -> list[Run]:
        samples = found[0].samples
        assert samples is not None
        columns = {name: getattr(samples, name)[1:] for name in ("ok", "prompt_tokens", "output_tokens", "ttft_s", "e2e_s")}
        return [replace(found[0], samples=replace(samples, **columns, chunk_gap_counts=samples.chunk_gap_counts[1:], errors=()))]

    improve(monkeypatch, without_the_first)
    reread(context, run_id, LATER)
    samples = runs.samples(context, run_id)
    assert samples is not None
    assert samples.size == 4


def test_what_changed_is_remembered(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    (run_id,) = store_files(context, [("a.json", served_file(1))], {}, NOON).run_ids
    first = improve(monkeypatch, slower)
    reread(context, run_id, LATER)
    second = improve(monkeypatch, slower)
    reread(context, run_id, LATER)
    latest, earliest = history(context, run_id)
    assert (earliest.from_version, earliest.to_version, latest.from_version, latest.to_version) == (first - 1, first, first, second)
    assert {"part": "metric", "key": "ttft_s.mean", "kind": "changed", "old": 0.05, "new": 0.1} in earliest.changes
    assert {"part": "metric", "key": "ttft_s.mean", "kind": "changed", "old": 0.1, "new": 0.2} in latest.changes


def test_a_run_that_is_gone_is_kept_and_marked(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sweep(context)
    version = improve(monkeypatch, lambda found: found[1:])
    reading = reread(context, ids[0], LATER)
    assert [each.run_id for each in reading.of("gone")] == [ids[0]]
    gone = summary(context, ids[0])
    assert (gone["gone_since"], gone["importer_version"], gone["outdated"]) == (version, version - 1, False)
    assert [summary(context, each)["workload"]["concurrency"] for each in ids[1:]] == [2, 4]


def test_a_run_that_is_gone_goes_when_asked(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sweep(context)
    improve(monkeypatch, lambda found: found[1:])
    reread(context, ids[1], LATER, remove_gone=True)
    with pytest.raises(NotFound):
        runs.view(context, ids[0])
    assert [each.run_id for each in preview(context, ids[1]).runs] == list(ids[1:])


def test_a_marked_run_that_comes_back_is_marked_no_longer(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sweep(context)
    version = improve(monkeypatch, lambda found: found[1:])
    reread(context, ids[0], LATER)
    monkeypatch.undo()
    improve(monkeypatch, lambda found: found)
    with context.database.write() as session:
        session.connection().exec_driver_sql(f"UPDATE run SET importer_version = {version - 2}, gone_since = {version - 1}")
    assert {file.runs for file in outdated(context)} == {3}
    reread(context, ids[0], LATER)
    assert "gone_since" not in summary(context, ids[0])
    assert [summary(context, each)["workload"]["concurrency"] for each in ids] == [1, 2, 4]


def test_new_runs_come_with_what_was_said_about_all_others(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sweep(context, (1, 2), hardware="l4", tags="nightly")
    runs.correct(context, ids[0], {"tp": 2, "tags": ["nightly", "first"]}, NOON)

    def with_another(found: list[Run]) -> list[Run]:
        return [*found, replace(found[-1], workload=replace(found[-1].workload, concurrency=8))]

    improve(monkeypatch, with_another)
    reading = reread(context, ids[0], LATER)
    (added,) = reading.of("added")
    assert added.run_id is not None
    new = summary(context, added.run_id)
    assert (new["workload"]["concurrency"], new["hardware"], new["tp"], new["tags"]) == (8, "l4", None, ["nightly"])
    assert reading_json(reading)["runs"][-1]["url"] == f"/runs/{added.run_id}"
    assert len(preview(context, ids[0]).runs) == 3


def test_a_deleted_run_does_not_come_back(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sweep(context)
    runs.delete(context, ids[1])
    assert preview(context, ids[0]).left_out == 1
    improve(monkeypatch, slower)
    reading = reread(context, ids[0], LATER)
    assert ([each.run_id for each in reading.runs], reading.left_out) == ([ids[0], ids[2]], 1)
    assert [summary(context, each)["workload"]["concurrency"] for each in (ids[0], ids[2])] == [1, 4]


def test_a_file_that_is_refused_now_stays_as_it_is(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sweep(context)
    before = [runs.view(context, each).stored for each in ids]
    improve(monkeypatch, refuse)
    assert preview(context, ids[0]).refused == "it is no longer read."
    with pytest.raises(ImportRefused, match=r"sweep\.jsonl is refused now, so its runs stay as they are: it is no longer read\."):
        reread(context, ids[0], LATER)
    assert [runs.view(context, each).stored for each in ids] == before


def meanwhile(context: Context, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Somebody does something between the reading of a file and its storing."""
    plan = rereading._plan

    def planned(*arguments: Any) -> Any:
        made = plan(*arguments)
        act()
        return made

    monkeypatch.setattr(rereading, "_plan", planned)


def test_a_change_meanwhile_wins_and_nothing_is_half_done(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sweep(context)
    improve(monkeypatch, slower)
    meanwhile(context, monkeypatch, lambda: runs.correct(context, ids[2], {"tp": 8}, LATER))
    with pytest.raises(Conflict, match="changed or deleted meanwhile"):
        reread(context, ids[0], LATER)
    monkeypatch.undo()
    assert [summary(context, each)["metrics"]["ttft_s"]["mean"] for each in ids] == [0.05] * 3
    assert summary(context, ids[2])["tp"] == 8
    assert history(context, ids[0]) == ()


def test_a_failure_in_the_middle_leaves_every_run(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = sweep(context)
    before = [runs.view(context, each).stored for each in ids]
    improve(monkeypatch, slower)
    replace_one, done = rereading.readings._replace, []

    def failing(*arguments: Any) -> None:
        if done:
            raise RuntimeError("pulled the plug")
        replace_one(*arguments)
        done.append(1)

    monkeypatch.setattr(rereading.readings, "_replace", failing)
    with pytest.raises(RuntimeError, match="pulled the plug"):
        reread(context, ids[0], LATER)
    assert [runs.view(context, each).stored for each in ids] == before


def test_where_nobody_noted_who_said_what_unexplained_words_are_a_persons(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    (run_id,) = store_files(context, [("a.json", served_file(1, tp=2))], {"hardware": "l4", "tp": 4}, NOON).run_ids
    with context.database.write() as session:
        session.connection().exec_driver_sql("UPDATE run SET said_by_file = NULL, said_by_person = NULL")
    improve(monkeypatch, slower)
    reread(context, run_id, LATER)
    words = summary(context, run_id)["said"]
    assert words["person"] == {"hardware": "l4", "tp": 4}
    assert words["file"] == {"model": "meta-llama/Llama-3.1-8B", "engine": "vllm", "tp": 2}


def test_many_files_each_on_its_own(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [store_files(context, [(f"{number}.json", served_file(number))], {}, NOON).run_ids[0] for number in range(3)]

    def all_but_the_second(found: list[Run]) -> list[Run]:
        return refuse(found) if "tokenizer-1" in found[0].labels.values() else slower(found)

    improve(monkeypatch, all_but_the_second)
    dry = reread_files(context, None, LATER, dry_run=True)
    assert [each["applied"] for each in dry["files"]] == [False, False, False]
    assert dry["refused"] == [{"file": "1.json", "reason": "it is no longer read."}]
    assert len(outdated(context)) == 3
    report = reread_files(context, None, LATER)
    assert [each["file"] for each in report["files"]] == ["0.json", "2.json"]
    assert [each["file"] for each in report["refused"]] == ["1.json"]
    assert [file.run_id for file in outdated(context)] == [ids[1]]
    with pytest.raises(NotFound):
        reread_files(context, [999], LATER)


def test_a_run_that_is_not_there(context: Context) -> None:
    with pytest.raises(NotFound, match="There is no run 7"):
        preview(context, 7)


def test_versions_are_those_of_the_registry() -> None:
    assert current_versions()["vllm_bench_serve"] >= 2
