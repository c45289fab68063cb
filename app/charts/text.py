"""The one gate through which words of a user or a file enter a figure.

plotly reads a small HTML in every text: an `<a href>` in a run's name becomes a live link, a `style` restyles the chart, `%{…}` fills in
other data. `label` leaves the word itself and nothing to interpret; a hover template never holds such a word at all, only `%{text}`.
"""

import html
import re

from app.charts.theme import MARK

_PLACEHOLDER = re.compile(r"%\{")
_LONGEST = 80


def label(words: str) -> str:
    """`words` as plain text for plotly: HTML escaped, no `%{`, one line, cut with an ellipsis at 80 characters."""
    line = " ".join(words.replace(MARK, "").split())
    line = line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"
    while _PLACEHOLDER.search(line):
        line = _PLACEHOLDER.sub("{", line)
    return html.escape(line)


def lines(*texts: str) -> str:
    """Texts that already passed `label` or are ours, one below the other in a hover label; empty ones are left out."""
    return "<br>".join(text for text in texts if text)
