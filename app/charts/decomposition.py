"""Where the time of one request goes, as a stacked bar: what was measured above, what explains it below, with the rest hatched."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from app.charts.bar_styles import BarStyle, bar, bar_style
from app.charts.layout import Figure, axis_titles, figure, linear_axis
from app.charts.text import label, lines
from app.charts.theme import CLEAR, Theme
from app.domain.decomposition import Block, Decomposition
from app.domain.quantity import count, percent, seconds

_ROW_HEIGHT = 44
_KINDS = {"measured": "measured", "predicted": "predicted", "limit": "predicted, a limit", "unexplained": "not explained"}


@dataclass(frozen=True)
class NamedDecomposition:
    """One request of several, with the name of its run."""

    title: str
    decomposition: Decomposition


def decomposition(found: Decomposition, theme: Theme) -> Figure:
    """The figure of one request: its measured halves (where measured) and the blocks that add up to them."""
    title = "measured and explained" if found.measured else "predicted"
    return _figure((NamedDecomposition(title, found),), theme)


def decompositions(rows: Sequence[NamedDecomposition], theme: Theme) -> Figure:
    """Several requests below each other on one scale."""
    return _figure(rows, theme)


def _figure(rows: Sequence[NamedDecomposition], theme: Theme) -> Figure:
    longest = max((_longest(row.decomposition) for row in rows), default=1.0) or 1.0
    scale, unit = (1.0, "s") if longest >= 1 else (1e-3, "ms")
    data = [trace for row in rows for trace in _traces(row, theme, scale, many=len(rows) > 1)]
    names = [name for row in rows for name in _names(row, many=len(rows) > 1)]
    layout = {
        "barmode": "overlay",
        "bargap": 0.28,
        "height": 96 + _ROW_HEIGHT * len(names),
        "uniformtext": {"minsize": 12, "mode": "hide"},
        "xaxis": {**linear_axis(0, 1.02 * longest / scale), "showgrid": False},
        "yaxis": {
            "type": "category",
            "categoryorder": "array",
            "categoryarray": names[::-1],
            "showgrid": False,
            "ticks": "outside",
            "ticklen": 6,
            "tickcolor": CLEAR,
        },
    }
    return figure(data, theme, layout, axis_titles(f"one request, {unit}", "")[1:])


def _longest(found: Decomposition) -> float:
    """The furthest that a bar reaches: an over-predicted half reaches past what was measured."""
    return max([end for _, _, end in _spans(found)] + [found.total_s])


def _names(row: NamedDecomposition, many: bool) -> list[str]:
    title = label(row.title)
    if not row.decomposition.measured:
        return [title]
    return [f"{title}, measured", f"{title}, explained"] if many else ["measured", "explained"]


def _spans(found: Decomposition) -> Iterator[tuple[Block, float, float]]:
    """Each block with where it begins and ends in seconds; decode begins where the measured first token ends."""
    for half, start in ((found.prefill, 0.0), (found.decode, found.prefill.seconds)):
        at = start
        for block in half.blocks:
            yield block, at, at + block.seconds
            at += block.seconds


def _traces(row: NamedDecomposition, theme: Theme, scale: float, many: bool) -> list[dict[str, Any]]:
    names, found = _names(row, many), row.decomposition
    traces = []
    if found.measured:
        for half, start in ((found.prefill, 0.0), (found.decode, found.prefill.seconds)):
            words = half.observed.words if half.observed else "predicted"
            text = lines(half.phase, f"{seconds(half.seconds)}, {percent(half.seconds / found.total_s)}", label(words))
            style = bar_style("measured" if half.observed else "predicted", half.phase, theme)
            traces.append(_bar(half.phase, names[0], start, half.seconds, scale, text, style, f"{half.phase} {seconds(half.seconds)}"))
    for block, start, _ in _spans(found):
        style = bar_style("predicted" if block.kind == "limit" else block.kind, block.hue, theme)
        # an overshoot lies over the blocks that make it up, which keep their own words
        words = "" if block.over_predicted else f"{block.title} {seconds(block.seconds)}"
        traces.append(_bar(block.title, names[-1], start, block.seconds, scale, _hover(block, found.total_s), style, words))
    return traces


def _hover(block: Block, total_s: float) -> str:
    each = "" if block.times == 1 else f"{seconds(block.each_s)} × {count(block.times)}"
    share = f"{seconds(block.seconds)}, {percent(block.seconds / total_s)}" if total_s else seconds(block.seconds)
    return lines(block.title, share, each, label(block.arithmetic), _KINDS[block.kind])


def _bar(name: str, row: str, start: float, length: float, scale: float, hover: str, style: BarStyle, words: str) -> dict[str, Any]:
    return {
        **bar(name, row, start, length, scale, hover, style),
        "text": [words],
        "textposition": "inside",
        "insidetextanchor": "start",
        "textangle": 0,
        "textfont": {"color": style.word, "size": 12, "shadow": style.halo},
    }
