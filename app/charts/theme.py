"""The two looks of a figure. plotly reads no CSS variables, so the colours of tokens.css stand here again; a test keeps them equal."""

from dataclasses import dataclass, fields
from typing import Any

SANS = (
    '"Inter", -apple-system, BlinkMacSystemFont, "Segoe UI Variable Text", "Segoe UI", "Roboto", "Noto Sans", "Liberation Sans", '
    "Arial, sans-serif"
)
CLEAR = "rgba(0,0,0,0)"
MEDIUM, STRONG = 500, 600


@dataclass(frozen=True)
class Theme:
    """Colours by the names of tokens.css, light or dark."""

    name: str
    surface: str
    raised: str
    ink: str
    ink_2: str
    ink_3: str
    line: str
    line_2: str
    edge: str
    track: str
    prefill: str
    prefill_ink: str
    prefill_wash: str
    decode: str
    decode_ink: str
    decode_wash: str
    on_prefill: str
    on_decode: str
    rest: str
    sunken: str
    groups: tuple[str, str, str, str, str]

    def mark(self, hue: str) -> str:
        """The colour of a mark: "prefill", "decode" or "rest"."""
        return {"prefill": self.prefill, "decode": self.decode}.get(hue, self.rest)

    def word(self, hue: str) -> str:
        """The colour of a word about it."""
        return {"prefill": self.prefill_ink, "decode": self.decode_ink}.get(hue, self.ink_2)

    def wash(self, hue: str) -> str:
        """The colour of its ground."""
        return {"prefill": self.prefill_wash, "decode": self.decode_wash}.get(hue, self.sunken)

    def on(self, hue: str) -> str:
        """The colour of words on a filled mark."""
        return {"prefill": self.on_prefill, "decode": self.on_decode}.get(hue, self.surface)


LIGHT = Theme(
    name="light",
    surface="#ffffff",
    raised="#ffffff",
    ink="#16181b",
    ink_2="#45484d",
    ink_3="#63666b",
    line="#e3e3dd",
    line_2="#cfcfc8",
    edge="#85867f",
    track="#e9e9e4",
    prefill="#c8690a",
    prefill_ink="#944a00",
    prefill_wash="#fbefe0",
    decode="#2c6bcb",
    decode_ink="#1c53a8",
    decode_wash="#e8f0fb",
    on_prefill="#16181b",
    on_decode="#ffffff",
    rest="#85867f",
    sunken="#f2f2ee",
    groups=("#16181b", "#6b4fbb", "#6b7216", "#8a4b3a", "#85867f"),
)
DARK = Theme(
    name="dark",
    surface="#15181c",
    raised="#1c2026",
    ink="#ecedef",
    ink_2="#b9bdc3",
    ink_3="#9298a1",
    line="#282d34",
    line_2="#3a4049",
    edge="#737a84",
    track="#282d34",
    prefill="#ee9238",
    prefill_ink="#f6ae68",
    prefill_wash="#2c2013",
    decode="#62a0f5",
    decode_ink="#8fbcfa",
    decode_wash="#15233a",
    on_prefill="#0e1013",
    on_decode="#0e1013",
    rest="#737a84",
    sunken="#101316",
    groups=("#ecedef", "#b39df5", "#b9c054", "#d79a87", "#737a84"),
)

# A character that no text in a figure holds: it marks the names that stand for colours until the theme is known.
MARK = "\ue000"
_COLOURS = tuple(item.name for item in fields(Theme) if item.name not in ("name", "groups"))
NAMES = Theme(
    name="names",
    **{colour: f"{MARK}{colour}{MARK}" for colour in _COLOURS},
    groups=(f"{MARK}group0{MARK}", f"{MARK}group1{MARK}", f"{MARK}group2{MARK}", f"{MARK}group3{MARK}", f"{MARK}group4{MARK}"),
)


def coloured(text: str, theme: Theme) -> str:
    """`text` with every name of NAMES in it as the colour of `theme`."""
    parts = text.split(MARK)
    parts[1::2] = [theme.groups[int(part[5:])] if part.startswith("group") else getattr(theme, part) for part in parts[1::2]]
    return "".join(parts)


GROUP_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down")


def template(theme: Theme) -> dict[str, Any]:
    """The plotly template `phaseline-light` or `phaseline-dark`: what every figure has in common."""
    axis = {
        "automargin": True,
        "linecolor": theme.edge,
        "tickcolor": theme.edge,
        "tickfont": {"color": theme.ink_3, "size": 12},
        "zeroline": False,
        "spikecolor": theme.ink_3,
        "spikethickness": 1,
        "spikedash": "dot",
    }
    return {
        "layout": {
            "paper_bgcolor": CLEAR,
            "plot_bgcolor": CLEAR,
            "font": {"family": SANS, "size": 12, "color": theme.ink_3},
            "colorway": list(theme.groups),
            "margin": {"l": 52, "r": 24, "t": 28, "b": 44},
            "showlegend": False,
            "hovermode": "closest",
            "hoverlabel": {
                "bgcolor": theme.raised,
                "bordercolor": theme.line_2,
                "font": {"family": SANS, "size": 12, "color": theme.ink},
                "align": "left",
            },
            "modebar": {"bgcolor": CLEAR, "color": theme.ink_3, "activecolor": theme.ink},
            "separators": ".,",
            "xaxis": {**axis, "showgrid": False, "showline": True, "linewidth": 1, "ticks": "outside", "ticklen": 4},
            "yaxis": {**axis, "showgrid": True, "gridcolor": theme.line, "gridwidth": 1, "showline": False, "ticks": ""},
            "annotationdefaults": {"showarrow": False, "font": {"family": SANS, "size": 12, "color": theme.ink_2}},
        }
    }
