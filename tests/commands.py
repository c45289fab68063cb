"""Running a command of the console script inside the test process: as the script does, with its output and exit code."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from app.cli import main
from app.settings import load_settings


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


def runner(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """A function that runs `phaseline` with the given words; settings are read anew each time."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def run(*words: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["phaseline", *map(str, words)])
        load_settings.cache_clear()
        capsys.readouterr()
        try:
            with pytest.raises(SystemExit) as ended:
                main()
        finally:
            load_settings.cache_clear()
        shown = capsys.readouterr()
        return Ended(int(ended.value.code or 0), shown.out, shown.err)

    return run
