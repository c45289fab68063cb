"""How sure a bar is, as plotly draws it: filled where measured, a wash with an outline where predicted, hatched where not explained."""

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


def bar_style(certainty: Certainty, hue: str, theme: Theme) -> BarStyle:
    """The style for a hue (prefill, decode, rest)."""
    if certainty == "measured":
        return BarStyle({"color": theme.mark(hue), "line": {"width": 1, "color": theme.surface}}, theme.on(hue), "none")
    if certainty == "predicted":
        return BarStyle({"color": theme.wash(hue), "line": {"width": 1.5, "color": theme.mark(hue)}}, theme.ink_2, "none")
    pattern = {"shape": "/", "fgcolor": theme.ink_3, "bgcolor": CLEAR, "fillmode": "replace", "size": 6, "solidity": 0.25}
    return BarStyle({"color": CLEAR, "pattern": pattern, "line": {"width": 1, "color": theme.ink_3}}, theme.ink_2, halo(theme.surface))
