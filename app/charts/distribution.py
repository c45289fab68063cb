"""The share of samples at or below each value, with the percentiles marked and n beside them.

With samples the curve is the empirical distribution, decimated to at most 2,000 points that keep both ends. Without, only the percentiles
that the file states are marked; between the marks nothing is known, and the line that joins them is dotted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.charts.layout import ROOMY, Figure, axis_titles, figure, linear_axis, log_axis, named_point, note, typed_array
from app.charts.text import label, lines
from app.charts.theme import GROUP_SYMBOLS, Theme
from app.domain.distribution import Mark, Spread
from app.domain.quantity import count, number, seconds
from app.domain.run import Floats

MOST_POINTS = 2_000
_LOG_FROM = 20.0
_STEPS_BELOW = 400
# Where the labels of the upper percentiles stand, in percent: on a steep curve their marks lie closer than a line of text.
_LABEL_HEIGHTS = {"p90": 80.0, "p95": 87.0, "p99": 94.0}
_ORIGINS = {"samples": "measured, from samples", "reported": "measured, as the file reports it", "derived": "derived from other figures"}


@dataclass(frozen=True)
class NamedSpread:
    """One curve of several, with the name of its run."""

    title: str
    spread: Spread


@dataclass(frozen=True)
class _Style:
    """How one curve looks."""

    color: str
    word: str
    symbol: str = "circle"


@dataclass(frozen=True)
class _Axis:
    """Seconds to positions on the x axis."""

    scale: float
    unit: str
    logarithmic: bool

    def value(self, seconds_: float) -> float:
        """The number on the axis."""
        return seconds_ / self.scale

    def at(self, seconds_: float) -> float:
        """The coordinate of an annotation: the exponent on a logarithmic axis."""
        return float(np.log10(self.value(seconds_))) if self.logarithmic else self.value(seconds_)


def distribution(spread: Spread, theme: Theme) -> Figure:
    """The figure of one metric of one run, in the hue of its phase."""
    axis = _axis((spread,))
    style = _Style(theme.mark(spread.hue), theme.word(spread.hue))
    data = [*_curve(spread, spread.title, style, axis), *_marks(spread, spread.title, style, axis, theme)]
    return _figure((spread,), data, _mark_labels(spread, axis, theme, style), axis, theme)


def distributions(curves: Sequence[NamedSpread], theme: Theme) -> Figure:
    """The same metric of several runs (at least one): of two the base is grey and the other ink, more take the group colours."""
    spreads = tuple(curve.spread for curve in curves)
    axis = _axis(spreads)
    data: list[dict[str, Any]] = []
    labels = []
    for index, curve in enumerate(curves):
        style = _style_among(len(curves), index, theme)
        data += [*_curve(curve.spread, curve.title, style, axis), *_marks(curve.spread, curve.title, style, axis, theme)]
        labels += _name(curve, style, axis, index, theme)
    return _figure(spreads, data, labels, axis, theme)


def _figure(spreads: Sequence[Spread], data: list[dict[str, Any]], labels: list[dict[str, Any]], axis: _Axis, theme: Theme) -> Figure:
    low, high = _ends(spreads)
    if axis.logarithmic:
        x_axis = log_axis(axis.value(low) / 1.05, axis.value(high) * 1.05)
    else:
        room = 0.04 * (high - low) or 0.04 * high or 1.0
        x_axis = linear_axis(axis.value(low - room), axis.value(high + 2 * room))
    first = spreads[0]
    n = " and ".join(dict.fromkeys(count(spread.known.n) for spread in spreads))
    titles = axis_titles(f"{label(first.title)}, {axis.unit}", f"% of {first.of_what} at or below, n {n}")
    layout = {"xaxis": x_axis, "yaxis": {**linear_axis(0, 104), "tickvals": [0, 25, 50, 75, 100]}}
    return figure(data, theme, layout, [*titles, *labels])


def _axis(spreads: Sequence[Spread]) -> _Axis:
    """The unit that suits the median; logarithmic where the largest value is more than twenty times the smallest."""
    low, high = _ends(spreads)
    middles = [mark.value_s for spread in spreads for mark in spread.marks if mark.name == "p50"]
    typical = middles[0] if middles else high
    scale, unit = next(((scale, unit) for scale, unit in ((1.0, "s"), (1e-3, "ms")) if typical >= scale), (1e-6, "µs"))
    return _Axis(scale, unit, low > 0 and high > _LOG_FROM * low)


def _ends(spreads: Sequence[Spread]) -> tuple[float, float]:
    found = [float(end) for spread in spreads if spread.samples.size for end in (spread.samples[0], spread.samples[-1])]
    found += [mark.value_s for spread in spreads for mark in spread.outline]
    return (min(found), max(found)) if found else (0.0, 1.0)


def _style_among(curves: int, index: int, theme: Theme) -> _Style:
    if curves <= 2:
        return _Style((theme.edge, theme.ink)[index], (theme.ink_2, theme.ink)[index])
    last = min(index, len(theme.groups) - 1)
    return _Style(theme.groups[last], theme.groups[last], GROUP_SYMBOLS[last])


def decimated(values: Floats) -> tuple[Floats, Floats]:
    """Sorted samples as a cumulative curve: values and percent at or below, from 0 at the smallest, at most MOST_POINTS of each."""
    shares = np.arange(1, values.size + 1) / values.size * 100
    kept = np.unique(np.linspace(0, values.size - 1, min(values.size, MOST_POINTS - 1)).round().astype(int))
    return np.concatenate((values[:1], values[kept])), np.concatenate(([0.0], shares[kept]))


def _curve(spread: Spread, title: str, style: _Style, axis: _Axis) -> list[dict[str, Any]]:
    """The curve of the samples, or the dotted line between the percentiles that a file states."""
    trace: dict[str, Any] = {"type": "scatter", "mode": "lines", "name": label(title)}
    if not spread.samples.size:
        x = np.array([axis.value(mark.value_s) for mark in spread.outline])
        y = np.array([mark.percent for mark in spread.outline])
        line = {"color": style.color, "width": 1, "dash": "2px,3px"}
        return [{**trace, "x": typed_array(x), "y": typed_array(y), "line": line, "hoverinfo": "skip"}]
    values, shares = decimated(spread.samples)
    line = {"color": style.color, "width": 2, "shape": "hv" if spread.samples.size < _STEPS_BELOW else "linear"}
    more = {
        "text": lines(label(title), "measured"),
        "hovertemplate": f"%{{text}}<br>%{{y:.1f}} % within %{{x:.4~g}} {axis.unit}<extra></extra>",
    }
    return [{**trace, "x": typed_array(values / axis.scale), "y": typed_array(shares), "line": line, **more}]


def _marks(spread: Spread, title: str, style: _Style, axis: _Axis, theme: Theme) -> list[dict[str, Any]]:
    """The percentiles as marks; grey where fewer than ten samples lie beyond."""
    if not spread.marks:
        return []
    colors = [theme.ink_3 if spread.rests_on_too_little(mark.percent) else style.color for mark in spread.marks]
    marker = {"size": 9, "symbol": style.symbol, "color": colors, "line": {"width": 2, "color": theme.surface}, "opacity": 1}
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"{label(title)}, percentiles",
            "x": [axis.value(mark.value_s) for mark in spread.marks],
            "y": [mark.percent for mark in spread.marks],
            "marker": marker,
            "text": [_hover(spread, title, mark) for mark in spread.marks],
            "hovertemplate": "%{text}<extra></extra>",
        }
    ]


def _hover(spread: Spread, title: str, mark: Mark) -> str:
    n = "n not known" if spread.known.n is None else f"n {count(spread.known.n)}"
    weak = "rests on fewer than ten samples" if spread.known.n is not None and spread.rests_on_too_little(mark.percent) else ""
    return lines(f"{label(title)} {mark.name}", f"{seconds(mark.value_s)}, {n}", weak, _ORIGINS[spread.known.origin])


def _mark_labels(spread: Spread, axis: _Axis, theme: Theme, style: _Style) -> list[dict[str, Any]]:
    """Each percentile by name and value, to the right of its mark and below the curve; those in the bend only where there is room."""
    labels = []
    for mark in spread.marks:
        text = f"{mark.name} {number(axis.value(mark.value_s))}"
        place: dict[str, Any] = {"xanchor": "left", "yanchor": "middle", "xshift": 10}
        if mark.name in ("p90", "p95"):
            place["name"] = ROOMY
        height = _LABEL_HEIGHTS.get(mark.name, mark.percent - 3)
        if spread.rests_on_too_little(mark.percent):
            labels.append(note(text, axis.at(mark.value_s), height, theme.ink_3, **place))
        else:
            labels.append(named_point(text, axis.at(mark.value_s), height, style.word, theme.surface, **place))
    return labels


def _name(curve: NamedSpread, style: _Style, axis: _Axis, index: int, theme: Theme) -> list[dict[str, Any]]:
    """The name of a curve at its median, lower for each further one so that two names do not meet."""
    middle = next((mark for mark in curve.spread.marks if mark.name == "p50"), None)
    if middle is None:
        return []
    y = max(50.0 - 12.0 * index, 8.0)
    place = {"xanchor": "left", "yanchor": "middle", "xshift": 9}
    return [named_point(label(curve.title), axis.at(middle.value_s), y, style.word, theme.surface, **place)]
