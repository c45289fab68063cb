"""Stored runs: read one or several, change, delete. Lists are in `run_list`, samples in `requests`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete as delete_from
from sqlalchemy import insert, select
from sqlalchemy import update as change
from sqlmodel import Session, col

from app.domain.identity import words_from
from app.domain.rereading import operating_point
from app.store.records import RunChanges, StoredRun, Upload
from app.store.rows import MetricRow, clean_tags, flags_to_json, from_row, search_text
from app.store.tables import MetricValueRow, RequestSamplesRow, RunRow, RunTagRow, UploadRow
from app.store.types import is_id


def get(session: Session, run_id: int) -> StoredRun | None:
    """The run with this id, or None; an id beyond 64 bits names nothing."""
    found = get_many(session, (run_id,))
    return found[0] if found else None


def get_many(session: Session, run_ids: Sequence[int]) -> tuple[StoredRun, ...]:
    """The runs with these ids in the order asked for, each once, those that do not exist left out; five queries however many."""
    wanted = list(dict.fromkeys(run_id for run_id in run_ids if is_id(run_id)))
    if not wanted:
        return ()
    rows = {row.id: row for row in session.execute(select(RunRow).where(col(RunRow.id).in_(wanted))).scalars()}
    upload_ids = {row.upload_id for row in rows.values()}
    uploads = {row.id: row for row in session.execute(select(UploadRow).where(col(UploadRow.id).in_(upload_ids))).scalars()}
    metrics = _metrics_of(session, wanted)
    tags = tags_of(session, wanted)
    sampled = set(session.execute(select(col(RequestSamplesRow.run_id)).where(col(RequestSamplesRow.run_id).in_(wanted))).scalars())
    return tuple(
        _stored(row, uploads[row.upload_id], metrics.get(run_id, []), tags.get(run_id, ()), run_id in sampled)
        for run_id in wanted
        if (row := rows.get(run_id)) is not None
    )


def tags_of(session: Session, run_ids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The tags of these runs, in one query; a run without tags is left out."""
    statement = select(col(RunTagRow.run_id), col(RunTagRow.tag)).where(col(RunTagRow.run_id).in_(run_ids))
    found: dict[int, list[str]] = {}
    for run_id, tag in session.execute(statement):
        found.setdefault(run_id, []).append(tag)
    return {run_id: tuple(sorted(tags)) for run_id, tags in found.items()}


def locked(session: Session, run_ids: Sequence[int]) -> tuple[StoredRun, ...]:
    """As `get_many`, with the rows held to the end of the session's transaction: what follows from them is true when it is written."""
    wanted = sorted({run_id for run_id in run_ids if is_id(run_id)})
    statement = select(col(RunRow.id)).where(col(RunRow.id).in_(wanted)).order_by(col(RunRow.id)).with_for_update()
    session.execute(statement)
    return get_many(session, run_ids)


def update(session: Session, run_id: int, changes: RunChanges, now: datetime) -> StoredRun | None:
    """Change what `changes` names and nothing else; None when there is no such run. `now` becomes `updated_at`.

    The row is locked from reading it to the end of the session's transaction, so that two changes at once both count.
    """
    row = _locked(session, run_id)
    if row is None:
        return None
    values: Mapping[str, Any] = dict(changes)
    for name in values.keys() - {"tags", "flags", "warnings"}:
        setattr(row, name, values[name])
    if "flags" in changes:
        row.flags = flags_to_json(changes["flags"])
    if "warnings" in changes:
        row.warnings = list(changes["warnings"])
    tags = clean_tags(changes["tags"]) if "tags" in changes else tags_of(session, (run_id,)).get(run_id, ())
    if "tags" in changes:
        _replace_tags(session, run_id, row.project, tags)
    file_name = session.execute(select(col(UploadRow.name)).where(col(UploadRow.id) == row.upload_id)).scalar_one()
    row.search = search_text(
        row.model_dump(include={"label", "model", "model_slug", "hardware", "hardware_slug", "engine"}), tags, file_name
    )
    row.updated_at = now
    session.add(row)
    session.flush()
    # Texts are cleaned on their way in, so what is given back is read again.
    session.expire_all()
    return get(session, run_id)


