"""A file and its runs: one transaction, the same bytes once, the original unchanged."""

import hashlib
import io
import math
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from app.domain.run import Distribution, RequestCounts, Run, Workload
from app.store import runs, uploads
from app.store.database import Database
from app.store.records import NewRun, NewUpload, SavedUpload, Upload
from app.store.rows import to_rows
from app.store.tables import metadata
from app.store.uploads import CHUNK_BYTES, PreparedRun

Store = Callable[..., SavedUpload]
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def _counts(database: Database) -> dict[str, int]:
    with database.read() as session:
        return {name: session.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in metadata.tables}


def test_a_file_and_its_runs_come_back_equal(database: Database, store_file: Store, a_run: NewRun) -> None:
    second = NewRun(replace(a_run.run, label="second", started_at=None, metrics={}))
    saved = store_file([a_run, second], b"the bytes", name="Größe.json", project="team")
    assert saved.is_new
    assert saved.upload == Upload(
        saved.upload.id, "team", "Größe.json", "vllm_bench_serve", hashlib.sha256(b"the bytes").hexdigest(), 9, NOON
    )
    with database.read() as session:
        first, other = runs.get_many(session, saved.run_ids)
        assert uploads.get(session, saved.upload.id) == saved.upload
    assert (first.run, other.run) == (a_run.run, second.run)
    assert (first.upload, first.project, first.seq_in_file, other.seq_in_file) == (saved.upload, "team", 0, 1)
    assert (first.model_slug, first.hardware_slug, first.tags, first.notes) == (
        "llama-3-1-8b",
        "h100-sxm5-80gb",
        ("h100", "nightly"),
        "as usual",
    )
    assert (first.mbu, first.mfu, first.prefill_share, other.mbu) == (0.68, 0.41, 0.05, None)
    assert (first.happened_at, other.happened_at, first.created_at, first.updated_at) == (a_run.run.started_at, NOON, NOON, NOON)
    assert first.happened_at.tzinfo is not None


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES - 7])
def test_the_original_bytes_come_back_identical(database: Database, store_file: Store, a_run: NewRun, size: int) -> None:
    content = random.Random(size).randbytes(size)
    saved = store_file([a_run], content)
    with database.read() as session:
        assert uploads.original(session, saved.upload.id) == content
        assert [len(chunk) for chunk in uploads.original_chunks(session, saved.upload.id)][:-1] == [CHUNK_BYTES] * (
            max(size - 1, 0) // CHUNK_BYTES
        )
    assert (saved.upload.size, saved.upload.sha256) == (size, hashlib.sha256(content).hexdigest())


def test_the_same_bytes_again_change_nothing(database: Database, store_file: Store, a_run: NewRun) -> None:
    first = store_file([a_run, a_run], b"same")
    before = _counts(database)
    again = store_file([a_run], b"same", name="another name.json", received_at=NOON + timedelta(days=1))
    assert again == replace(first, is_new=False)
    assert _counts(database) == before


def test_the_same_bytes_in_another_project_are_another_upload(database: Database, store_file: Store, a_run: NewRun) -> None:
    first = store_file([a_run], b"same")
    other = store_file([a_run], b"same", project="other")
    assert other.is_new
    assert {first.upload.id, *first.run_ids}.isdisjoint({other.upload.id} - {first.upload.id})
    assert _counts(database)["upload"] == 2
    with database.write() as session:
        assert runs.delete(session, first.run_ids[0])
    with database.read() as session:
        assert uploads.original(session, other.upload.id) == b"same"


def test_many_at_once_with_the_same_bytes_store_one(database: Database, a_run: NewRun) -> None:
    def store(number: int) -> SavedUpload:
        return uploads.store(database, NewUpload(f"{number}.json", "f", NOON), io.BytesIO(b"same"), [a_run])

    with ThreadPoolExecutor(6) as pool:
        saved = list(pool.map(store, range(6)))
    assert sorted(one.is_new for one in saved) == [False] * 5 + [True]
    assert len({(one.upload.id, one.run_ids) for one in saved}) == 1
    assert _counts(database)["run"] == 1


def test_a_failure_on_the_way_stores_nothing(database: Database, a_run: NewRun) -> None:
    upload = NewUpload("result.json", "f", NOON)
    good, bad = to_rows(a_run, upload, 0), to_rows(a_run, upload, 1)
    # Two rows of one metric's statistic: the database refuses the second after the file and both runs were inserted.
    bad = replace(bad, metrics=(*bad.metrics, bad.metrics[0]))
    packed = uploads.pack(io.BytesIO(b"content"))

    def save() -> None:
        with database.write() as session:
            uploads.save(session, upload, packed, [PreparedRun(good, None), PreparedRun(bad, None)])

    with pytest.raises(IntegrityError):
        save()
    assert set(_counts(database).values()) == {0}


def test_a_file_without_runs_is_not_stored(database: Database) -> None:
    with pytest.raises(ValueError, match="gave no run"):
        uploads.store(database, NewUpload("a", "f", NOON), io.BytesIO(b""), [])


def test_hostile_values_are_stored_as_unknown_on_both_databases(database: Database, store_file: Store) -> None:
    run = Run(
        "f\x00\ud800",
        model="模" * 5000,
        hardware="h" * 5000,
        label="\ud800<script>",
        duration_s=math.nan,
        devices=2**63,
        workload=Workload(prompt_tokens_mean=math.inf, prompt_tokens_total=2**63 - 1, output_tokens_total=-(2**63)),
        requests=RequestCounts(completed=10**400),
        metrics={"ttft_s": Distribution(mean=math.nan, p50=math.inf, p99=1e308, n=2**64), "k" * 300: Distribution(mean=5e-324)},
        labels={"a\x00": "\udfff"},
        warnings=("w\x00",),
    )
    saved = store_file([NewRun(run, tags=("t\x00\ud800" * 200,), notes="n\x00", mbu=math.inf)], name="\x00\ud800.json", project="p" * 300)
    with database.read() as session:
        (stored,) = runs.get_many(session, saved.run_ids)
    read = stored.run
    assert (saved.upload.name, saved.upload.project, stored.upload) == ("\ufffd.json", "p" * 200, saved.upload)
    assert (read.format, read.label, read.duration_s, read.devices) == ("f\ufffd", "\ufffd<script>", None, None)
    assert (read.model, read.hardware) == ("模" * 200, "h" * 200)
    assert (read.workload.prompt_tokens_mean, read.workload.prompt_tokens_total, read.workload.output_tokens_total) == (
        None,
        2**63 - 1,
        None,
    )
    assert read.requests.completed is None
    assert read.metrics == {"ttft_s": Distribution(p99=1e308), "k" * 200: Distribution(mean=5e-324)}
    assert (read.labels, stored.notes, stored.mbu) == ({"a": "\ufffd"}, "n", None)
    assert read.warnings[0] == "w"
    assert len(read.warnings) == 5


def test_ids_that_name_nothing_give_nothing(database: Database) -> None:
    with database.read() as session:
        for upload_id in (1, 0, -1, 2**63 - 1, 2**63, 10**40):
            assert uploads.get(session, upload_id) is None
            assert uploads.original(session, upload_id) is None
        assert uploads.find(session, "default", "0" * 64) is None
