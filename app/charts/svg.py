"""Bars that add up, as rectangles and words for templates/parts/bars.html: drawn by the server, sharp in print, there before any script.

Positions along the bar are percent of its width, heights are pixels; so text is never scaled and no style attribute is needed. A word
stands in a block only where it fits: `roomy` and `wordy` are the classes that hide it in narrower containers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from app.domain.decomposition import Block, Decomposition, Half
from app.domain.observed import RequestTimes, predicted_times
from app.domain.prediction import Prediction
from app.domain.quantity import count, in_unit, percent, seconds

Anchor = Literal["start", "middle", "end"]

_SHORT = {"prefill": "p", "decode": "d", "rest": "rest"}
# Pixels: of a character at 12 px, of a block's padding, and of the narrowest containers in which each class of word is shown.
_CHARACTER, _PADDING = 6.0, 12.0
_ALWAYS, _ROOMY, _WORDY = 330.0, 433.0, 737.0
# Percent: a dashed outline is drawn on the edge, so a block is inset by half of the gap between two.
_INSET, _GAP = 0.15, 0.3


@dataclass(frozen=True)
class Rect:
    """A block: `x` and `width` in percent, `y` and `height` in pixels. A hatched one is filled with the page's pattern."""

    css: str
    x: float
    width: float
    y: float
    height: float
    rx: float = 1
    hatched: bool = False


@dataclass(frozen=True)
class Word:
    """A text at `x` percent and `y` pixels (its baseline)."""

    css: str
    x: float
    y: float
    text: str
    anchor: Anchor = "start"


@dataclass(frozen=True)
class Line:
    """A hairline down from a block to the next row, at `x` percent."""

    x: float
    y1: float
    y2: float


@dataclass(frozen=True)
class Bars:
    """One drawing of full width and `height` pixels. An empty `label` says that the words beside it tell the same."""

    height: float
    label: str
    rects: tuple[Rect, ...]
    words: tuple[Word, ...] = ()
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Step:
    """One step of a waterfall: what changed, by how many seconds, in which phase, and how sure that is."""

    title: str
    note: str
    delta_s: float
    hue: str
    kind: Literal["measured", "predicted", "unexplained"] = "measured"


@dataclass(frozen=True)
class WaterfallRow:
    """One row: the step (None for the totals at both ends) and its drawing."""

    step: Step | None
    bars: Bars
    total_s: float


def times_of(source: RequestTimes | Prediction | Decomposition | Sequence[Block]) -> RequestTimes:
    """The two halves of a request, from whatever a page has at hand; blocks alone are taken as a prediction unless one was measured."""
    if isinstance(source, RequestTimes):
        return source
    if isinstance(source, Prediction):
        return predicted_times(source)
    if isinstance(source, Decomposition):
        return RequestTimes(source.prefill.total_s, source.decode.total_s, source.decode.times, predicted=not source.measured)
    first = sum(block.seconds for block in source if block.phase == "prefill")
    steps = [block for block in source if block.phase == "decode"]
    times = steps[0].times if steps else 0.0
    predicted = all(block.kind != "unexplained" for block in source)
    return RequestTimes(first, sum(block.each_s for block in steps), times, predicted)


def phase_line(times: RequestTimes, longest_s: float | None = None, height: float = 4) -> Bars:
    """One request to scale, prefill then decode. `longest_s` is the request that fills the width, where several share one scale."""
    first, decode, total = times.first_token_s, times.decode_s, times.total_s
    if first is None or decode is None or not total:
        return Bars(height, "the split of the request is not known", ())
    full = 100 / (longest_s or total)
    rects = _pair(first * full, decode * full, 0, height, times.predicted)
    return Bars(height, f"prefill {percent(first / total)}, decode {percent(decode / total)} of the request", rects)


def split_bar(times: RequestTimes) -> Bars:
    """The whole request at 36 px with both shares and the number of tokens in words, the total at its end."""
    first, decode, total = times.first_token_s, times.decode_s, times.total_s
    if first is None or decode is None or times.steps is None or not total:
        return Bars(36, "the split of the request is not known", ())
    share = min(100 * first / total, 100.0)
    kind = "predicted" if times.predicted else "measured"
    rects = _pair(share, 100 - share, 1, 36, times.predicted)
    prefill, rest = f"prefill {percent(first / total)}", f"decode {percent(decode / total)}"
    tokens = f"{rest}, {count(times.steps)} tokens one after another"
    words = [
        _placed(prefill, "p", times.predicted, 0.0, share, below=0.0, anchor="start"),
        _placed(tokens, "d", times.predicted, share, 100 - share, below=88.0, anchor="end", shorter=rest),
        Word("", 100, 56, seconds(total), "end"),
    ]
    return Bars(62, f"{kind}: {prefill}, {rest} of {seconds(total)}", rects, tuple(words))


