"""The chart of a trend: its remarks are what changed in the settings and what people say."""

from datetime import datetime

from app.charts.trend import Remark, TrendChart
from app.domain.quantity import NOT_KNOWN
from app.domain.trends import LABEL, SettingChange, Trend
from app.services.trends import SeriesTrends

SETTINGS = {
    "engine_version": "Engine version",
    "devices": "Devices",
    "tp": "Tensor parallel",
    "pp": "Pipeline parallel",
    "ep": "Expert parallel",
    "dp": "Data parallel",
    "weight_dtype": "Weights",
    "kv_dtype": "KV cache",
    "format": "Tool",
    "dataset": "Dataset",
}


def chart_of(found: SeriesTrends, trend: Trend) -> TrendChart:
    """The input of the chart `trend`; the trend has at least one known point."""
    stat = "" if trend.stat == "value" else f" {trend.stat}"
    baseline = None if found.baseline is None else found.baseline.run_id
    return TrendChart(f"{trend.metric.title}{stat}", trend, remarks(found), baseline)


def remarks(found: SeriesTrends) -> tuple[Remark, ...]:
    """Every change of settings, those of one run together, and every annotation, in the order of their runs."""
    moments = {run.id: run.happened_at for run in found.runs}
    said: dict[tuple[datetime, int], list[str]] = {}
    for change in found.changed:
        said.setdefault((change.at, change.run_id), []).append(change_words(change))
    for note in found.notes:
        said.setdefault((moments[note.run_id], note.run_id), []).append(note.text)
    return tuple(Remark(at, "; ".join(texts)) for (at, _), texts in sorted(said.items()))


def change_words(change: SettingChange) -> str:
    """A changed setting in words: "Tensor parallel 1 → 2"."""
    name = SETTINGS.get(change.key) or change.key.removeprefix(LABEL)
    return f"{name} {NOT_KNOWN if change.before is None else change.before} → {NOT_KNOWN if change.after is None else change.after}"
