"""Charts: one pure function per chart, domain objects in, a plotly figure as a plain dict out. No plotly here.

`figure` gives a valid plotly figure in one theme. `page_figure` gives the light one together with what differs in the dark one, so that
a page carries its numbers once and app.js can redraw in the other theme.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from app.charts.decomposition import decomposition, decompositions
from app.charts.distribution import distribution, distributions
from app.charts.heatmap import heatmap
from app.charts.layout import Figure
from app.charts.roofline import roofline
from app.charts.telemetry import telemetry_chart
from app.charts.theme import DARK, LIGHT, MARK, NAMES, Theme, coloured, template
from app.charts.trend import trend
from app.charts.waterfall import waterfall

Chart = Callable[[Any, Theme], Figure]

CHARTS: Mapping[str, Chart] = {
    "roofline": roofline,
    "decomposition": decomposition,
    "decompositions": decompositions,
    "distribution": distribution,
    "distributions": distributions,
    "heatmap": heatmap,
    "trend": trend,
    "waterfall": waterfall,
    "telemetry": telemetry_chart,
}


def figure(name: str, chart: Any, theme: Theme = LIGHT) -> Figure:
    """The figure `name` (a key of CHARTS) of `chart`, the input that its function takes."""
    return CHARTS[name](chart, theme)


def page_figure(name: str, chart: Any) -> Figure:
    """The light figure with `dark`: a list of [path, value] to put in its place under the dark theme.

    It is drawn once, with names in place of colours; then each text that holds names is written in both themes.
    """
    drawn = figure(name, chart, NAMES)
    layout = {key: value for key, value in drawn["layout"].items() if key != "template"}
    changes: list[list[Any]] = []
    light: Figure = _in_light({**drawn, "layout": layout}, [], changes)
    shared, shared_changes = _template_in_light()
    light["layout"]["template"] = shared
    return {**light, "dark": [*changes, *shared_changes]}


@cache
def _template_in_light() -> tuple[dict[str, Any], list[list[Any]]]:
    """The template that every figure has in common, and what differs in the dark one: the same for all, so walked once."""
    changes: list[list[Any]] = []
    return _in_light(template(NAMES), ["layout", "template"], changes), changes


def _in_light(value: Any, path: list[str | int], changes: list[list[Any]]) -> Any:
    """The same tree in the light theme; what the dark one has otherwise is added to `changes`."""
    if isinstance(value, dict):
        return {key: _in_light(item, [*path, key], changes) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_light(item, [*path, index], changes) for index, item in enumerate(value)]
    if not isinstance(value, str) or MARK not in value:
        return value
    light, dark = coloured(value, LIGHT), coloured(value, DARK)
    if light != dark:
        changes.append([path, dark])
    return light
