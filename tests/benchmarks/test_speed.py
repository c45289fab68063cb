"""The speed benchmark runs as a command, on little, and prints the contract's shape. No time is judged here: its own run does that."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.server import ServerFailed, serving
from benchmarks.speed import main

ROOT = Path(__file__).resolve().parents[2]
FIGURES = {
    "predictions_per_s", "simulations_per_s", "heatmap_200x200_s", "import_domain_s", "home_p95_s", "run_page_p95_s",
    "runs_page_10k_p95_s", "compare_100k_p95_s", "compare_page_100k_p95_s", "sweep_10k_p95_s", "ready_s", "rss_bytes",
    "runs_page_queries_1k", "runs_page_queries_10k",
}  # fmt: skip


def test_the_command_prints_the_contracts_figures_and_leaves_nothing_running(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks.speed",
        "--json",
        "--runs",
        "10",
        "--many-runs",
        "30",
        "--requests",
        "2",
        "--starts",
        "1",
        "--compared",
        "50",
    ]
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path),
        "PHASELINE_PORT": "1",
        "PHASELINE_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/no",
    }
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    assert set(shown) == {"figures", "groups", "conditions"}
    assert set(shown["figures"]) == FIGURES
    assert all(value > 0 for value in shown["figures"].values())
    assert shown["figures"]["runs_page_queries_1k"] == shown["figures"]["runs_page_queries_10k"]
    assert all(isinstance(group["by"], dict) and group["n"] >= 1 for group in shown["groups"])
    assert shown["conditions"]["counts"] == {"runs": 10, "many_runs": 30, "requests": 2, "starts": 1, "compared": 50}
    assert list(tmp_path.iterdir()) == []
    assert _processes_in(tmp_path) == []


def _processes_in(folder: Path) -> list[str]:
    """Processes that work in a folder, deleted or not, as only our servers would."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cwd"):
        try:
            where = os.readlink(process)
        except OSError:
            continue
        if where.startswith(str(folder)):
            found.append(where)
    return found


def test_a_server_ends_when_the_benchmark_is_killed(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from pathlib import Path; from benchmarks.server import serving\n"
        "with serving(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, "")
    assert "serves http://127.0.0.1:" in (tmp_path / "server.log").read_text()
    deadline = time.monotonic() + 30
    while _processes_in(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _processes_in(tmp_path) == []


def test_a_server_that_cannot_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "phaseline.db").write_bytes(b"no database at all, but long enough to be looked at as if it were one" * 100)
    with pytest.raises(ServerFailed, match="ended with 2: phaseline: The database file is damaged"), serving(tmp_path):
        pytest.fail("it started")


@pytest.mark.parametrize("option", ["--runs=0", "--requests=-1", "--starts=no"])
def test_counts_are_at_least_one(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([option])
    assert stopped.value.code == 2
    assert option.split("=")[0] in capsys.readouterr().err
