"""Runs that are read again from their files: which are due, what replaces them, and what is remembered of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, false, func, insert, or_, select, update
from sqlalchemy import delete as delete_from
from sqlmodel import Session, col

from app.domain.errors import Conflict
from app.store.rows import search_text
from app.store.runs import locked, tags_of
from app.store.tables import RunReadingRow, RunRow, UploadRow, metadata
from app.store.uploads import PreparedRun, insert_parts, insert_runs

_KEPT_COLUMNS = frozenset({"notes", "created_at", "updated_at", "project", "search"})
_PARTS = ("metric_value", "request_samples", "run_telemetry")


@dataclass(frozen=True)
class OutdatedFile:
    """A file whose runs an older importer read: the lowest version among them, the first of them, and how many there are."""

    upload_id: int
    name: str
    project: str
    format: str
    from_version: int
    run_id: int
    runs: int


@dataclass(frozen=True)
class Reading:
    """One time that a run was read again."""

    read_at: datetime
    from_version: int
    to_version: int
    changes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Replacement:
    """What takes the place of a stored run that was read by `from_version`; `changes` as plain data."""

    run_id: int
    prepared: PreparedRun
    from_version: int
    changes: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class NewReading:
    """What reading a file again gives. `seen` says when each of its runs was last changed as the reader saw them.

    `gone` are runs that the file no longer gives: they are marked with `version`, or with `remove_gone` deleted.
    """

    upload_id: int
    format: str
    version: int
    seen: Mapping[int, datetime]
    replacements: Sequence[Replacement]
    added: Sequence[PreparedRun]
    gone: Sequence[int]
    remove_gone: bool


def older(versions: Mapping[str, int]) -> ColumnElement[bool]:
    """True for the runs that an older importer read than `versions` names for their format."""
    return or_(
        false(),
        *(
            and_(
                col(RunRow.format) == name,
                col(RunRow.importer_version) < version,
                or_(col(RunRow.gone_since).is_(None), col(RunRow.gone_since) < version),
            )
            for name, version in versions.items()
        ),
    )


def outdated(session: Session, versions: Mapping[str, int], after: int = 0, limit: int = 100) -> tuple[OutdatedFile, ...]:
    """Files with runs that an older importer read, by upload, from the one after `after` on; one query."""
    grouped = (col(UploadRow.id), col(UploadRow.name), col(UploadRow.project), col(UploadRow.format))
    statement = (
        select(*grouped, func.min(col(RunRow.importer_version)), func.min(col(RunRow.id)), func.count())
        .join(RunRow, col(RunRow.upload_id) == col(UploadRow.id))
        .where(older(versions), col(UploadRow.id) > after)
        .group_by(*grouped)
        .order_by(col(UploadRow.id))
        .limit(limit)
    )
    return tuple(OutdatedFile(*row) for row in session.execute(statement))


def count_outdated(session: Session, versions: Mapping[str, int]) -> int:
    """How many files have runs that an older importer read."""
    statement = select(func.count(func.distinct(col(RunRow.upload_id)))).where(older(versions))
    return int(session.execute(statement).scalar_one())


def deleted_runs(session: Session, upload_id: int) -> list[Any]:
    """What is remembered of the runs of a file that a person deleted."""
    return list(session.execute(select(col(UploadRow.deleted_runs)).where(col(UploadRow.id) == upload_id)).scalar_one_or_none() or [])


def history(session: Session, run_id: int) -> tuple[Reading, ...]:
    """Every time that a run was read again, the latest first."""
    columns = (col(RunReadingRow.read_at), col(RunReadingRow.from_version), col(RunReadingRow.to_version), col(RunReadingRow.changes))
    statement = select(*columns).where(col(RunReadingRow.run_id) == run_id).order_by(col(RunReadingRow.id).desc())
    return tuple(Reading(at, old, new, tuple(made)) for at, old, new, made in session.execute(statement))


def apply(session: Session, reading: NewReading, now: datetime) -> tuple[int, ...]:
    """Put a new reading of a file in the place of the old one, in the session's transaction; the ids of the runs that came.

    Ids, notes, tags, projects and times of storing stay. Raises Conflict when a run of the file was changed, added or deleted meanwhile.
    """
    session.execute(select(col(UploadRow.id)).where(col(UploadRow.id) == reading.upload_id).with_for_update())
    ids = session.execute(select(col(RunRow.id)).where(col(RunRow.upload_id) == reading.upload_id)).scalars()
    there = {found.id: found.updated_at for found in locked(session, tuple(int(run_id) for run_id in ids if run_id))}
    if there != reading.seen:
        raise Conflict("A run of this file was changed or deleted meanwhile: look at the preview again, then read the file again.")
    session.execute(update(UploadRow).where(col(UploadRow.id) == reading.upload_id).values(format=reading.format))
    for replacement in reading.replacements:
        _replace(session, reading, replacement, now)
    if reading.gone and reading.remove_gone:
        session.execute(delete_from(RunRow).where(col(RunRow.id).in_(reading.gone)))
    elif reading.gone:
        marked = update(RunRow).where(col(RunRow.id).in_(reading.gone)).values(gone_since=reading.version, updated_at=now)
        session.execute(marked)
    return insert_runs(session, reading.upload_id, reading.added)


def _replace(session: Session, reading: NewReading, replacement: Replacement, now: datetime) -> None:
    run_id, rows = replacement.run_id, replacement.prepared.rows
    for table in _PARTS:
        held = metadata.tables[table]
        session.execute(delete_from(held).where(held.c.run_id == run_id))
    tags = tags_of(session, (run_id,)).get(run_id, ())
    name = session.execute(select(col(UploadRow.name)).where(col(UploadRow.id) == reading.upload_id)).scalar_one()
    columns = {key: value for key, value in rows.columns.items() if key not in _KEPT_COLUMNS}
    columns |= {"search": search_text(rows.columns, tags, name), "gone_since": None, "updated_at": now}
    session.execute(update(RunRow).where(col(RunRow.id) == run_id).values(**columns))
    insert_parts(session, [(run_id, replacement.prepared)])
    session.execute(
        insert(RunReadingRow),
        [
            {
                "run_id": run_id,
                "read_at": now,
                "from_version": replacement.from_version,
                "to_version": reading.version,
                "changes": list(replacement.changes),
            }
        ],
    )