def half_bars(half: Half, longest_s: float | None = None) -> Bars:
    """One half of a request, once: the measured bar above, the blocks that explain it below. `longest_s` fills the width."""
    scale = longest_s or half_length(half)
    if scale <= 0:
        return Bars(58, "nothing to draw", ())
    full = 100 / scale
    rects: list[Rect] = []
    words: list[Word] = []
    top = 2.0
    if half.observed is not None:
        rects.append(Rect(f"f-{_SHORT[half.phase]}", 0, max(half.total_s * full - _INSET, 0), 0, 24, 2))
        words += _inside(f"measured {seconds(half.total_s)}", f"on-{_SHORT[half.phase]}", 0, half.total_s * full, 17)
        top = 33.0
    at = 0.0
    unit = next((unit for limit, unit in ((1.0, "s"), (1e-3, "ms")) if scale >= limit), "µs")
    for block in half.blocks:
        rects.append(_block_rect(block, at * full, top, full))
        words += _block_words(block, at * full, top + 15, full, unit)
        at += block.each_s
    said = ", ".join(f"{block.title.lower()} {seconds(abs(block.each_s))}" for block in half.blocks)
    measured = f"measured {seconds(half.total_s)}; " if half.observed is not None else ""
    return Bars(top + 25, f"{measured}{said}", tuple(rects), tuple(words))


def half_length(half: Half) -> float:
    """Seconds that the longer of a half's two bars reaches: what was measured, or what was predicted where it overshoots."""
    predicted = sum(block.each_s for block in half.blocks if block.kind != "unexplained")
    return max(half.total_s, predicted)


def whole_bar(found: Decomposition, height: float = 12) -> Bars:
    """The whole request in two colours, as measured or predicted."""
    return phase_line(times_of(found), height=height)


def scale_pair(before: RequestTimes, after: RequestTimes, longest_s: float | None = None) -> Bars:
    """The request before a change as a thin ghost, after it as a predicted bar, on one scale: the longer, or `longest_s`, fills it."""
    old, new = before.total_s, after.total_s
    if old is None or new is None or max(old, new) <= 0:
        return Bars(34, "the split of the request is not known", ())
    full = (100 - _GAP) / max(old, new, longest_s or 0)
    ghosts = _two(before, full, 2, 6, ("g-p", "g-d"))
    bars = _two(after, full, 14, 18, ("e-p", "e-d"))
    return Bars(34, f"before {seconds(old)}, after {seconds(new)}, to one scale", ghosts + bars)


def share_bar(fraction: float | None, hue: str, height: float = 10) -> Bars:
    """A share of a limit: the track is the limit. Nothing is drawn on it when the share is not known."""
    track = Rect("f-track", 0, 100, 0, height, 0)
    if fraction is None:
        return Bars(height, "", (track,))
    return Bars(height, "", (track, Rect(f"f-{_SHORT[hue]}", 0, min(max(fraction, 0), 1) * 100, 0, height, 0)))


def waterfall(base: RequestTimes, steps: Sequence[Step], other: RequestTimes) -> tuple[WaterfallRow, ...]:
    """From one measured request to another by steps that add up; empty where either total is not known.

    Steps of predicted parts may lead below nothing on their way; then the zero line moves to the right.
    """
    start, end = base.total_s, other.total_s
    if start is None or end is None:
        return ()
    levels = [start]
    for step in steps:
        levels.append(levels[-1] + step.delta_s)
    lowest = min(0.0, *levels)
    full = 100 / (max(*levels, end, 1e-12) - lowest)
    rows = [WaterfallRow(None, _total_row(base, -lowest, start, full, first=True), start)]
    for step, (level, reached) in zip(steps, pairwise(levels), strict=True):
        rows.append(WaterfallRow(step, _step_row(step, (level - lowest) * full, (reached - lowest) * full), reached))
    return (*rows, WaterfallRow(None, _total_row(other, -lowest, end, full, first=False), end))


