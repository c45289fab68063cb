"""A comparison as its page shows it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from app.charts import svg
from app.domain.comparison import Comparison, MetricDelta, Side
from app.domain.metrics import METRICS, Metric
from app.domain.observed import RequestTimes, measured_times
from app.domain.quantity import NOT_KNOWN, change_percent, change_seconds, in_metric_unit, percent
from app.domain.run import Rate
from app.pages.attribution_view import AttributionView, attribution_view
from app.pages.causes_view import CausesView, causes_view
from app.pages.run_view import run_words
from app.services import figures
from app.services.diagnosing import Explained
from app.services.runs import RunView
from app.services.sentences import comparison_sentence

_LETTERS = "ABCDEFGH"
_MAIN_STATS = ("mean", "p50", "value")
_SCOPES = {"request": "per request", "aggregate": "aggregate", "device": "per device"}
_SETTINGS = {
    "tp": "Tensor parallel",
    "weight_dtype": "Weights",
    "kv_dtype": "KV cache",
    "load_mode": "Kind of load",
    "concurrency": "Clients",
    "request_rate_per_s": "Requests a second",
    "prompt_tokens_mean": "Prompt tokens, mean",
    "output_tokens_mean": "Output tokens, mean",
    "context_depth_tokens": "Context before, tokens",
}


@dataclass(frozen=True)
class SideView:
    """One run of the comparison with its letter and its phase line."""

    letter: str
    run: RunView
    words: str
    times: RequestTimes


@dataclass(frozen=True)
class DeltaRow:
    """One statistic of one metric, base and other."""

    metric: Metric
    stat: str
    base: str
    other: str
    delta: str
    relative: str
    scope: str
    counts_from: str
    row: MetricDelta


@dataclass(frozen=True)
class PairView:
    """The base against one other run."""

    letter: str
    comparison: Comparison
    sentence: str
    groups: tuple[tuple[str, tuple[DeltaRow, ...]], ...]
    settings: tuple[tuple[str, str, str], ...]
    moved: AttributionView | None
    figure_link: str
    why: CausesView


def compare_values(
    views: Sequence[RunView], comparisons: Sequence[Comparison], reasons: Sequence[Explained], show_all: bool
) -> dict[str, Any]:
    """Everything the page of a comparison needs."""
    sides = [SideView(_LETTERS[index], view, run_words(view), measured_times(view.stored.run)) for index, view in enumerate(views)]
    pairs = [_pair(_LETTERS[index], *both, show_all) for index, both in enumerate(zip(comparisons, reasons, strict=True), 1)]
    totals = [side.times.total_s for side in sides if side.times.total_s is not None]
    ids = [",".join(str(run_id) for run_id in view.ids) for view in views]
    split = [(side, figures.decomposition(side.run)) for side in sides]
    return {
        "sides": sides,
        "pairs": pairs,
        "sentence": pairs[0].sentence.removesuffix("."),
        "longest_s": max(totals) if totals else None,
        "decompositions": split,
        "longest_half_s": {
            phase: max(
                (svg.half_length(half) for _, found in split if found for half in (found.prefill, found.decode) if half.phase == phase),
                default=None,
            )
            for phase in ("prefill", "decode")
        },
        "show_all": show_all,
        "noise_note": comparisons[0].notes[0],
        "side_ids": ids,
        "toggle_link": _link(ids, all=None if show_all else "1"),
        "swap_link": _link([ids[1], ids[0], *ids[2:]]),
        "api_link": f"/api/v1{_link(ids)}",
    }


def _joined(side: Side) -> str:
    return ",".join(str(run_id) for run_id in side.ids)


def _link(ids: Sequence[str], **more: str | None) -> str:
    query: list[tuple[str, str]] = [("base", ids[0]), *(("other", side) for side in ids[1:])]
    query += [(key, value) for key, value in more.items() if value]
    return f"/compare?{urlencode(query, safe=',')}"


def _pair(letter: str, comparison: Comparison, reason: Explained, show_all: bool) -> PairView:
    rows = [
        _row(row, comparison.base.run.rate(row.key) or comparison.other.run.rate(row.key))
        for row in comparison.metrics
        if show_all or row.stat in _MAIN_STATS
    ]
    groups = []
    for title, phases in (("Prefill", ("prefill", "queue")), ("Decode", ("decode",)), ("Whole request", ("request", "load"))):
        members = tuple(row for row in rows if row.metric.phase in phases)
        if members:
            groups.append((title, members))
    settings = tuple((_setting(item.key), _shown(item.base), _shown(item.other)) for item in comparison.comparable.differing)
    return PairView(
        letter,
        comparison,
        comparison_sentence(comparison, reason.diagnosis),
        tuple(groups),
        settings,
        attribution_view(comparison),
        f"/api/v1{_link([_joined(comparison.base), _joined(comparison.other)], figure='plotly')}",
        causes_view(reason),
    )


def _row(row: MetricDelta, rate: Rate | None) -> DeltaRow:
    metric = METRICS[row.key]
    unit = metric.unit
    change = ""
    if row.delta is not None:
        change = change_seconds(row.delta) if unit == "s" else f"{'+' if row.delta >= 0 else '−'}{in_metric_unit(abs(row.delta), unit)}"
    relative = change_percent(row.ratio - 1) if row.ratio is not None else ""
    scope = _SCOPES[rate.scope] if rate else ""
    values = (_value(row.base, unit), _value(row.other, unit))
    return DeltaRow(metric, row.stat, *values, change, relative, scope, percent(row.noise), row)


def _value(value: float | None, unit: str) -> str:
    return NOT_KNOWN if value is None else in_metric_unit(value, unit)


def _setting(key: str) -> str:
    """A setting's name for people; a label of the file keeps the file's word."""
    return _SETTINGS.get(key) or (key.removeprefix("label: ") if key.startswith("label: ") else key.replace("_", " ").capitalize())


def _shown(value: object) -> str:
    if value is None:
        return NOT_KNOWN
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
