"""Scrapes of a Prometheus endpoint: the text exposition format, one scrape or several in a file, and when each was taken if it says so.

A line is `name{label="value", …} value [timestamp in ms]`; only the series that are asked for are read, whatever else a server exposes.
(The parser of prometheus_client reads character by character, some ten times slower, tells neither line nor place of what it cannot
read, and brings an HTTP server along on import.) A scrape rarely says when it was taken: a saved HTTP response (`curl -i`) has a Date
header, and a federated or pushed series a timestamp of its own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from app.domain.errors import ImportRefused
from app.domain.text import clean_text
from app.formats.record import LARGEST

Labels = tuple[tuple[str, str], ...]
MOST_SERIES = 200_000
_DESCRIBES = ("HELP", "TYPE")
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"([^"\\]*(?:\\.[^"\\]*)*)"\s*(?:,\s*|(?=\}))')
_ESCAPE = re.compile(r"\\(.)")
_EXEMPLAR = " # "


@dataclass
class Scrape:
    """The series of one scrape: {name: {sorted labels: value}}.

    `time_s` is Unix time, None where the file does not say; an HTTP date has whole seconds.
    """

    series: dict[str, dict[Labels, float]] = field(default_factory=dict)
    time_s: float | None = None
    whole_seconds: bool = False

    def get(self, name: str) -> Mapping[Labels, float]:
        """The series of a name, none when there is no such name."""
        return self.series.get(name, {})


def read_scrapes(text: str, wanted: tuple[str, ...]) -> list[Scrape]:
    """The scrapes of a file in its order, with the series whose name begins with one of `wanted`.

    A scrape ends where a family is described again, a series comes again or the head of another HTTP response begins. Raises
    ImportRefused for a line that is no sample, and for more series than a server can have.
    """
    reading = _Reading()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip("\ufeff \t")
        if stripped.startswith("HTTP/"):
            reading.begin()
            reading.in_head = True
        elif reading.in_head:
            reading.head(stripped)
        elif stripped.startswith("#"):
            reading.described(stripped)
        elif stripped.startswith(wanted):
            reading.take(_sample(stripped, number))
    return [scrape for scrape in reading.scrapes if scrape.series]


class _Reading:
    """The scrapes so far, and what has been seen of the last one."""

    def __init__(self) -> None:
        self.scrapes: list[Scrape] = [Scrape()]
        self.in_head = False
        self._described: set[tuple[str, ...]] = set()
        self._size = 0

    def begin(self) -> None:
        self.scrapes.append(Scrape())
        self._described = set()

    def head(self, line: str) -> None:
        """A header of a saved response, or the empty line behind the last."""
        self.in_head = bool(line)
        name, _, value = line.partition(":")
        if name.lower() == "date":
            self.scrapes[-1].time_s = _moment(value.strip())
            self.scrapes[-1].whole_seconds = True

    def described(self, line: str) -> None:
        words = tuple(line[1:].split(maxsplit=2)[:2])
        if len(words) < 2 or words[0] not in _DESCRIBES:
            return
        if words in self._described:
            self.begin()
        self._described.add(words)

    def take(self, sample: "_Sample") -> None:
        if sample.labels in self.scrapes[-1].get(sample.name):
            self.begin()
        self._size += 1
        if self._size > MOST_SERIES:
            raise ImportRefused(f"The file holds more than {MOST_SERIES:,} series: send the two scrapes around the benchmark alone.")
        scrape = self.scrapes[-1]
        scrape.series.setdefault(sample.name, {})[sample.labels] = sample.value
        if sample.time_s is not None and 0 < sample.time_s < LARGEST:
            # More exact than the date of the answer around it.
            own = None if scrape.whole_seconds else scrape.time_s
            scrape.time_s, scrape.whole_seconds = max(own or 0.0, sample.time_s), False


@dataclass(frozen=True)
class _Sample:
    """One line: a series, its value and its own timestamp (Unix time, None where it has none)."""

    name: str
    labels: Labels
    value: float
    time_s: float | None


def _sample(line: str, number: int) -> _Sample:
    """Raises ImportRefused when the line is no sample."""
    sample = _read(line)
    if sample is None:
        what = f"Line {number} is no Prometheus sample: “{clean_text(line, 60)}”."
        raise ImportRefused(f"{what} The scrape may be cut off: send the whole of it.")
    return sample


def _read(line: str) -> _Sample | None:
    name = _NAME.match(line)
    if name is None:
        return None
    labels: list[tuple[str, str]] = []
    position = name.end()
    if line[position:].lstrip()[:1] == "{":
        position = line.index("{", position) + 1
        while (label := _LABEL.match(line, position)) is not None:
            labels.append((label[1], _ESCAPE.sub(_unescaped, label[2]) if "\\" in label[2] else label[2]))
            position = label.end()
        position = len(line) - len(line[position:].lstrip())
        if line[position : position + 1] != "}":
            return None
        position += 1
    words = line[position:].split(_EXEMPLAR, 1)[0].split()
    value, moment = (_number(words[0]) if words else None), (_number(words[1]) if len(words) > 1 else None)
    if value is None or len(words) > 2 or (len(words) == 2 and moment is None) or len(dict(labels)) != len(labels):
        return None
    return _Sample(name[0], tuple(sorted(labels)), value, None if moment is None else moment / 1000)


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _number(word: str) -> float | None:
    """A value, which may be NaN or infinite; None for what is none."""
    try:
        return None if "_" in word else float(word)
    except ValueError:
        return None


def _moment(text: str) -> float | None:
    """Unix time of an HTTP date, None where it is none."""
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
