"""Pieces that every figure is built from: axes by the house rules, titles beside them, labels at the point they name."""

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from app.charts.theme import STRONG, Theme, template
from app.domain.quantity import number

Figure = dict[str, Any]

HEIGHT = 330
# An annotation of this name is left out where the figure is narrow; app.js looks for it.
ROOMY = "roomy"


def figure(data: Sequence[dict[str, Any]], theme: Theme, layout: dict[str, Any], annotations: Sequence[dict[str, Any]] = ()) -> Figure:
    """A plotly figure as a plain dict: traces, layout, template of `theme`."""
    return {
        "data": list(data),
        "layout": {"template": template(theme), "height": HEIGHT, "annotations": list(annotations), **layout},
    }


def log_axis(low: float, high: float) -> dict[str, Any]:
    """A logarithmic axis from `low` to `high` (both above 0) that ticks whole decades as 0.1, 1, 10, 1,000."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    decades = [10.0**power for power in range(first, last + 1)]
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickmode": "array",
        "tickvals": decades,
        "ticktext": [number(decade, 1) for decade in decades],
        "minor": {"ticks": ""},
    }


def linear_axis(low: float, high: float) -> dict[str, Any]:
    """A linear axis; commas between thousands."""
    return {"type": "linear", "range": [low, high], "tickformat": ",~g", "nticks": 7}


def axis_titles(x: str, y: str) -> list[dict[str, Any]]:
    """The y title horizontally above its axis, the x title left-aligned below its own."""
    shared = {"showarrow": False, "xref": "paper", "yref": "paper", "x": 0, "xanchor": "left"}
    return [
        {**shared, "text": y, "y": 1, "yanchor": "bottom", "xshift": -44, "yshift": 8, "name": "y-title"},
        {**shared, "text": x, "y": 0, "yanchor": "top", "yshift": -22, "name": "x-title"},
    ]


def note(text: str, x: float, y: float, color: str, **more: Any) -> dict[str, Any]:
    """A quiet word in the plot, at data coordinates (of a log axis: the exponents)."""
    return {"text": text, "x": x, "y": y, "showarrow": False, "font": {"color": color, "size": 12}, **more}


def named_point(text: str, x: float, y: float, color: str, ground: str, **more: Any) -> dict[str, Any]:
    """A direct label: 600, in the phase's ink, with a halo in the colour of the ground."""
    font = {"color": color, "size": 12, "weight": STRONG, "shadow": halo(ground)}
    return {"text": text, "x": x, "y": y, "showarrow": False, "font": font, **more}


def halo(color: str) -> str:
    """A text shadow in the colour of the ground, so that a word stays readable on a line or a hatch."""
    corners = [f"{x}px {y}px 1px {color}" for x, y in ((2, 0), (-2, 0), (0, 2), (0, -2), (1, 1), (-1, -1), (1, -1), (-1, 1))]
    return ", ".join(corners)


def typed_array(values: npt.NDArray[np.float64]) -> dict[str, str]:
    """Numbers as plotly's typed array, little-endian floats in base64: a sixth of their size as JSON text, and read without parsing."""
    return {"dtype": "f4", "bdata": base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")}
