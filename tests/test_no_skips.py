"""The rule that nothing is skipped in CI but tests on ../shared where it is absent."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.no_skips import SWITCH, Skip, refused

ROOT = Path(__file__).resolve().parents[1]


def test_only_an_absent_shared_folder_excuses_a_skip() -> None:
    excused = Skip("tests/test_a.py::test_a", "../shared is absent")
    other = Skip("tests/test_b.py::test_b", "chromium is missing")
    assert refused([excused, other], shared_is_there=False) == [other]
    assert refused([excused, other], shared_is_there=True) == [excused, other]
    assert refused([], shared_is_there=False) == []


@pytest.mark.parametrize(("strict", "workers", "status"), [("1", "0", 1), ("1", "1", 1), ("", "0", 0)])
def test_a_skip_fails_the_strict_run(tmp_path: Path, strict: str, workers: str, status: int) -> None:
    (tmp_path / "test_it.py").write_text("import pytest\n\ndef test_runs(): pass\n\ndef test_skips(): pytest.skip('no browser here')\n")
    # Without the other plugins a run starts in a fraction of a second.
    environment = {**os.environ, SWITCH: strict, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    argv = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    argv += ["-p", "xdist", "-p", "tests.no_skips", "-n", workers, "test_it.py"]
    ended = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == status, ended.stdout + ended.stderr
    assert "1 passed, 1 skipped" in ended.stdout
    assert ("NOT ALLOWED test_it.py::test_skips: no browser here" in ended.stdout) is bool(strict)
