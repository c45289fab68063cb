"""A pytest plugin (`-p tests.no_skips`): lists every skipped test at the end, and in CI allows no other reason than ../shared.

With PHASELINE_TESTS_NO_SKIP=1 a run fails when a test was skipped, unless its reason names ../shared and that folder is absent.
A skip hides a missing install step; this shows it.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

SWITCH = "PHASELINE_TESTS_NO_SKIP"
SHARED = Path(__file__).resolve().parents[2] / "shared"


@dataclass(frozen=True)
class Skip:
    """A test, or a whole file, that did not run, and why."""

    test: str
    reason: str


def refused(skips: Iterable[Skip], shared_is_there: bool) -> list[Skip]:
    """The skips that have no excuse."""
    return [skip for skip in skips if shared_is_there or "../shared" not in skip.reason]


class SkipKeeper:
    """Collects skips in the process that reports (with xdist: the controller) and judges them at the end."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.skips: list[Skip] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skips.append(Skip(report.nodeid, _reason(report.longrepr)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.skips.append(Skip(report.nodeid, _reason(report.longrepr)))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.strict and session.exitstatus == pytest.ExitCode.OK and refused(self.skips, SHARED.is_dir()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.skips:
            return
        without_excuse = refused(self.skips, SHARED.is_dir())
        terminalreporter.section(f"{len(self.skips)} skipped")
        for skip in self.skips:
            mark = "NOT ALLOWED " if self.strict and skip in without_excuse else ""
            terminalreporter.line(f"{mark}{skip.test}: {skip.reason}")


def _reason(longrepr: object) -> str:
    text = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
    return text.removeprefix("Skipped: ")


def pytest_configure(config: pytest.Config) -> None:
    # A worker of xdist reports to the controller, which judges.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipKeeper(os.environ.get(SWITCH) == "1"), "phaseline-skips")
