"""What `ollama run --verbose` prints after an answer, under the names and in the nanoseconds of the JSON answer.

Times are written as Go writes durations: `4.65s`, `130.1ms`, `1m2.5s`. A line is there only where its value is above 0. The rates are
those of the times and not read. Each block begins with its total.
"""

import re
from decimal import Decimal

from app.formats.document import Entry
from app.formats.record import LARGEST_INTEGER

_LINE = re.compile(r"[ \t]*(total duration|load duration|prompt eval count|prompt eval duration|eval count|eval duration):[ \t]+(\S{1,60})")
_PART = re.compile(r"(\d{1,19}(?:\.\d{1,19})?)(h|ms|m|s|us|µs|μs|ns)")
_NS = {"h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "µs": 1000, "μs": 1000, "ns": 1}
_LONGEST_LINE = 200
NO_LINES = "no lines “total duration:” and “eval duration:”"
BENCHSTAT = "benchstat text of ollama's bench, whose samples are not kept: send the JSON of the answers"


def text_decline(text: str) -> str | None:
    """Why a text is none of ollama's that is read, None when it is."""
    if "BenchmarkModel/name=" in text:
        return BENCHSTAT
    return None if any("eval_duration" in entry.values for entry in verbose_entries(text)) else NO_LINES


def verbose_entries(text: str) -> list[Entry]:
    """The blocks of a text, each as the object that the API would have answered with."""
    blocks: list[Entry] = []
    values: dict[str, object] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.match(line[:_LONGEST_LINE])
        if match is None:
            continue
        name, word = match.group(1).replace(" ", "_"), match.group(2)
        if name == "total_duration":
            values = {}
            blocks.append(Entry(f"block at line {number}: ", values))
        if values is not None:
            values.setdefault(name, _whole(word) if name.endswith("_count") else go_duration_ns(word))
    return blocks


def go_duration_ns(word: str) -> int | None:
    """A duration as Go prints it, in whole nanoseconds: `1m2.5s` -> 62500000000. None for what is none."""
    total, position = Decimal(0), 0
    while (match := _PART.match(word, position)) is not None:
        total += Decimal(match.group(1)) * _NS[match.group(2)]
        position = match.end()
    return int(total) if position and position == len(word) and total <= LARGEST_INTEGER else None


def _whole(word: str) -> int | None:
    return int(word) if word.isdecimal() and word.isascii() and len(word) <= 18 else None
