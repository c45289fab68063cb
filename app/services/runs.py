"""Stored runs as use cases: look at one with everything known about it, list, correct, delete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, cast

from app.catalog import ModelEntry
from app.domain.comparison import Side
from app.domain.engine import EngineProfile
from app.domain.errors import NotFound
from app.domain.hardware import HardwareProfile
from app.domain.identity import SAID, Word, corrected, together, with_words, words_of
from app.domain.run import RequestSamples
from app.domain.suggestion import Suggestion
from app.domain.telemetry import Telemetry
from app.formats import current_versions
from app.formats.phaseline_document import FORMAT as OWN_FORMAT
from app.services.assessment import Assessment, assess
from app.services.context import Context
from app.services.identity import said
from app.services.importing import derived, tags_of
from app.services.profiles import ProfileBook, read_book
from app.services.rereading import is_outdated
from app.services.suggesting import hints, hints_json
from app.services.summary import run_summary
from app.store import requests as request_rows
from app.store import run_list, runs, uploads
from app.store import telemetry as telemetry_rows
from app.store.records import RequestPage, RunChanges, RunFilters, RunListItem, RunPage, StoredRun
from app.store.series_runs import settings_of

_NOTES_LIMIT = 20_000


@dataclass(frozen=True)
class RunView:
    """A stored run with its model, device and assessment; of a side of several, `repeats` are they, and the rest tells their means."""

    stored: StoredRun
    model: ModelEntry | None
    hardware: HardwareProfile | None
    engine: EngineProfile | None
    assessment: Assessment
    book: ProfileBook
    repeats: tuple["RunView", ...] = ()

    @property
    def id(self) -> int:
        """The run's number."""
        return self.stored.id

    @property
    def ids(self) -> tuple[int, ...]:
        """The numbers of all repeats, or its own."""
        return tuple(member.id for member in self.repeats) or (self.id,)

    @property
    def title(self) -> str:
        """What the run is called: its label, else the file it came from, without folders."""
        return self.stored.run.label or PurePosixPath(self.stored.upload.name).name or self.stored.upload.name

    @property
    def model_name(self) -> str | None:
        """The catalog's name of the model, else the file's own words."""
        return self.model.name if self.model else self.stored.run.model

    @property
    def hardware_name(self) -> str | None:
        """The catalog's name of the device, else the file's own words."""
        return self.hardware.name if self.hardware else self.stored.run.hardware

    @cached_property
    def suggestions(self) -> tuple[Suggestion, ...]:
        """What file name, folders and labels hint at; nothing rests on it before a person accepts it."""
        return hints(self.book, self.stored.run, self.stored.upload.name)

    @property
    def outdated(self) -> bool:
        """Whether an older importer read the file than would read it now."""
        return is_outdated(self.stored)

    @property
    def current_version(self) -> int | None:
        """The version that would read the file now; None for a format that is read no longer."""
        return current_versions().get(self.stored.run.format)

    def summary(self, with_suggestions: bool = True) -> dict[str, Any]:
        """The run summary of the contract with number, address, project, tags and notes."""
        suggested = {"suggestions": hints_json(self.suggestions)} if with_suggestions else {}
        return {
            "id": self.id,
            "url": f"/runs/{self.id}",
            **run_summary(self.stored.run, self.assessment),
            "hardware_slug": self.stored.hardware_slug,
            "model_slug": self.stored.model_slug,
            "project": self.stored.project,
            "tags": list(self.stored.tags),
            "notes": self.stored.notes,
            "said": {
                "file": None if self.stored.said_by_file is None else dict(self.stored.said_by_file),
                "person": dict(self.stored.said_by_person),
            },
            **suggested,
            "file": self.stored.upload.name,
            "outdated": self.outdated,
            **({} if self.stored.gone_since is None else {"gone_since": self.stored.gone_since}),
        }

    def side(self) -> Side:
        """This run as one side of a comparison, with the settings that may differ."""
        run = replace(self.stored.run, flags=(*self.stored.run.flags, *self.assessment.flags))
        settings = {
            "model": self.stored.model_slug or run.model,
            "hardware": self.stored.hardware_slug or run.hardware,
            "devices": run.devices,
            "engine": run.engine,
            "engine_version": run.engine_version,
            "tp": run.tp,
            "pp": run.pp,
            "ep": run.ep,
            "dp": run.dp,
            "weight_dtype": run.weight_dtype,
            "kv_dtype": run.kv_dtype,
            "format": run.format,
            "load_mode": run.load_mode,
            "concurrency": run.workload.concurrency,
            "request_rate_per_s": run.workload.request_rate_per_s,
            "prompt_tokens_mean": run.workload.prompt_tokens_mean,
            "output_tokens_mean": run.workload.output_tokens_mean,
            "context_depth_tokens": run.workload.context_depth_tokens,
            "dataset": run.workload.dataset,
        }
        settings |= settings_of(run.labels, {**settings, "hardware": run.hardware})
        repeats = self.ids if self.repeats else ()
        return Side(self.id, run, settings, self.assessment.point, self.assessment.reasons, repeats)


def view(context: Context, run_id: int) -> RunView:
    """One run. Raises NotFound."""
    return views(context, (run_id,))[0]


def views(context: Context, run_ids: Sequence[int]) -> list[RunView]:
    """Several runs in the order asked for. Raises NotFound naming the first that is not there."""
    book = read_book(context)
    return [_view(book, each) for each in stored_runs(context, run_ids)]


