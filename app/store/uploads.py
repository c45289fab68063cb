"""Original files and the runs read from them, stored in one transaction or not at all."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import zstandard
from sqlalchemy import Select, insert, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlmodel import Session, col

from app.store.database import Database
from app.store.records import NewRun, NewUpload, SavedUpload, Upload
from app.store.requests import SampleRows, to_sample_rows
from app.store.rows import RunRows, to_rows
from app.store.tables import RunRow, UploadChunkRow, UploadRow, metadata
from app.store.telemetry import to_telemetry_row
from app.store.types import is_id

CHUNK_BYTES = 1024 * 1024
_LEVEL = 3

Also = Callable[[Session, Sequence[int]], object]


@dataclass(frozen=True)
class PackedFile:
    """A file ready to be stored: its sha256 (hex), its size in bytes and its compressed chunks of CHUNK_BYTES raw each."""

    sha256: str
    size: int
    chunks: tuple[bytes, ...]


@dataclass(frozen=True)
class PreparedRun:
    """All rows of one run, encoded."""

    rows: RunRows
    samples: SampleRows | None
    telemetry: Mapping[str, Any] | None = None


def store(database: Database, upload: NewUpload, content: BinaryIO, runs: Sequence[NewRun], also: Also | None = None) -> SavedUpload:
    """Store a file and its runs. The same bytes again in the same project change nothing and give the runs that are there.

    `also` writes in the same transaction, with the ids of the runs, new or not; what it raises undoes the storing.

    Compressing and encoding are done before the transaction, so that other writers wait for the inserts only.
    Raises ValueError when there is no run: a file that gave none is not kept.
    """
    if not runs:
        raise ValueError("a file that gave no run is not stored")
    packed = pack(content)
    with database.read() as session:
        existing = find(session, upload.project, packed.sha256)
    if existing is not None and also is None:
        return existing
    prepared = [] if existing is not None else [prepare(new, upload, seq) for seq, new in enumerate(runs)]
    with database.write() as session:
        saved = existing if existing is not None else save(session, upload, packed, prepared)
        if also is not None:
            also(session, saved.run_ids)
        return saved


def prepare(new: NewRun, upload: NewUpload, seq_in_file: int) -> PreparedRun:
    """A run as rows, encoded; `seq_in_file` counts from 0."""
    return PreparedRun(to_rows(new, upload, seq_in_file), to_sample_rows(new.run.samples), to_telemetry_row(new.run.telemetry))


def pack(content: BinaryIO) -> PackedFile:
    """Read a file to its end, hash it and compress it chunk by chunk."""
    digest = hashlib.sha256()
    compressor = zstandard.ZstdCompressor(level=_LEVEL)
    chunks: list[bytes] = []
    size = 0
    for chunk in iter(lambda: content.read(CHUNK_BYTES), b""):
        digest.update(chunk)
        size += len(chunk)
        chunks.append(compressor.compress(chunk))
    return PackedFile(digest.hexdigest(), size, tuple(chunks))


def save(session: Session, upload: NewUpload, packed: PackedFile, runs: Sequence[PreparedRun]) -> SavedUpload:
    """Insert a packed file and its runs in the session's transaction, or give what is there when somebody was faster."""
    upload_id = _insert_upload(session, upload, packed)
    if upload_id is None:
        existing = find(session, upload.project, packed.sha256)
        if existing is None:
            raise LookupError("the same file was stored and deleted again at this moment")
        return existing
    rows = [{"upload_id": upload_id, "position": position, "data": data} for position, data in enumerate(packed.chunks)]
    _insert_all(session, "upload_chunk", rows)
    run_ids = insert_runs(session, upload_id, runs)
    # In the same transaction, so that no crash between a run and its judgement loses the latter.
    _insert_all(session, "run_to_judge", [{"run_id": run_id} for run_id in run_ids])
    # Read again, since names are cleaned on their way in.
    stored = session.execute(_select_upload().where(col(UploadRow.id) == upload_id)).one()
    return SavedUpload(Upload(*stored), run_ids, is_new=True)


def find(session: Session, project: str, sha256: str) -> SavedUpload | None:
    """The upload of these bytes in this project with the ids of its runs, or None."""
    statement = _select_upload().where(col(UploadRow.project) == project, col(UploadRow.sha256) == sha256)
    row = session.execute(statement).one_or_none()
    if row is None:
        return None
    upload = Upload(*row)
    return SavedUpload(upload, run_ids(session, upload.id), is_new=False)


