"""From the bytes of a result file to stored runs: read, correct by the person's overrides, match to the catalog, assess, store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from io import BytesIO
from typing import Any

from app.domain.checks import as_shown
from app.domain.errors import ImportRefused, InvalidRequest
from app.domain.identity import Words, together, with_words, words_of
from app.domain.observed import measured_times
from app.domain.run import Run
from app.domain.text import clean_text
from app.formats import archive_kind, joined, read_runs
from app.services.assessment import assess
from app.services.context import Context
from app.services.identity import said
from app.services.profiles import ProfileBook, read_book
from app.store import uploads
from app.store.records import DEFAULT_PROJECT, NewRun, NewUpload

_MAX_TAGS = 50
MOST_RUNS = 2_000


@dataclass(frozen=True)
class Overrides:
    """What the person who uploads knows better than the file: `said` holds the words that stand in place of the file's."""

    project: str = DEFAULT_PROJECT
    said: Words = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    notes: str = ""


@dataclass(frozen=True)
class Refusal:
    """A file that gave no run, why, and what was tried."""

    file: str
    reason: str
    tried: tuple[tuple[str, str], ...] = ()
    flag: str | None = None
    too_large: bool = False


@dataclass(frozen=True)
class ImportOutcome:
    """What became of the files of one upload. `created` is False when every run was there before."""

    run_ids: tuple[int, ...] = ()
    refused: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    created: bool = False
    existing_ids: tuple[int, ...] = field(default=())


def overrides_of(values: Mapping[str, Any]) -> Overrides:
    """Overrides from form fields or keys, cleaned. Raises InvalidRequest naming the field that cannot be used."""
    return Overrides(
        project=clean_text(str(values.get("project") or "")) or DEFAULT_PROJECT,
        said={key: word for key, word in said(values).items() if word is not None},
        tags=tags_of(values.get("tags")),
        notes=str(values.get("notes") or ""),
    )


def tags_of(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Tags from a comma-separated text or a list: cleaned, each once, in order."""
    parts = value.split(",") if isinstance(value, str) else list(value or ())
    cleaned = (clean_text(part) for part in parts)
    tags = tuple(dict.fromkeys(tag for tag in cleaned if tag))
    if len(tags) > _MAX_TAGS:
        raise InvalidRequest("tags", f"{len(tags)} tags are too many: {_MAX_TAGS} at most.")
    return tags


def import_file(
    context: Context, name: str, data: bytes, overrides: Overrides, now: datetime, also: uploads.Also | None = None
) -> ImportOutcome:
    """Read one file and store its runs in one transaction; a file that is not read is a refusal and leaves nothing behind.

    The same bytes again in the same project give the runs that are there. `also` writes in that transaction, as `uploads.store` says.
    """
    name = clean_text(name) or "unnamed"
    if (kind := archive_kind(data)) is not None:
        return ImportOutcome(
            refused=(Refusal(name, f"this is {kind}, which is not unpacked yet: upload the files inside.", too_large=True),)
        )
    try:
        parsed = read_runs(name, data)
    except ImportRefused as error:
        return ImportOutcome(refused=(Refusal(name, error.reason, error.tried, error.flag),))
    if len(parsed.runs) > MOST_RUNS:
        reason = f"The file holds {len(parsed.runs):,} operating points, more than the {MOST_RUNS:,} that one file may bring: split it."
        return ImportOutcome(refused=(Refusal(name, reason),))
    book = read_book(context)
    new_runs = [new_run(book, run, overrides) for run in parsed.runs]
    saved = uploads.store(context.database, NewUpload(name, parsed.format, now, overrides.project), BytesIO(data), new_runs, also)
    if saved.is_new:
        return ImportOutcome(run_ids=saved.run_ids, warnings=tuple(parsed.warnings), created=True)
    first = saved.run_ids[0] if saved.run_ids else None
    warning = f"{name}: these bytes are here already, as run {first}; nothing was stored again."
    return ImportOutcome(run_ids=saved.run_ids, warnings=(warning,), existing_ids=saved.run_ids)


def import_files(
    context: Context, files: Sequence[tuple[str, bytes]], overrides: Overrides, now: datetime, also: uploads.Also | None = None
) -> ImportOutcome:
    """Each file on its own, parts of one result as one: one that is refused does not take the others along."""
    outcomes = [import_file(context, name, data, overrides, now, also) for name, data in joined(files)]
    return ImportOutcome(
        run_ids=tuple(dict.fromkeys(run_id for outcome in outcomes for run_id in outcome.run_ids)),
        refused=tuple(refusal for outcome in outcomes for refusal in outcome.refused),
        warnings=tuple(warning for outcome in outcomes for warning in outcome.warnings),
        created=any(outcome.created for outcome in outcomes),
        existing_ids=tuple(run_id for outcome in outcomes for run_id in outcome.existing_ids),
    )


def new_run(book: ProfileBook, run: Run, overrides: Overrides) -> NewRun:
    """A run as its file gives it, under the words that count, with what follows from its figures, matched to the catalog and assessed."""
    by_file = words_of(run)
    return replace(
        derived(book, as_shown(with_words(run, together(by_file, overrides.said)))),
        said_by_file=by_file,
        said_by_person=overrides.said,
        tags=overrides.tags,
        notes=overrides.notes,
    )


def derived(book: ProfileBook, run: Run) -> NewRun:
    """What is stored beside a run because it follows from its words: the catalog's entries, the shares of the limits, the split."""
    model, hardware = book.find_model(run.model), book.find_hardware(run.hardware)
    assessment = assess(run, model.architecture if model else None, hardware, book.find_engine(run.engine))
    return NewRun(
        run=run,
        model_slug=model.slug if model else None,
        hardware_slug=hardware.slug if hardware else None,
        mbu=assessment.mbu,
        mfu=assessment.mfu,
        prefill_share=measured_times(run).prefill_share,
    )
