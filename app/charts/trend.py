"""A figure over time: each run a point, the noise around each level as a ground, and marks where a level or a setting changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.charts.layout import ROOMY, Figure, axis_titles, figure, named_point
from app.charts.text import label, lines
from app.charts.theme import CLEAR, Theme
from app.domain.quantity import change_percent, in_metric_unit, moment, percent
from app.domain.trends import Level, Trend, TrendPoint

# More words than these cover the points; the table has them all.
_MOST_REMARKS, _REMARK_LENGTH, _REMARK_ROWS = 4, 40, 3
_FEW_MINUTES = 10 / 1440
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


@dataclass(frozen=True)
class Remark:
    """A moment with words: what was changed, or what a person says happened."""

    at: datetime
    text: str


@dataclass(frozen=True)
class TrendChart:
    """A trend with its remarks. `title` names the figure; `baseline_id` is the run that the others are set against."""

    title: str
    trend: Trend
    remarks: tuple[Remark, ...] = ()
    baseline_id: int | None = None


def trend(chart: TrendChart, theme: Theme) -> Figure:
    """The figure, in the hue of the metric's phase. It has at least one known point."""
    found = chart.trend
    hue = found.metric.phase
    known = found.known
    scale, unit = _scale([point.value or 0.0 for point in known], found.metric.unit)
    data = [_ground(level, scale, theme.wash(hue)) for level in found.levels]
    data += [_centre(level, scale, theme.mark(hue)) for level in found.levels]
    data.append(_points(chart, known, scale, theme))
    ends = [(point.value or 0.0) / scale for point in known] + [end / scale for level in found.levels for end in (level.low, level.high)]
    low, high = min(ends), max(ends)
    room = (high - low) or abs(high) or 1.0
    top = high + 0.24 * room
    layout = {
        "xaxis": {"type": "date", "showgrid": False, "nticks": 5, "tickangle": 0, "tickformat": _dates(_days(known))},
        "yaxis": {"type": "linear", "range": [max(0.0, low - 0.16 * room), top], "tickformat": ",~g", "nticks": 5},
        "shapes": [
            *(_line(change.at, theme.ink, "solid") for change in found.changes),
            *(_line(each.at, theme.ink_3, "dot") for each in chart.remarks),
        ],
    }
    titles = axis_titles(_measured(known), f"{label(chart.title)}, {unit}")
    return figure(data, theme, layout, [*titles, *_changes(found, top, theme, hue), *_remarks(chart.remarks, theme)])


def _scale(values: Sequence[float], unit: str) -> tuple[float, str]:
    if unit != "s":
        return 1.0, unit
    typical = sorted(values)[len(values) // 2]
    return next(((scale, name) for scale, name in _TIMES if typical >= scale), _TIMES[-1])


def _days(points: Sequence[TrendPoint]) -> float:
    return (points[-1].at - points[0].at).total_seconds() / 86_400 if points else 0.0


def _dates(days: float) -> str:
    """The day where the runs of some days are shown, the time within one, to the second within minutes, the month over years."""
    if days > 400:
        return "%b %Y"
    if days > 3:
        return "%-d %b"
    if days > 1:
        return "%-d %b, %H:%M"
    return "%H:%M" if days > _FEW_MINUTES else "%H:%M:%S"


def _measured(points: Sequence[TrendPoint]) -> str:
    """What the times are, with the day where the ticks have none."""
    return "measured" if _days(points) > 1 else f"measured, {points[0].at:%-d %b %Y}"


def _ground(level: Level, scale: float, color: str) -> dict[str, Any]:
    """The noise of a level: what lies within is no change."""
    first, last = level.first.isoformat(), level.last.isoformat()
    low, high = level.low / scale, level.high / scale
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "noise",
        "x": [first, last, last, first],
        "y": [low, low, high, high],
        "fill": "toself",
        "fillcolor": color,
        "line": {"width": 0, "color": CLEAR},
        "hoverinfo": "skip",
    }


def _centre(level: Level, scale: float, color: str) -> dict[str, Any]:
    centre = level.centre / scale
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "level",
        "x": [level.first.isoformat(), level.last.isoformat()],
        "y": [centre, centre],
        "line": {"width": 2, "color": color},
        "hoverinfo": "skip",
    }


def _points(chart: TrendChart, known: Sequence[TrendPoint], scale: float, theme: Theme) -> dict[str, Any]:
    """The runs. The baseline is ink; a click opens a run, whose address app.js makes from `customdata`."""
    color = theme.mark(chart.trend.metric.phase)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "runs",
        "x": [point.at.isoformat() for point in known],
        "y": [(point.value or 0.0) / scale for point in known],
        "customdata": [point.run_id for point in known],
        "marker": {
            "size": 9,
            "symbol": ["diamond" if point.run_id == chart.baseline_id else "circle" for point in known],
            "color": [theme.ink if point.run_id == chart.baseline_id else color for point in known],
            "line": {"width": 2, "color": theme.surface},
            "opacity": 1,
        },
        "text": [_hover(chart, point) for point in known],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _hover(chart: TrendChart, point: TrendPoint) -> str:
    level = next((each for each in chart.trend.levels if point.run_id in each.runs), None)
    around = f"level {in_metric_unit(level.centre, chart.trend.metric.unit)} ± {percent(level.noise)}" if level else ""
    n = "n not known" if point.n is None else f"n {point.n:,}"
    what = "is the baseline" if point.run_id == chart.baseline_id else ""
    return lines(
        f"#{point.run_id} {label(point.name)}",
        f"{in_metric_unit(point.value, chart.trend.metric.unit)}, {n}, measured",
        moment(point.at),
        around,
        what,
    )


def _line(at: datetime, color: str, dash: str) -> dict[str, Any]:
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "x0": at.isoformat(),
        "x1": at.isoformat(),
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": {"width": 1, "color": color, "dash": dash},
    }


def _changes(found: Trend, top: float, theme: Theme, hue: str) -> list[dict[str, Any]]:
    place = {"xanchor": "left", "yanchor": "top", "xshift": 6}
    return [
        {**named_point(change_percent(change.change), 0.0, top, theme.word(hue), theme.surface, **place), "x": change.at.isoformat()}
        for change in found.changes
    ]


def _remarks(remarks: Sequence[Remark], theme: Theme) -> list[dict[str, Any]]:
    """The words of each remark at the foot of its line, where there is room; they all stand in the table."""
    return [
        {
            "text": label(each.text if len(each.text) <= _REMARK_LENGTH else f"{each.text[: _REMARK_LENGTH - 1]}…"),
            "x": each.at.isoformat(),
            "y": 0.02 + 0.09 * (index % _REMARK_ROWS),
            "yref": "paper",
            "xanchor": "left",
            "yanchor": "bottom",
            "xshift": 4,
            "showarrow": False,
            "font": {"color": theme.ink_2, "size": 12},
            "name": ROOMY,
        }
        for index, each in enumerate(remarks[-_MOST_REMARKS:])
    ]