def run_ids(session: Session, upload_id: int) -> tuple[int, ...]:
    """The ids of the runs of a file, in the order of the file."""
    ids = select(col(RunRow.id)).where(col(RunRow.upload_id) == upload_id).order_by(col(RunRow.seq_in_file))
    return tuple(int(run_id) for run_id in session.execute(ids).scalars() if run_id)


def get(session: Session, upload_id: int) -> Upload | None:
    """The upload with this id, or None."""
    if not is_id(upload_id):
        return None
    row = session.execute(_select_upload().where(col(UploadRow.id) == upload_id)).one_or_none()
    return None if row is None else Upload(*row)


def original(session: Session, upload_id: int) -> bytes | None:
    """The bytes of the file as they came, or None when there is no such upload."""
    if get(session, upload_id) is None:
        return None
    return b"".join(original_chunks(session, upload_id))


def original_chunks(session: Session, upload_id: int) -> Iterator[bytes]:
    """The same bytes a chunk of CHUNK_BYTES at a time, one query each; the session must stay open meanwhile."""
    decompressor = zstandard.ZstdDecompressor()
    position = 0
    while (packed := session.get(UploadChunkRow, (upload_id, position))) is not None:
        yield decompressor.decompress(packed.data, max_output_size=CHUNK_BYTES)
        session.expunge(packed)
        position += 1


def _select_upload() -> Select[*tuple[Any, ...]]:
    return select(
        col(UploadRow.id),
        col(UploadRow.project),
        col(UploadRow.name),
        col(UploadRow.format),
        col(UploadRow.sha256),
        col(UploadRow.size),
        col(UploadRow.received_at),
    )


def _insert_upload(session: Session, upload: NewUpload, packed: PackedFile) -> int | None:
    """The id of the new row, None when these bytes are in the project already (also when another transaction just stored them)."""
    make = postgresql.insert if session.get_bind().dialect.name == "postgresql" else sqlite.insert
    statement = make(UploadRow).values(
        project=upload.project,
        sha256=packed.sha256,
        name=upload.name,
        size=packed.size,
        format=upload.format,
        chunk_count=len(packed.chunks),
        received_at=upload.received_at,
    )
    conflict_free = statement.on_conflict_do_nothing(index_elements=["project", "sha256"])
    return session.execute(conflict_free.returning(col(UploadRow.id))).scalar_one_or_none()


def insert_runs(session: Session, upload_id: int, runs: Sequence[PreparedRun]) -> tuple[int, ...]:
    """The ids of the new runs of a file, in order. Each table is filled in one go, whatever the number of runs."""
    if not runs:
        return ()
    table = metadata.tables["run"]
    columns = [{**run.rows.columns, "upload_id": upload_id} for run in runs]
    found = session.execute(insert(table).returning(table.c.id, sort_by_parameter_order=True), columns).scalars()
    run_ids = tuple(int(run_id) for run_id in found)
    numbered = list(zip(run_ids, runs, strict=True))
    tags = [{"run_id": run_id, "tag": tag, "project": run.rows.columns["project"]} for run_id, run in numbered for tag in run.rows.tags]
    _insert_all(session, "run_tag", tags)
    insert_parts(session, numbered)
    return run_ids


def insert_parts(session: Session, numbered: Sequence[tuple[int, PreparedRun]]) -> None:
    """The figures, samples and telemetry of runs, beside their rows."""
    _insert_all(session, "metric_value", [{**row, "run_id": run_id} for run_id, run in numbered for row in run.rows.metrics])
    watched = [(run_id, run.telemetry) for run_id, run in numbered if run.telemetry is not None]
    _insert_all(session, "run_telemetry", [{**telemetry, "run_id": run_id} for run_id, telemetry in watched])
    sampled = [(run_id, run.samples) for run_id, run in numbered if run.samples is not None]
    _insert_all(session, "request_samples", [{**samples.head, "run_id": run_id} for run_id, samples in sampled])
    _insert_all(session, "sample_chunk", [{**row, "run_id": run_id} for run_id, samples in sampled for row in samples.chunks])
    _insert_all(session, "sample_histogram", [{**row, "run_id": run_id} for run_id, samples in sampled for row in samples.histograms])


def _insert_all(session: Session, table: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        session.execute(insert(metadata.tables[table]), rows)
