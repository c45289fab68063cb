"""A heat map: one hue from wash to ink over two logarithmic axes, and the line at which arithmetic and memory change places."""

import base64
import math
from typing import Any

import numpy as np

from app.charts.layout import ROOMY, Figure, axis_titles, figure, named_point
from app.charts.text import label, lines
from app.charts.theme import Theme
from app.domain.maps import Axis, Floats, HeatMap
from app.domain.quantity import count, in_metric_unit, number

_TICKS = 9
# A region with a smaller share of the cells is not named: the word would not fit in it.
_NAMED_SHARE = 0.06


def heatmap(chart: HeatMap, theme: Theme) -> Figure:
    """The figure: cells that fit in memory coloured, the others left open, the boundary in ink with a word on either side.

    There is no colour bar, which would need inline styles: the page says what the lightest and the darkest cell stand for.
    """
    x, y = np.log2(chart.x.values), np.log2(chart.y.values)
    data: list[dict[str, Any]] = [_cells(chart, x, y, theme)]
    known = chart.balance[np.isfinite(chart.balance)]
    if known.size and known.min() < 0 < known.max():
        data.append(_boundary(chart.balance, x, y, theme))
    layout = {"xaxis": _ticks(chart.x, x), "yaxis": {**_ticks(chart.y, y), "showgrid": False}}
    return figure(data, theme, layout, [*axis_titles(chart.x.title, chart.y.title), *_regions(chart, x, y, theme)])


def _cells(chart: HeatMap, x: Floats, y: Floats, theme: Theme) -> dict[str, Any]:
    low, high = (math.log10(end) for end in chart.ends or (1.0, 10.0))
    hue = chart.metric.hue
    return {
        "type": "heatmap",
        "name": chart.metric.title,
        "x": x.tolist(),
        "y": y.tolist(),
        "z": _matrix(np.log10(chart.shown)),
        "colorscale": [[0, theme.wash(hue)], [0.6, theme.mark(hue)], [1, theme.word(hue)]],
        "zmin": low,
        "zmax": max(high, low + 1e-6),
        "text": _hovers(chart),
        "hovertemplate": "%{text}<extra></extra>",
        "hoverongaps": False,
        # Any gap makes plotly paint the cells itself; without one it stretches a picture by an inline style, which the page forbids.
        "xgap": 1e-3,
        "ygap": 1e-3,
        "showscale": False,
    }


def _boundary(balance: Floats, x: Floats, y: Floats, theme: Theme) -> dict[str, Any]:
    """The contour at which arithmetic and memory take equally long."""
    return {
        "type": "contour",
        "name": "boundary",
        "x": x.tolist(),
        "y": y.tolist(),
        "z": _matrix(balance),
        "contours": {"start": 0, "end": 0, "size": 1, "coloring": "none"},
        "line": {"color": theme.ink, "width": 2},
        "showscale": False,
        "hoverinfo": "skip",
    }


def _matrix(values: Floats) -> dict[str, str]:
    """A table of numbers as plotly's typed array with its shape."""
    data = base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode("ascii")
    return {"dtype": "f4", "bdata": data, "shape": f"{values.shape[0]}, {values.shape[1]}"}


def _hovers(chart: HeatMap) -> list[list[str]]:
    return [
        [_hover(chart, row, column) for column in range(len(chart.x.values))]  # one text a cell, read on hover alone
        for row in range(len(chart.y.values))
    ]


def _hover(chart: HeatMap, row: int, column: int) -> str:
    balance = float(chart.balance[row, column])
    if not math.isfinite(balance):
        return ""
    longer = "arithmetic" if balance > 0 else "memory"
    return lines(
        f"{label(chart.metric.title)} {in_metric_unit(float(chart.values[row, column]), chart.metric.unit)}",
        f"{count(chart.x.values[column])} {label(chart.x.title)}; batch {count(chart.y.values[row])}",
        f"{longer} sets the pace, by {number(2 ** abs(balance), 2)}×",
        "predicted",
    )


def _ticks(axis: Axis, places: Floats) -> dict[str, Any]:
    """Whole powers of two as ticks, as many as can be read."""
    low, high = float(places[0]), float(places[-1])
    step = max(1, math.ceil((high - low) / _TICKS))
    powers = list(range(math.ceil(low), math.floor(high) + 1, step))
    half = (high - low) / max(len(places) - 1, 1) / 2
    return {
        "type": "linear",
        "range": [low - half, high + half],
        "tickmode": "array",
        "tickvals": powers,
        "ticktext": [count(2**power) for power in powers],
    }


def _regions(chart: HeatMap, x: Floats, y: Floats, theme: Theme) -> list[dict[str, Any]]:
    """A word in the middle of each region that is large enough: which limit rules there, or that it does not fit."""
    drawn = np.isfinite(chart.shown)
    found = (
        ("memory sets the pace", drawn & (chart.balance < 0), theme.ink),
        ("arithmetic sets the pace", drawn & (chart.balance >= 0), theme.ink),
        ("does not fit", chart.fits == 0, theme.ink_2),
    )
    words = []
    for text, region, color in found:
        if region.mean() < _NAMED_SHARE:
            continue
        rows, columns = np.nonzero(region)
        words.append(named_point(text, float(np.median(x[columns])), float(np.median(y[rows])), color, theme.surface, name=ROOMY))
    return words
