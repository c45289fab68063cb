"""Series over time: which there are and how the newest run of each stands, and the trends of one with what changed beside them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlmodel import Session

from app.domain.against_baseline import DECODE, PREFILL
from app.domain.change_points import MOST
from app.domain.errors import InvalidRequest, NotFound
from app.domain.gates import NAMES
from app.domain.metrics import METRICS
from app.domain.series import Series
from app.domain.text import clean_text
from app.domain.trends import SettingChange, Trend, TrendPoint, setting_changes, trend
from app.services.baselines import Standing, standings_of
from app.services.context import Context
from app.services.noise import series_of_run
from app.store import annotations, baselines, runs, series_runs
from app.store.annotations import StoredAnnotation
from app.store.baselines import StoredBaseline
from app.store.records import StoredRun
from app.store.series_runs import SeriesRun

WHOLE = (("e2e_s", "mean"), ("e2e_s", "p50"))
_TREND_STATS = ("mean", "p50", "p90", "p95", "p99")
_NOTE_LIMIT = 500
_LISTED_NOTES = 500


@dataclass(frozen=True)
class SeriesEntry:
    """A series of the index: how many runs, the newest of them, and how that one stands."""

    series: Series
    runs: int
    newest: int
    standing: Standing


@dataclass(frozen=True)
class Index:
    """A page of series; `unplaced` counts runs that are in none, `next` is where the page after it starts."""

    entries: tuple[SeriesEntry, ...]
    total: int
    unplaced: int
    next: int | None


@dataclass(frozen=True)
class SeriesTrends:
    """A series over time, oldest run first. Its trends are those of both phases and of the whole, or the one that was asked for."""

    series: Series
    runs: tuple[SeriesRun, ...]
    trends: tuple[Trend, ...]
    changed: tuple[SettingChange, ...]
    notes: tuple[StoredAnnotation, ...]
    baseline: StoredBaseline | None
    standing: Standing


def index(context: Context, project: str | None = None, start: int = 0, limit: int = 50) -> Index:
    """Every series that runs are in, the one measured last first. One that has a baseline is anchored there, else at its newest run."""
    with context.database.read() as session:
        known = baselines.every(session, project)
        anchors = [found.series for found in known if found.series is not None]
        counted: dict[Series, list[int]] = {}
        unplaced = 0
        for series, run_id, number in series_runs.every(session, project):
            if series is None:
                unplaced += number
                continue
            anchor = next((each for each in (*anchors, *counted) if each.holds(series)), series)
            newest, there = counted.get(anchor, [run_id, 0])
            counted[anchor] = [newest, there + number]
        shown = list(counted.items())[start : start + limit]
        stand = standings_of(session, {newest: series for series, (newest, _) in shown}, known)
    entries = tuple(SeriesEntry(series, number, newest, stand[newest]) for series, (newest, number) in shown)
    return Index(entries, len(counted), unplaced, start + limit if start + limit < len(counted) else None)


def series_trends(context: Context, series: Series, metric: str | None = None) -> SeriesTrends:
    """The newest runs of a series with their trends. Raises NotFound when no run is in it, InvalidRequest for a metric there is not."""
    asked = None if metric is None else _asked(metric)
    with context.database.read() as session:
        found = series_runs.newest(session, series, MOST)
        if not found:
            raise NotFound("No run is in this series: it was deleted or corrected, or the address is cut off; /trends lists the series.")
        known = baselines.every(session, series.project)
        notes = annotations.of_runs(session, [run.id for run in found])
        standing = standings_of(session, {found[-1].id: series}, known)[found[-1].id]
    wanted = [asked] if asked else [each for each in (_speaking(found, keys) for keys in (PREFILL, DECODE, WHOLE)) if each]
    return SeriesTrends(
        series=series,
        runs=found,
        trends=tuple(_trend(found, key, stat) for key, stat in wanted),
        changed=setting_changes([(run.id, run.happened_at, run.settings) for run in found]),
        notes=tuple(notes),
        baseline=standing.baseline,
        standing=standing,
    )


def series_of_number(context: Context, run_id: int) -> Series | None:
    """The series of a stored run as its trends are addressed: anchored at its baseline where it has one. Raises NotFound."""
    with context.database.read() as session:
        stored = _stored(session, run_id)
        own = series_of_run(stored)
        there = None if own is None else baselines.match(baselines.every(session, own.project), own, run_id)
    return own if there is None or there.series is None else there.series


def _asked(metric: str) -> tuple[str, str]:
    """Key and statistic of `itl.p50` or `output_tokens_per_s`. Raises InvalidRequest."""
    name, _, stat = metric.partition(".")
    key = NAMES.get(name)
    if key is None:
        raise InvalidRequest(
            "metric", f"There is no metric “{clean_text(name, 40)}”: the glossary lists them, such as ttft.mean or itl.p50."
        )
    if METRICS[key].kind == "rate":
        return key, "value"
    if stat not in _TREND_STATS:
        raise InvalidRequest("metric", f"Say which statistic of {key}: {', '.join(f'{key}.{each}' for each in _TREND_STATS)}.")
    return key, stat


def _speaking(found: Sequence[SeriesRun], keys: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """The figure of a phase that most runs have; the first where several do."""
    counts = {at: sum(at in run.figures for run in found) for at in keys}
    best = max(keys, key=lambda at: counts[at])
    return best if counts[best] else None


def _trend(found: Sequence[SeriesRun], key: str, stat: str) -> Trend:
    # Tools that mean something else by a name make no common line: the newest run's meaning counts.
    meant = next((run.figures[key, stat].definition for run in reversed(found) if (key, stat) in run.figures), None)
    return trend(METRICS[key], stat, [_point(run, key, stat, meant) for run in found])


def _point(run: SeriesRun, key: str, stat: str, meant: str | None) -> TrendPoint:
    empty = TrendPoint(run.id, run.name, run.happened_at, None)
    if run.withheld & {key, f"{key}.{stat}"}:
        return replace(empty, why="withheld by a flag")
    if run.completed == 0:
        return replace(empty, why="no request was completed")
    figure = run.figures.get((key, stat))
    if figure is None:
        return replace(empty, why="the file does not have it")
    if figure.definition != meant:
        return replace(empty, why=f"another definition: {figure.definition}")
    return TrendPoint(run.id, run.name, run.happened_at, figure.value, figure.n)


def annotate(context: Context, run_id: int, text: str, now: datetime) -> StoredAnnotation:
    """Say what happened when a run was measured. Raises NotFound, or InvalidRequest when there is nothing said."""
    words = clean_text(text, _NOTE_LIMIT)
    if not words:
        raise InvalidRequest("text", "An annotation needs words: say what happened, such as “driver 570 to 580”.")
    with context.database.write() as session:
        _stored(session, run_id)
        return annotations.add(session, run_id, words, now)


def annotations_of(context: Context, run_id: int | None) -> list[StoredAnnotation]:
    """Those of one run, or the ones written last of all."""
    with context.database.read() as session:
        return annotations.newest(session, _LISTED_NOTES) if run_id is None else annotations.of_runs(session, [run_id])


def take_back(context: Context, number: int) -> None:
    """Delete an annotation. Raises NotFound."""
    with context.database.write() as session:
        if not annotations.remove(session, number):
            raise NotFound(f"There is no annotation {number}: it was deleted, with its run perhaps, or the number is wrong.")


def _stored(session: Session, run_id: int) -> StoredRun:
    found = runs.get(session, run_id)
    if found is None:
        raise NotFound(f"There is no run {run_id}: it was deleted, or the number is wrong.")
    return found