def _total_row(times: RequestTimes, zero_s: float, total_s: float, full: float, *, first: bool) -> Bars:
    reach = (zero_s + total_s) * full
    line = Line(reach, 32, 44) if first else Line(reach, 0, 10)
    rects = _pair((times.first_token_s or 0) * full, (times.decode_s or 0) * full, 10, 22, times.predicted)
    return Bars(44, "", tuple(replace(rect, x=rect.x + zero_s * full) for rect in rects), (), (line,))


def _step_row(step: Step, level: float, reached: float) -> Bars:
    css = {"measured": f"f-{_SHORT[step.hue]}", "predicted": f"e-{_SHORT[step.hue]}", "unexplained": "hatched"}[step.kind]
    rect = Rect(css, min(level, reached), max(abs(reached - level), _GAP), 10, 22, hatched=step.kind == "unexplained")
    return Bars(44, "", (rect,), (), (Line(level, 0, 10), Line(reached, 32, 44)))


def _pair(first: float, decode: float, y: float, height: float, predicted: bool) -> tuple[Rect, ...]:
    """Both halves side by side, in percent."""
    if predicted:
        return (
            Rect("e-p", _INSET, max(first - _GAP, 0), y + 0.75, height - 1.5, 2),
            Rect("e-d", first + _INSET, max(decode - _GAP, 0), y + 0.75, height - 1.5, 2),
        )
    rx = 2 if height > 6 else 0
    return (Rect("f-p", 0, first, y, height, rx), Rect("f-d", first, decode, y, height, rx))


def _two(times: RequestTimes, full: float, y: float, height: float, css: tuple[str, str]) -> tuple[Rect, Rect]:
    first, decode = (times.first_token_s or 0) * full, (times.decode_s or 0) * full
    return (
        Rect(css[0], _INSET, max(first - _GAP, 0), y, height),
        Rect(css[1], first + _INSET, max(decode - _GAP, 0), y, height),
    )


def _block_rect(block: Block, at: float, y: float, full: float) -> Rect:
    """A block of the lower bar; an overshoot is hatched over the blocks between what was measured and what was predicted."""
    width = block.each_s * full
    if block.kind == "unexplained":
        start, length = (at, width) if width >= 0 else (at + width, -width)
        return Rect("hatched", min(start + _INSET, 100.0), max(length - _GAP, 0), y, 22, hatched=True)
    css = f"f-{_SHORT[block.hue]}" if block.kind == "measured" else f"e-{_SHORT[block.hue]}"
    return Rect(css, min(at + _INSET, 100.0), max(width - _GAP, 0), y, 22)


def _block_words(block: Block, at: float, baseline: float, full: float, unit: str) -> list[Word]:
    """Name and number where they fit, else the number in the unit of the half, else nothing: the table beside has all."""
    width = block.each_s * full
    number = in_unit(block.each_s, unit)
    if block.kind == "unexplained":
        if width >= 0:
            return _centred(number, "t2 halo", at, width, baseline)
        return _inside(f"over-predicted by {seconds(-block.each_s)}", "t2", at + width, -width, 17)
    css = f"on-{_SHORT[block.hue]}" if block.kind == "measured" and block.hue != "rest" else "t2"
    full_words = _inside(f"{block.title.lower()} {seconds(block.each_s)}", css, at, width, baseline)
    return full_words or _centred(number, css, at, width, baseline)


def _fit(text: str, width: float) -> str | None:
    """The class under which `text` fits into `width` percent, None where it never does."""
    need = len(text) * _CHARACTER + _PADDING
    for css, container in (("", _ALWAYS), ("roomy", _ROOMY), ("roomy wordy", _WORDY)):
        if need <= width / 100 * container:
            return css
    return None


def _inside(text: str, css: str, at: float, width: float, baseline: float) -> list[Word]:
    fit = _fit(text, width)
    return [] if fit is None else [Word(f"{css} {fit}".strip(), at + 1.05, baseline, text)]


def _centred(text: str, css: str, at: float, width: float, baseline: float) -> list[Word]:
    fit = _fit(text, width)
    return [] if fit is None else [Word(f"{css} {fit}".strip(), at + width / 2, baseline, text, "middle")]


def _placed(text: str, hue: str, predicted: bool, at: float, width: float, *, below: float, anchor: Anchor, shorter: str = "") -> Word:
    """A word inside its half where it always fits, else in the line beneath."""
    css = hue if predicted else f"on-{hue}"
    for candidate in filter(None, (text, shorter)):
        if _fit(candidate, width) == "":
            return Word(css, at + 1.35, 23, candidate)
    return Word(hue, below, 56, shorter or text, anchor)