def delete(session: Session, run_id: int) -> bool:
    """Delete a run with its metrics, tags and samples, and the file too when this was its last run. False when there is no such run.

    A file that stays remembers the run, so that reading it again does not bring it back.
    """
    if not is_id(run_id):
        return False
    upload_id = session.execute(select(col(RunRow.upload_id)).where(col(RunRow.id) == run_id)).scalar_one_or_none()
    if upload_id is None:
        return False
    # Held to the end: two deletions of a file's last two runs must not each believe that the other's run stays.
    session.execute(select(col(UploadRow.id)).where(col(UploadRow.id) == upload_id).with_for_update())
    row = session.execute(select(RunRow).where(col(RunRow.id) == run_id)).scalar_one_or_none()
    if row is None:
        return False
    remembered = operating_point(from_row(row, ()), words_from(row.said_by_file or {})).as_data()
    gone = session.execute(delete_from(RunRow).where(col(RunRow.id) == run_id).returning(col(RunRow.id))).scalar_one_or_none()
    if gone is None:
        return False
    others = session.execute(select(col(RunRow.id)).where(col(RunRow.upload_id) == upload_id).limit(1)).first()
    if others is None:
        session.execute(delete_from(UploadRow).where(col(UploadRow.id) == upload_id))
        return True
    before = session.execute(select(col(UploadRow.deleted_runs)).where(col(UploadRow.id) == upload_id)).scalar_one() or []
    session.execute(change(UploadRow).where(col(UploadRow.id) == upload_id).values(deleted_runs=[*before, remembered]))
    return True


def _locked(session: Session, run_id: int) -> RunRow | None:
    if not is_id(run_id):
        return None
    statement = select(RunRow).where(col(RunRow.id) == run_id).with_for_update().execution_options(populate_existing=True)
    return session.execute(statement).scalar_one_or_none()


def _replace_tags(session: Session, run_id: int, project: str, tags: Sequence[str]) -> None:
    session.execute(delete_from(RunTagRow).where(col(RunTagRow.run_id) == run_id))
    if tags:
        session.execute(insert(RunTagRow), [{"run_id": run_id, "tag": tag, "project": project} for tag in tags])


def _metrics_of(session: Session, run_ids: Sequence[int]) -> dict[int, list[MetricRow]]:
    columns = [getattr(MetricValueRow, name) for name in MetricRow._fields]
    grouped: dict[int, list[MetricRow]] = {}
    for row in session.execute(select(*columns).where(col(MetricValueRow.run_id).in_(run_ids))):
        grouped.setdefault(row[0], []).append(MetricRow(*row))
    return grouped


def _stored(row: RunRow, upload: UploadRow, metrics: Sequence[MetricRow], tags: tuple[str, ...], has_samples: bool) -> StoredRun:
    if row.id is None or upload.id is None:
        raise LookupError("a row without an id cannot be a stored run")
    return StoredRun(
        id=row.id,
        run=from_row(row, metrics),
        upload=Upload(upload.id, upload.project, upload.name, upload.format, upload.sha256, upload.size, upload.received_at),
        seq_in_file=row.seq_in_file,
        project=row.project,
        model_slug=row.model_slug,
        hardware_slug=row.hardware_slug,
        tags=tags,
        notes=row.notes,
        mbu=row.mbu,
        mfu=row.mfu,
        prefill_share=row.prefill_share,
        has_samples=has_samples,
        said_by_file=None if row.said_by_file is None else words_from(row.said_by_file),
        said_by_person=words_from(row.said_by_person or {}),
        gone_since=row.gone_since,
        happened_at=row.happened_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
