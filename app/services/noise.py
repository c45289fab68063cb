"""How far repeats of a stored run lie apart: the runs of its series with its own settings, those of its own level."""

from collections.abc import Collection, Mapping, Sequence

from sqlmodel import Session

from app.domain.comparison import NO_SPREADS, Spreads
from app.domain.noise import FEWEST_REPEATS, spread_around
from app.domain.series import Series, series_of
from app.domain.trends import telling
from app.store.records import StoredRun
from app.store.series_runs import SeriesRun, around

# Runs before and after that are looked at: enough for a spread, few enough for every comparison.
_EACH = 20


def series_of_run(stored: StoredRun) -> Series | None:
    """The series of a stored run; None while model, hardware or engine is not known."""
    run = stored.run
    identity = (stored.model_slug or run.model, stored.hardware_slug or run.hardware, run.engine)
    return series_of(stored.project, identity, run.load_mode, run.measured_at, run.workload)


def spreads_between(session: Session, base: StoredRun, others: Sequence[StoredRun]) -> dict[int, Spreads]:
    """For each of `others` the spreads that a comparison with `base` is judged by: of the base's repeats, and where its settings are other
    ones, of its own repeats too; the larger counts. The run that is judged is in neither: it may not raise the noise it is held against.
    """
    found: dict[int, Spreads] = {}
    runs = repeats_of(session, base)
    for other in others:
        spreads = spreads_of(runs, base.id, {other.id})
        if other.id not in {run.id for run in runs}:
            own = _spreads_beside(repeats_of(session, other), other.id, base.id)
            spreads = {at: max(spreads.get(at, 0.0), own.get(at, 0.0)) for at in {*spreads, *own}}
        found[other.id] = spreads
    return found


def _spreads_beside(runs: Sequence[SeriesRun], run_id: int, base_id: int) -> Spreads:
    """The spreads of a run's repeats without the run itself: those of the level that the one before it (else after it) belongs to."""
    place = next((index for index, run in enumerate(runs) if run.id == run_id), None)
    if place is None or len(runs) < FEWEST_REPEATS + 1:
        return NO_SPREADS
    neighbour = runs[place - 1] if place else runs[1]
    return spreads_of(runs, neighbour.id, {run_id, base_id} - {neighbour.id})


def repeats_of(session: Session, stored: StoredRun) -> tuple[SeriesRun, ...]:
    """The runs around this one, itself among them, that measured the same with the same settings; empty while it is in no series."""
    series = series_of_run(stored)
    if series is None:
        return ()
    runs = around(session, series, stored.id, stored.happened_at, _EACH)
    own = next((run for run in runs if run.id == stored.id), None)
    if own is None:
        return ()
    names = telling([run.settings for run in runs])
    wanted = _configuration(own, names)
    return tuple(run for run in runs if _configuration(run, names) == wanted)


def _configuration(run: SeriesRun, names: frozenset[str]) -> Mapping[str, str | int]:
    return {name: value for name, value in run.settings.items() if name in names}


def spreads_of(runs: Sequence[SeriesRun], run_id: int, without: Collection[int]) -> Spreads:
    """The spread of each figure around the run of this number; figures of another definition than its own are left out."""
    own = next((run for run in runs if run.id == run_id), None)
    if own is None:
        return NO_SPREADS
    used = [run for run in runs if run.id not in without and run.completed != 0]
    found = {}
    for at, figure in own.figures.items():
        having = [run for run in used if at in run.figures and run.figures[at].definition == figure.definition]
        index = next((place for place, run in enumerate(having) if run.id == run_id), None)
        spread = None if index is None else spread_around([run.figures[at].value for run in having], index)
        if spread is not None:
            found[at] = spread
    return found
