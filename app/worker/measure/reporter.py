"""What a measuring process says while it works: one JSON object a line, flushed, for whoever started it."""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TextIO

from app.formats.phaseline_document import FORMAT, plain

Level = Literal["info", "warning", "error"]


class Reporter:
    """Writes events to `stream`. Steps done and their times give the time that is left."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._started = clock()
        self.total = 0
        self.done = 0

    def begin(self, total: int) -> None:
        """Say how many steps there are; the time that is left counts from here."""
        self.total, self.done, self._started = total, 0, self._clock()

    def step(self, current: str) -> None:
        """Say what is measured now."""
        spent = self._clock() - self._started
        left = spent / self.done * (self.total - self.done) if self.done else None
        self._write({"event": "progress", "done": self.done, "total": self.total, "current": current, "eta_s": left})

    def finished(self, point: Mapping[str, Any] | None = None) -> None:
        """One step is done; `point` holds its flat figures and words for a live table and chart."""
        self.done += 1
        if point is not None:
            self._write({"event": "point", "point": point})

    def log(self, text: str, level: Level = "info") -> None:
        """A line for the job's log."""
        self._write({"event": "log", "level": level, "text": text})

    def result(self, path: Path, format_: str = FORMAT) -> None:
        """The document that `path` (in the job's folder) now holds."""
        self._write({"event": "result", "file": path.name, "format": format_})

    def _write(self, event: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(plain(event), ensure_ascii=False, allow_nan=False) + "\n")
        self._stream.flush()
