"""Stored runs as use cases: look at one with everything known about it, list, correct, delete."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from app.catalog import ModelEntry
from app.domain.comparison import Side
from app.domain.dtypes import number_format
from app.domain.engine import EngineProfile
from app.domain.errors import NotFound
from app.domain.hardware import HardwareProfile
from app.domain.observed import measured_times
from app.domain.run import RequestSamples
from app.domain.text import clean_text
from app.services.assessment import Assessment, assess
from app.services.context import Context
from app.services.importing import tags_of, whole_number
from app.services.profiles import ProfileBook, read_book
from app.services.summary import run_summary
from app.store import requests as request_rows
from app.store import run_list, runs, uploads
from app.store.records import RequestPage, RunChanges, RunFilters, RunListItem, RunPage, StoredRun

_TEXT_FIELDS = ("label", "model", "hardware", "engine", "weight_dtype", "kv_dtype")
_COUNT_FIELDS = ("devices", "tp")
# Words of a file that say when it was written, and set nothing.
_NOT_SETTINGS = frozenset({"date", "date_timezone"})
_NOTES_LIMIT = 20_000


@dataclass(frozen=True)
class RunView:
    """A stored run with its model, device and assessment."""

    stored: StoredRun
    model: ModelEntry | None
    hardware: HardwareProfile | None
    engine: EngineProfile | None
    assessment: Assessment

    @property
    def id(self) -> int:
        """The run's number."""
        return self.stored.id

    @property
    def title(self) -> str:
        """What the run is called: its label, else the file it came from."""
        return self.stored.run.label or self.stored.upload.name

    @property
    def model_name(self) -> str | None:
        """The catalog's name of the model, else the file's own words."""
        return self.model.name if self.model else self.stored.run.model

    @property
    def hardware_name(self) -> str | None:
        """The catalog's name of the device, else the file's own words."""
        return self.hardware.name if self.hardware else self.stored.run.hardware

    def summary(self) -> dict[str, Any]:
        """The run summary of the contract with number, address, project, tags and notes."""
        return {
            "id": self.id,
            "url": f"/runs/{self.id}",
            **run_summary(self.stored.run, self.assessment),
            "hardware_slug": self.stored.hardware_slug,
            "model_slug": self.stored.model_slug,
            "project": self.stored.project,
            "tags": list(self.stored.tags),
            "notes": self.stored.notes,
            "file": self.stored.upload.name,
        }

    def side(self) -> Side:
        """This run as one side of a comparison, with the settings that may differ."""
        run = self.stored.run
        settings = {
            "model": self.stored.model_slug or run.model,
            "hardware": self.stored.hardware_slug or run.hardware,
            "devices": run.devices,
            "engine": run.engine,
            "engine_version": run.engine_version,
            "tp": run.tp,
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
            **{f"label: {key}": value for key, value in run.labels.items() if key not in _NOT_SETTINGS},
        }
        return Side(self.id, run, settings)


def view(context: Context, run_id: int) -> RunView:
    """One run. Raises NotFound."""
    return views(context, (run_id,))[0]


def views(context: Context, run_ids: Sequence[int]) -> list[RunView]:
    """Several runs in the order asked for. Raises NotFound naming the first that is not there."""
    book = read_book(context)
    with context.database.read() as session:
        found = {stored.id: stored for stored in runs.get_many(session, tuple(run_ids))}
    for run_id in run_ids:
        if run_id not in found:
            raise NotFound(f"There is no run {run_id}: it was deleted, or the number is wrong.")
    return [_view(book, found[run_id]) for run_id in run_ids]


def _view(book: ProfileBook, stored: StoredRun) -> RunView:
    # A profile that a run was matched to may be gone; then the run's own words count again.
    model = book.find_model(stored.model_slug) or book.find_model(stored.run.model)
    hardware = book.find_hardware(stored.hardware_slug) or book.find_hardware(stored.run.hardware)
    engine = book.find_engine(stored.run.engine)
    assessment = assess(stored.run, model.architecture if model else None, hardware, engine)
    return RunView(stored, model, hardware, engine, assessment)


def page(context: Context, filters: RunFilters, sort: str, cursor: str | None, limit: int) -> RunPage:
    """One page of the list, without assessments: what it shows was stored with each run."""
    with context.database.read() as session:
        return run_list.page(session, filters, sort=sort, cursor=cursor, limit=limit)


def summaries(context: Context, items: Sequence[RunListItem]) -> list[dict[str, Any]]:
    """Full summaries for the rows of a page."""
    return [found.summary() for found in views(context, [item.id for item in items])] if items else []


def samples(context: Context, run_id: int) -> RequestSamples | None:
    """The per-request samples of a run, None when its file had none."""
    with context.database.read() as session:
        return request_rows.load(session, run_id)


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
    """Change what `values` names (label, model, hardware, engine, devices, tp, dtypes, tags, notes) and derive the rest anew.

    Raises NotFound for an unknown run and InvalidRequest for a value that cannot be used.
    """
    changes = _changes(values)
    before = view(context, run_id)
    book = read_book(context)
    run = replace(before.stored.run, **{key: changes[key] for key in (*_TEXT_FIELDS, *_COUNT_FIELDS) if key in changes})
    model = book.find_model(run.model) if "model" in changes else before.model
    hardware = book.find_hardware(run.hardware) if "hardware" in changes else before.hardware
    assessment = assess(run, model.architecture if model else None, hardware, book.find_engine(run.engine))
    changes["model_slug"] = model.slug if model else None
    changes["hardware_slug"] = hardware.slug if hardware else None
    changes["mbu"], changes["mfu"], changes["prefill_share"] = assessment.mbu, assessment.mfu, measured_times(run).prefill_share
    with context.database.write() as session:
        updated = runs.update(session, run_id, cast(RunChanges, changes), now)
    if updated is None:
        raise NotFound(f"There is no run {run_id}: it was deleted meanwhile.")
    return _view(book, updated)


def _changes(values: Mapping[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for key in _TEXT_FIELDS:
        if key in values:
            text = clean_text(str(values[key] or ""))
            changes[key] = (number_format(text, key).key if key.endswith("dtype") else text) if text else None
    for key in _COUNT_FIELDS:
        if key in values:
            changes[key] = None if values[key] in (None, "") else whole_number(values[key], key)
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
