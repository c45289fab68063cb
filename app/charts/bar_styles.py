"""A bar as plotly draws it, and how sure it is: filled where measured, a wash in an outline where predicted, hatched where unexplained."""

from dataclasses import dataclass
from typing import Any, Literal

from app.charts.layout import halo
from app.charts.theme import CLEAR, Theme

Certainty = Literal["measured", "predicted", "unexplained"]


@dataclass(frozen=True)
class BarStyle:
    """The marker of a bar, and the colour and halo of a word on it."""

    marker: dict[str, Any]
    word: str
    halo: str


def bar(name: str, row: str, start: float, length: float, scale: float, hover: str, style: BarStyle) -> dict[str, Any]:
    """A piece of a horizontal bar, from `start` on and `length` long, both in units of `scale`."""
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [row],
        "x": [length / scale],
        "base": [start / scale],
        "marker": style.marker,
        "hovertext": [hover],
        "hovertemplate": "%{hovertext}<extra></extra>",
    }


def bar_style(certainty: Certainty, hue: str, theme: Theme) -> BarStyle:
    """The style for a hue (prefill, decode, rest)."""
    if certainty == "measured":
        return BarStyle({"color": theme.mark(hue), "line": {"width": 1, "color": theme.surface}}, theme.on(hue), "none")
    if certainty == "predicted":
        return BarStyle({"color": theme.wash(hue), "line": {"width": 1.5, "color": theme.mark(hue)}}, theme.ink_2, "none")
    pattern = {"shape": "/", "fgcolor": theme.ink_3, "bgcolor": CLEAR, "fillmode": "replace", "size": 6, "solidity": 0.25}
    return BarStyle({"color": CLEAR, "pattern": pattern, "line": {"width": 1, "color": theme.ink_3}}, theme.ink_2, halo(theme.surface))
