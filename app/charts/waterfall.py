"""From one run's mean request to another's, part by part: steps that add up, each as sure as what it rests on."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from app.charts.bar_styles import bar, bar_style
from app.charts.layout import Figure, axis_titles, figure, linear_axis
from app.charts.svg import Step
from app.charts.text import label, lines
from app.charts.theme import CLEAR, Theme
from app.domain.attribution import ROUNDING_S, Attribution, AttributionPart
from app.domain.quantity import change_seconds, seconds
from app.domain.request_parts import BY_NAME

_ROW_HEIGHT = 34
_WORDS = {
    "measured": "measured on both sides",
    "predicted": "by the model, for each run’s own operating point",
    "unexplained": "measured less the other parts",
}


def waterfall_steps(found: Attribution) -> tuple[Step, ...]:
    """One step for each part that moved, in the order of time; a part of nothing is left out."""
    return tuple(
        Step(part.title, _note(part), part.delta_s, BY_NAME[part.phase, part.part].hue, part.kind)
        for part in found.parts
        if part.delta_s is not None and part.kind is not None and abs(part.delta_s) >= ROUNDING_S
    )


def _note(part: AttributionPart) -> str:
    """Of what a step is made, where the model says it."""
    if part.kind == "unexplained":
        return ""
    made = (("workload", part.workload_s), ("settings", part.efficiency_s), ("not priced", part.unpriced_s))
    said = [(name, value) for name, value in made if value is not None and abs(value) >= ROUNDING_S]
    return said[0][0] if len(said) == 1 else ", ".join(f"{name} {change_seconds(value)}" for name, value in said)


def waterfall(found: Attribution, theme: Theme) -> Figure:
    """Both totals with their halves, and between them the steps."""
    steps, rest = waterfall_steps(found), found.shown_remainder_s
    if rest:
        steps = (*steps, Step("In neither half", "", rest, "rest", "unexplained"))
    levels = [found.base_total_s]
    for step in steps:
        levels.append(levels[-1] + step.delta_s)
    reach = (min(0.0, *levels), max(*levels, found.other_total_s, 1e-12))
    scale, unit = (1.0, "s") if max(reach[1], -reach[0]) >= 1 else (1e-3, "ms")
    names = ["base", *(step.title for step in steps), "other"]
    rows = [
        *_total("base", found, 0, theme, scale),
        *(_step(step, level, scale, theme) for step, (level, _) in zip(steps, pairwise(levels), strict=True)),
        *_total("other", found, 1, theme, scale),
    ]
    layout = {
        "barmode": "overlay",
        "bargap": 0.3,
        "height": 96 + _ROW_HEIGHT * len(names),
        "xaxis": {**linear_axis(1.02 * reach[0] / scale, 1.02 * reach[1] / scale), "showgrid": False},
        "yaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": names[::-1],
            "showgrid": False,
            "ticklen": 6,
            "tickcolor": CLEAR,
        },
    }
    return figure(rows, theme, layout, axis_titles(f"one request, {unit}", "")[1:])


def _total(name: str, found: Attribution, side: int, theme: Theme, scale: float) -> Iterator[dict[str, Any]]:
    at = 0.0
    for half in found.halves:
        length = (half.base_s, half.other_s)[side]
        hover = lines(f"{name}, {half.phase}", seconds(length), "measured")
        yield bar(half.phase, name, at, length, scale, hover, bar_style("measured", half.phase, theme))
        at += length


def _step(step: Step, level: float, scale: float, theme: Theme) -> dict[str, Any]:
    hover = lines(step.title, change_seconds(step.delta_s), label(step.note), _WORDS[step.kind])
    return bar(step.title, step.title, level, step.delta_s, scale, hover, bar_style(step.kind, step.hue, theme))
