"""Baselines: set, moved, listed and forgotten; and how runs stand to theirs, which is found by what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session

from app.domain.against_baseline import AgainstBaseline, against_baseline
from app.domain.comparison import Comparison, Side, compare
from app.domain.errors import Conflict, InvalidRequest, NotFound
from app.domain.series import Series, missing_identity
from app.domain.text import clean_text
from app.services.context import Context
from app.services.noise import series_of_run, spreads_between
from app.services.series_words import series_words
from app.services.summary import timestamp
from app.store import baselines, runs
from app.store.baselines import StoredBaseline
from app.store.records import RunListItem, StoredRun
from app.store.series_runs import series_in

NEVER = "never compared"
IS_BASELINE = "is the baseline"
_NOTES_LIMIT = 20_000


@dataclass(frozen=True)
class Standing:
    """How a run stands: `word` is NEVER (its series has no baseline), IS_BASELINE, or the verdict against its baseline."""

    word: str
    phase: str = ""
    baseline: StoredBaseline | None = None
    found: AgainstBaseline | None = None
    comparison: Comparison | None = None

    @property
    def chip(self) -> str:
        """The kind of chip that pages show."""
        return {NEVER: "never", IS_BASELINE: "baseline"}.get(self.word, self.word)


def every(context: Context, project: str | None = None) -> list[StoredBaseline]:
    """All baselines (of a project), the one set last first."""
    with context.database.read() as session:
        return baselines.every(session, project)


def one(context: Context, number: int) -> StoredBaseline:
    """The baseline of this number. Raises NotFound."""
    with context.database.read() as session:
        return _one(session, number)


def make(context: Context, run_id: int, name: str | None, notes: str, now: datetime, *, move: bool = False) -> StoredBaseline:
    """Make a run the baseline of its series. Where the series has one already, that one is moved to this run with `move`, else Conflict.

    Raises NotFound for an unknown run, InvalidRequest for one that is in no series or completed nothing.
    """
    with context.database.write() as session:
        stored, series = _fit(session, run_id)
        there = baselines.match(baselines.every(session, stored.project), series, run_id)
        title = clean_text(name or "")
        if there is None:
            return _one(session, baselines.add(session, run_id, title or series_words(series), notes[:_NOTES_LIMIT], now))
        if not move and there.run_id != run_id:
            raise Conflict(f"Run {there.run_id} is the baseline of this series (“{there.name}”): move baseline {there.id} to run {run_id}.")
        baselines.change(session, there.id, run_id, title or None, notes[:_NOTES_LIMIT] or None, now)
        return _one(session, there.id)


def change(context: Context, number: int, changes: Mapping[str, Any], now: datetime) -> StoredBaseline:
    """Move a baseline to another `run`, or change its `name` or `notes`. Raises NotFound, InvalidRequest, or Conflict when that run is
    a baseline already."""
    with context.database.write() as session:
        _one(session, number)
        run_id = changes.get("run")
        if run_id is not None:
            stored, series = _fit(session, run_id)
            there = baselines.match(baselines.every(session, stored.project), series, run_id)
            if there is not None and there.id != number:
                raise Conflict(f"The series of run {run_id} has baseline {there.id} (“{there.name}”): move that one, or delete it first.")
        name = clean_text(str(changes["name"])) if changes.get("name") else None
        notes = None if changes.get("notes") is None else str(changes["notes"])[:_NOTES_LIMIT]
        baselines.change(session, number, run_id, name, notes, now)
        return _one(session, number)


def forget(context: Context, number: int) -> None:
    """Delete a baseline; its run stays. Raises NotFound."""
    with context.database.write() as session:
        if not baselines.remove(session, number):
            raise _not_there(number)


def baseline_of(context: Context, run_id: int) -> StoredBaseline | None:
    """The baseline of a run's series, None where it has none. Raises NotFound for an unknown run."""
    with context.database.read() as session:
        stored = _run(session, run_id)
        return baselines.match(baselines.every(session, stored.project), series_of_run(stored), stored.id)