def stored_runs(context: Context, run_ids: Sequence[int]) -> list[StoredRun]:
    """The same as they are stored, without what is worked out about them: for those who choose among many."""
    with context.database.read() as session:
        found = {stored.id: stored for stored in runs.get_many(session, tuple(run_ids))}
    for run_id in run_ids:
        if run_id not in found:
            raise _not_there(run_id)
    return [found[run_id] for run_id in run_ids]


def _view(book: ProfileBook, stored: StoredRun) -> RunView:
    # A profile that a run was matched to may be gone; then the run's own words count again.
    model = book.find_model(stored.model_slug) or book.find_model(stored.run.model)
    hardware = book.find_hardware(stored.hardware_slug) or book.find_hardware(stored.run.hardware)
    engine = book.find_engine(stored.run.engine)
    assessment = assess(stored.run, model.architecture if model else None, hardware, engine)
    return RunView(stored, model, hardware, engine, assessment, book)


def page(context: Context, filters: RunFilters, sort: str, cursor: str | None, limit: int) -> RunPage:
    """One page of the list, without assessments: what it shows was stored with each run."""
    with context.database.read() as session:
        return run_list.page(session, filters, sort=sort, cursor=cursor, limit=limit)


def summaries(context: Context, items: Sequence[RunListItem]) -> list[dict[str, Any]]:
    """Full summaries for the rows of a page, without suggestions."""
    return [found.summary(with_suggestions=False) for found in views(context, [item.id for item in items])] if items else []


def samples(context: Context, run_id: int) -> RequestSamples | None:
    """The per-request samples of a run, None when its file had none."""
    with context.database.read() as session:
        return request_rows.load(session, run_id)


def telemetry(context: Context, found: RunView) -> Telemetry | None:
    """What the device did while a run lasted, None where nobody watched: only our own measurements have it."""
    if found.stored.run.format != OWN_FORMAT:
        return None
    with context.database.read() as session:
        return telemetry_rows.load(session, found.id)


def request_page(context: Context, run_id: int, start: int, limit: int) -> RequestPage:
    """Per-request rows from index `start`. Raises NotFound when there is no such run."""
    view(context, run_id)
    with context.database.read() as session:
        return request_rows.page(session, run_id, start=start, limit=limit) or RequestPage((), 0, None)


def original(context: Context, run_id: int) -> tuple[str, bytes]:
    """Name and unchanged bytes of the file a run came from. Raises NotFound."""
    stored = view(context, run_id).stored
    with context.database.read() as session:
        data = uploads.original(session, stored.upload.id)
    if data is None:
        raise NotFound(f"The file of run {run_id} is not here.")
    return stored.upload.name, data


def correct(context: Context, run_id: int, values: Mapping[str, Any], now: datetime) -> RunView:
    """Change what `values` names and derive the rest anew: the words of the identity (model, hardware, engine, devices, tp, formats …),
    label, tags, notes. An empty word takes back what a person said, so that the file's counts again.

    Raises NotFound for an unknown run and InvalidRequest for a value that cannot be used.
    """
    return correct_all(context, (run_id,), values, now)[0]


def correct_all(context: Context, run_ids: Sequence[int], values: Mapping[str, Any], now: datetime) -> list[RunView]:
    """The same for several runs, all of them or none."""
    words = said(values)
    beside = _beside(values)
    book = read_book(context)
    with context.database.write() as session:
        stored = {found.id: found for found in runs.locked(session, run_ids)}
        updated = []
        for run_id in run_ids:
            if run_id not in stored:
                raise _not_there(run_id)
            changes = cast(RunChanges, {**_word_changes(book, stored[run_id], words), **beside})
            updated.append(runs.update(session, run_id, changes, now))
    return [_view(book, each) for each in updated if each is not None]


def accept_for_file(context: Context, run_id: int, values: Mapping[str, Any], now: datetime) -> list[RunView]:
    """Say `values` about each run of this run's file for which they are suggested. Raises as `correct` does."""
    upload_id = view(context, run_id).stored.upload.id
    with context.database.read() as session:
        ids = uploads.run_ids(session, upload_id)
    suggested = {each.id for each in views(context, ids) if any(_suggests(each, key, value) for key, value in values.items())}
    return correct_all(context, sorted(suggested | {run_id}), values, now)


def _suggests(found: RunView, key: str, value: Any) -> bool:
    return any(each.key == key and str(value) in map(str, each.candidates) for each in found.suggestions)


def _not_there(run_id: int) -> NotFound:
    return NotFound(f"There is no run {run_id}: it was deleted, or the number is wrong.")


def _word_changes(book: ProfileBook, stored: StoredRun, words: Mapping[str, Word | None]) -> dict[str, Any]:
    """The columns of a run after a person says more; the same as if the file had come with all they say."""
    # Where it was not noted what the file says, all that no person is known to have said counts as its word.
    by_file = stored.said_by_file
    if by_file is None:
        by_file = {key: word for key, word in words_of(stored.run).items() if key not in stored.said_by_person}
    by_person = corrected(stored.said_by_person, words)
    found = derived(book, with_words(stored.run, together(by_file, by_person)))
    return {
        **{key: getattr(found.run, key) for key in SAID},
        "said_by_person": by_person,
        **{key: getattr(found, key) for key in ("model_slug", "hardware_slug", "mbu", "mfu", "prefill_share")},
    }


def _beside(values: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if "tags" in values:
        changes["tags"] = tags_of(values["tags"])
    if "notes" in values:
        changes["notes"] = str(values["notes"] or "")[:_NOTES_LIMIT]
    return changes


def delete(context: Context, run_id: int) -> None:
    """Delete a run, and its file when no other run came from it. Raises NotFound."""
    with context.database.write() as session:
        if not runs.delete(session, run_id):
            raise NotFound(f"There is no run {run_id}: it was deleted before, or the number is wrong.")
