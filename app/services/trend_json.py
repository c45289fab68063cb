"""Trends as JSON-ready data, and the query by which a series is addressed."""

from dataclasses import asdict
from typing import Any

from app.domain.trends import Level, LevelChange, Trend
from app.services.baselines import Standing
from app.services.series_words import series_words
from app.services.summary import timestamp
from app.services.trends import Index, SeriesTrends
from app.store.annotations import StoredAnnotation


def standing_json(standing: Standing) -> dict[str, Any]:
    """How a run stands to its baseline: one word, the phase that it is about, and the baseline."""
    there = standing.baseline
    return {
        "verdict": standing.word,
        "phase": standing.phase or None,
        "baseline": None if there is None else {"id": there.id, "name": there.name, "run": there.run_id},
    }


def index_json(found: Index) -> dict[str, Any]:
    """The index of series."""
    return {
        "items": [
            {
                "title": series_words(entry.series),
                "series": asdict(entry.series),
                "runs": entry.runs,
                "newest_run": entry.newest,
                **standing_json(entry.standing),
            }
            for entry in found.entries
        ],
        "next": None if found.next is None else str(found.next),
        "total": found.total,
        "unplaced_runs": found.unplaced,
    }


def trends_json(found: SeriesTrends) -> dict[str, Any]:
    """The trends of a series: points, levels with their noise, changes, and what changed beside them."""
    return {
        "title": series_words(found.series),
        "series": asdict(found.series),
        **standing_json(found.standing),
        "trends": [_trend_json(each) for each in found.trends],
        "changed": [
            {"run": each.run_id, "at": timestamp(each.at), "key": each.key, "before": each.before, "after": each.after}
            for each in found.changed
        ],
        "annotations": [annotation_json(each) for each in found.notes],
    }


def annotation_json(found: StoredAnnotation) -> dict[str, Any]:
    """One annotation."""
    return {"id": found.id, "run": found.run_id, "text": found.text, "created_at": timestamp(found.created_at)}


def _trend_json(found: Trend) -> dict[str, Any]:
    return {
        "key": found.metric.key,
        "stat": found.stat,
        "unit": found.metric.unit,
        "phase": found.metric.phase,
        "points": [
            {"run": each.run_id, "name": each.name, "at": timestamp(each.at), "value": each.value, "n": each.n, "why": each.why or None}
            for each in found.points
        ],
        "levels": [_level_json(each) for each in found.levels],
        "changes": [_change_json(each) for each in found.changes],
    }


def _level_json(level: Level) -> dict[str, Any]:
    return {
        "first_run": level.runs[0],
        "last_run": level.runs[-1],
        "runs": len(level.runs),
        "centre": level.centre,
        "spread": level.spread,
        "noise": level.noise,
        "low": level.low,
        "high": level.high,
    }


def _change_json(change: LevelChange) -> dict[str, Any]:
    return {
        "run": change.run_id,
        "before_run": change.before_run_id,
        "at": timestamp(change.at),
        "before": change.before,
        "after": change.after,
        "change": change.change,
        "verdict": change.verdict,
    }