def standing(session: Session, stored: StoredRun, known: Sequence[StoredBaseline] | None = None) -> Standing:
    """How one run stands to its baseline, judged with the spread between repeats. `known` are the baselines where they are read already."""
    every_ = baselines.every(session, stored.project) if known is None else known
    there = baselines.match(every_, series_of_run(stored), stored.id)
    if there is None:
        return Standing(NEVER)
    if there.run_id == stored.id:
        return Standing(IS_BASELINE, baseline=there)
    (base,) = runs.get_many(session, (there.run_id,))
    return _judged(session, there, base, (stored,))[stored.id]


def standings(context: Context, items: Sequence[RunListItem]) -> dict[int, Standing]:
    """How each row of a list stands; one query where there is no baseline, and a few for each baseline that rows are judged by."""
    with context.database.read() as session:
        return standings_of(session, {item.id: series_in(item) for item in items}, baselines.every(session))


def standings_of(session: Session, runs_in: Mapping[int, Series | None], known: Sequence[StoredBaseline]) -> dict[int, Standing]:
    """The same for runs by number with the series each is in, and the baselines there are."""
    found = {run_id: baselines.match(known, series, run_id) for run_id, series in runs_in.items()}
    stand = {run_id: Standing(NEVER) for run_id in runs_in}
    for there in {each.id: each for each in found.values() if each is not None}.values():
        its = [run_id for run_id, each in found.items() if each is not None and each.id == there.id]
        stored = {run.id: run for run in runs.get_many(session, tuple({*its, there.run_id}))}
        stand |= _judged(session, there, stored[there.run_id], [stored[run_id] for run_id in its if run_id != there.run_id])
        if there.run_id in its:
            stand[there.run_id] = Standing(IS_BASELINE, baseline=there)
    return stand


def _judged(session: Session, there: StoredBaseline, base: StoredRun, others: Sequence[StoredRun]) -> dict[int, Standing]:
    if not others:
        return {}
    spreads = spreads_between(session, base, others)
    found = {}
    for other in others:
        comparison = compare(_side(base), _side(other), spreads[other.id])
        verdict = against_baseline(comparison)
        found[other.id] = Standing(verdict.verdict, verdict.phase, there, verdict, comparison)
    return found


def _side(stored: StoredRun) -> Side:
    # What physics says about a run withholds rates alone, and none of those speaks for a phase here.
    return Side(stored.id, stored.run, {"model": stored.model_slug or stored.run.model})


def _fit(session: Session, run_id: int) -> tuple[StoredRun, Series]:
    stored = _run(session, run_id)
    series = series_of_run(stored)
    if series is None:
        missing = missing_identity(stored.model_slug or stored.run.model, stored.hardware_slug or stored.run.hardware, stored.run.engine)
        raise InvalidRequest(
            "run",
            f"Run {run_id} does not say {' and '.join(missing)}: name {'it' if len(missing) == 1 else 'them'} under Edit, "
            "since a baseline is of one model, hardware, engine and workload.",
        )
    if stored.run.requests.completed == 0:
        raise InvalidRequest("run", f"Run {run_id} completed no request, so nothing can be set against it: take another.")
    return stored, series


def _run(session: Session, run_id: int) -> StoredRun:
    found = runs.get(session, run_id)
    if found is None:
        raise NotFound(f"There is no run {run_id}: it was deleted, or the number is wrong.")
    return found


def _one(session: Session, number: int) -> StoredBaseline:
    found = baselines.get(session, number)
    if found is None:
        raise _not_there(number)
    return found


def _not_there(number: int) -> NotFound:
    return NotFound(f"There is no baseline {number}: it was deleted, with its run perhaps, or the number is wrong.")


def baseline_json(found: StoredBaseline) -> dict[str, Any]:
    """A baseline as JSON-ready data, with what its series is about."""
    return {
        "id": found.id,
        "name": found.name,
        "notes": found.notes,
        "run": found.run_id,
        "url": f"/runs/{found.run_id}",
        "series": None if found.series is None else asdict(found.series),
        "created_at": timestamp(found.created_at),
        "updated_at": timestamp(found.updated_at),
    }
