"""Reading stored files again: what a newer importer would change, shown before anything is; then changed, all of a file or nothing.

Numbers and addresses of runs, their notes and tags, and what a person said about them stay. A run that the file no longer gives is kept
and marked, unless its removal is asked for; one that a person deleted does not come back.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from app.domain.errors import Conflict, ImportRefused, NotFound
from app.domain.identity import Word, words_of
from app.domain.rereading import Change, OperatingPoint, changes, match, operating_point
from app.domain.run import Run
from app.formats import ParsedFile, current_versions, read_runs
from app.services.context import Context
from app.services.importing import MOST_RUNS, Overrides, new_run
from app.services.profiles import ProfileBook, read_book
from app.store import readings, runs, uploads
from app.store.readings import NewReading, OutdatedFile, Reading, Replacement
from app.store.records import NewUpload, StoredRun, Upload
from app.store.rows import as_stored
from app.store.uploads import PreparedRun

Outcome = Literal["same", "changed", "added", "gone"]
OUTCOMES: tuple[Outcome, ...] = ("changed", "added", "gone", "same")


@dataclass(frozen=True)
class RunReading:
    """What reading its file again means for one run. `run_id` is None for a run that is not stored yet."""

    run_id: int | None
    title: str
    outcome: Outcome
    from_version: int | None
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class FileReading:
    """What reading a file again gives. `refused` says why the importer of now gives nothing: then nothing can be applied.

    `left_out` counts runs of the file that a person deleted. `applied` is False for a preview.
    """

    upload: Upload
    format: str
    from_version: int
    to_version: int
    runs: tuple[RunReading, ...]
    left_out: int = 0
    refused: str | None = None
    applied: bool = False

    @property
    def is_newer(self) -> bool:
        """Whether the importer of now is another one than read any of the runs."""
        return self.refused is None and any(each.from_version != self.to_version for each in self.runs)

    def of(self, outcome: Outcome) -> list[RunReading]:
        """The runs that fare so."""
        return [each for each in self.runs if each.outcome == outcome]


@dataclass(frozen=True)
class _Plan:
    """A reading and what has to be written for it."""

    reading: FileReading
    write: NewReading | None


def preview(context: Context, run_id: int) -> FileReading:
    """What reading the file of this run again would change; nothing is stored. Raises NotFound."""
    return _plan(context, run_id, remove_gone=False).reading


def reread(context: Context, run_id: int, now: datetime, *, remove_gone: bool = False) -> FileReading:
    """Read the file of this run again and store what it gives now, in one transaction.

    Raises NotFound, ImportRefused when the importer of now refuses the file, Conflict when its runs were changed meanwhile.
    """
    plan = _plan(context, run_id, remove_gone)
    if plan.write is None:
        raise ImportRefused(f"{plan.reading.upload.name} is refused now, so its runs stay as they are: {plan.reading.refused}")
    with context.database.write() as session:
        ids = iter(readings.apply(session, plan.write, now))
    # The runs that came have numbers now.
    told = tuple(replace(each, run_id=next(ids)) if each.outcome == "added" else each for each in plan.reading.runs)
    return replace(plan.reading, runs=told, applied=True)


def reread_files(
    context: Context, run_ids: Sequence[int] | None, now: datetime, *, dry_run: bool = False, remove_gone: bool = False
) -> dict[str, Any]:
    """Read the files of these runs again, each file once; with None every file that an older importer read.

    Gives {"files": [reading, …], "refused": [{"file", "reason"}, …]}; a file that is refused does not stop the others. Raises NotFound.
    """
    due = [(file.run_id, file.name) for file in _all_outdated(context)] if run_ids is None else [(each, f"run {each}") for each in run_ids]
    files: dict[int, FileReading] = {}
    refused = []
    for run_id, name in due:
        found = preview(context, run_id)
        if found.upload.id in files:
            continue
        try:
            files[found.upload.id] = found if dry_run else reread(context, run_id, now, remove_gone=remove_gone)
        except (ImportRefused, Conflict) as error:
            refused.append({"file": found.upload.name or name, "reason": str(error)})
    told = [reading_json(each) for each in files.values()]
    return {"files": told, "refused": [*refused, *({"file": each["file"], "reason": each["refused"]} for each in told if each["refused"])]}


def _all_outdated(context: Context) -> Iterator[OutdatedFile]:
    after = 0
    while found := outdated(context, after):
        yield from found
        after = found[-1].upload_id


def outdated(context: Context, after: int = 0, limit: int = 100) -> tuple[OutdatedFile, ...]:
    """Files with runs that an older importer read, in the order in which they came, from the one after upload `after` on."""
    with context.database.read() as session:
        return readings.outdated(session, current_versions(), after, limit)


def count_outdated(context: Context) -> int:
    """How many such files there are."""
    with context.database.read() as session:
        return readings.count_outdated(session, current_versions())


def history(context: Context, run_id: int) -> tuple[Reading, ...]:
    """Every time that a run was read again, the latest first."""
    with context.database.read() as session:
        return readings.history(session, run_id)


def is_outdated(stored: StoredRun) -> bool:
    """Whether an older importer read this run than would read it now."""
    current = current_versions().get(stored.run.format, 0)
    return stored.run.importer_version < current and (stored.gone_since is None or stored.gone_since < current)


def change_json(change: Change) -> dict[str, Any]:
    """A change as plain data."""
    return {"part": change.part, "key": change.key, "kind": change.kind, "old": change.old, "new": change.new}


def reading_json(reading: FileReading) -> dict[str, Any]:
    """A reading as JSON."""
    return {
        "file": reading.upload.name,
        "format": reading.format,
        "from_version": reading.from_version,
        "to_version": reading.to_version,
        "applied": reading.applied,
        "refused": reading.refused,
        "deleted_before": reading.left_out,
        "runs": [
            {
                "id": each.run_id,
                "url": None if each.run_id is None else f"/runs/{each.run_id}",
                "title": each.title,
                "outcome": each.outcome,
                "from_version": each.from_version,
                "changes": [change_json(change) for change in each.changes],
            }
            for each in reading.runs
        ],
    }


def outdated_json(file: OutdatedFile) -> dict[str, Any]:
    """A file that is due, as JSON; `run_id` is the first of its outdated runs."""
    return {
        "file": file.name,
        "project": file.project,
        "format": file.format,
        "from_version": file.from_version,
        "to_version": current_versions().get(file.format),
        "runs": file.runs,
        "run_id": file.run_id,
        "url": f"/runs/{file.run_id}/reimport",
    }


def history_json(found: Sequence[Reading]) -> list[dict[str, Any]]:
    """Past readings of a run, as JSON."""
    return [
        {
            "read_at": each.read_at.isoformat(timespec="seconds"),
            "from_version": each.from_version,
            "to_version": each.to_version,
            "changes": [dict(change) for change in each.changes],
        }
        for each in found
    ]


def _plan(context: Context, run_id: int, remove_gone: bool) -> _Plan:
    book = read_book(context)
    with context.database.read() as session:
        first = runs.get(session, run_id)
        if first is None:
            raise NotFound(f"There is no run {run_id}: it was deleted, or the number is wrong.")
        stored = runs.get_many(session, uploads.run_ids(session, first.upload.id))
        deleted = [OperatingPoint.from_data(data) for data in readings.deleted_runs(session, first.upload.id)]
        data = uploads.original(session, first.upload.id)
    upload, oldest = first.upload, min(each.run.importer_version for each in stored)
    try:
        parsed = _parse(upload, data)
    except ImportRefused as refusal:
        version = current_versions().get(upload.format, oldest)
        return _Plan(FileReading(upload, upload.format, oldest, version, (), refused=refusal.reason), None)
    return _Reader(book, upload, stored, deleted, parsed).plan(remove_gone)


def _parse(upload: Upload, data: bytes | None) -> ParsedFile:
    if data is None:
        raise ImportRefused("the original file is not here.")
    parsed = read_runs(upload.name, data)
    if len(parsed.runs) > MOST_RUNS:
        raise ImportRefused(f"it gives {len(parsed.runs):,} runs now, more than the {MOST_RUNS:,} that one file may bring.")
    return parsed


@dataclass(frozen=True)
class _Reader:
    """A file's runs as they are stored, beside what the file gives now."""

    book: ProfileBook
    upload: Upload
    stored: Sequence[StoredRun]
    deleted: Sequence[OperatingPoint]
    parsed: ParsedFile

    def plan(self, remove_gone: bool) -> _Plan:
        """Pair the runs, say what changes, and prepare what has to be written."""
        version = self.parsed.runs[0].importer_version
        before = [operating_point(each.run, _file_words(each)) for each in self.stored]
        bare = (replace(run, samples=None) for run in self.parsed.runs)
        now = [operating_point(_kept(self._new(run, {}, position)), words_of(run)) for position, run in enumerate(bare)]
        found = match([*before, *self.deleted], now)
        told: list[RunReading] = []
        replacements: list[Replacement] = []
        for old, new in found.pairs:
            if old < len(self.stored):
                reading, replacement = self._again(self.stored[old], new)
                told.append(reading)
                replacements.append(replacement)
        gone = [self.stored[old] for old in found.gone if old < len(self.stored)]
        told.extend(RunReading(each.id, _title(each.run, self.upload), "gone", each.run.importer_version) for each in gone)
        added = [self._new(self.parsed.runs[new], self._common_words(), new) for new in found.added]
        told.extend(RunReading(None, _title(_kept(each), self.upload), "added", None) for each in added)
        oldest = min(each.run.importer_version for each in self.stored)
        left_out = sum(1 for old, _ in found.pairs if old >= len(self.stored))
        write = NewReading(
            self.upload.id, self.parsed.format, version, {each.id: each.updated_at for each in self.stored}, replacements, added,
            [each.id for each in gone], remove_gone,
        )  # fmt: skip
        return _Plan(FileReading(self.upload, self.parsed.format, oldest, version, tuple(told), left_out), write)

    def _again(self, old: StoredRun, position: int) -> tuple[RunReading, Replacement]:
        run = self.parsed.runs[position]
        prepared = self._new(run, _person_words(old, run), position)
        made = changes(old.run, _kept(prepared))
        reading = RunReading(old.id, _title(old.run, self.upload), "changed" if made else "same", old.run.importer_version, made)
        return reading, Replacement(old.id, prepared, old.run.importer_version, [change_json(each) for each in made])

    def _new(self, run: Run, said: Mapping[str, Word], position: int) -> PreparedRun:
        upload = NewUpload(self.upload.name, self.parsed.format, self.upload.received_at, self.upload.project)
        tags = tuple(sorted(set.intersection(*(set(each.tags) for each in self.stored))))
        return uploads.prepare(new_run(self.book, run, Overrides(self.upload.project, said, tags)), upload, position)

    def _common_words(self) -> dict[str, Word]:
        """What a person said about every run of the file: it goes for the new ones too."""
        first, *others = (each.said_by_person for each in self.stored)
        return {key: word for key, word in first.items() if all(other.get(key) == word for other in others)}


def _file_words(stored: StoredRun) -> Mapping[str, Word]:
    return stored.said_by_file if stored.said_by_file is not None else words_of(stored.run)


def _person_words(stored: StoredRun, run: Run) -> Mapping[str, Word]:
    """A person's words. Where it was not noted what the file said, what its words do not explain is taken for a person's."""
    if stored.said_by_file is not None:
        return stored.said_by_person
    by_file = words_of(run)
    unexplained = {key: word for key, word in words_of(stored.run).items() if by_file.get(key) != word}
    return {**unexplained, **stored.said_by_person}


def _kept(prepared: PreparedRun) -> Run:
    return as_stored(prepared.rows)


def _title(run: Run, upload: Upload) -> str:
    return run.label or upload.name
