"""The fidelity benchmark runs as a command, on little, and prints the contract's shape. No time is judged here: its own run does that."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.clients.outcome import Task
from benchmarks.clients.tools import TOOLS, Stated, stated
from benchmarks.fidelity import CLIENTS, errors, main, stated_errors

ROOT = Path(__file__).resolve().parents[2]


def test_the_command_prints_the_contracts_figures() -> None:
    command = [
        sys.executable,
        "-m",
        "benchmarks.fidelity",
        "--json",
        "--streams",
        "1,2",
        "--rounds",
        "1",
        "--requests",
        "1",
        "--tokens",
        "4",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150)
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    names = {f"{name}_{count}" for name in ("ttft_p50_error_s", "ttft_p99_error_s", "itl_mean_error") for count in (1, 2)}
    assert set(shown["figures"]) == names | {"cpu_us_per_event", "cpu_ratio_to_aiohttp", "ttft_error_ratio_to_aiohttp"}
    assert shown["figures"]["cpu_us_per_event"] > 0
    assert [(group["by"]["client"], group["by"]["streams"]) for group in shown["groups"]] == [
        (client, count) for count in (1, 2) for client in CLIENTS
    ]
    # The mock keeps its promise: never earlier than said.
    assert all(group["server_ttft_p50_s"] >= 0.05 for group in shown["groups"])


def test_errors_by_hand() -> None:
    """Two requests: the server's TTFT are 50 and 60 ms, its gaps 10 and 20 ms; the client saw each 2 ms late and a gap of 11."""
    log = [{"received": 0, "sends": [50_000_000, 60_000_000]}, {"received": 10_000_000, "sends": [70_000_000, 90_000_000]}]
    seen = {"ttft_s": [0.052, 0.062], "gaps_s": [0.011, 0.019], "events": 4, "failed": 0, "cpu_s": 1e-4}
    found = errors(seen, log)
    assert found["ttft_p50_error_s"] == pytest.approx(0.002)
    assert found["ttft_p99_error_s"] == pytest.approx(0.002)
    assert found["itl_mean_error"] == pytest.approx(0.0, abs=1e-12)
    assert found["itl_p99_error_s"] == pytest.approx(0.00098)
    assert found["cpu_us_per_event"] == pytest.approx(25.0)


@pytest.mark.parametrize("change", [{"failed": 1}, {"ttft_s": [0.05]}])
def test_requests_that_failed_or_are_not_in_the_log_are_no_comparison(change: dict[str, object]) -> None:
    log = [{"received": 0, "sends": [50, 60]}, {"received": 0, "sends": [50, 60]}]
    with pytest.raises(ValueError, match="requests failed"):
        errors({"ttft_s": [0.05, 0.05], "gaps_s": [], "events": 2, "failed": 0, "cpu_s": 0.0, **change}, log)


def test_errors_of_what_a_tool_states_by_hand() -> None:
    """The server's median TTFT is 55 ms and its mean gap 15; the tool says 65 and 12, and nothing of gaps at p99: no error there."""
    log = [{"received": 0, "sends": [50_000_000, 60_000_000]}, {"received": 10_000_000, "sends": [70_000_000, 90_000_000]}]
    said = Stated({"p50": 0.065, "p99": 0.0599, "mean": None}, {"p50": None, "p99": None, "mean": 0.012}, cpu_s=2e-3)
    assert stated_errors(said, log) == {
        "ttft_p50_error_s": pytest.approx(0.010),
        "ttft_p99_error_s": pytest.approx(0.0),
        "itl_mean_error": pytest.approx(0.2),
        "cpu_us_per_event_with_start": pytest.approx(500.0),
        "server_ttft_p50_s": pytest.approx(0.055),
    }
    with pytest.raises(ValueError, match="no request"):
        stated_errors(said, [])


def test_a_tool_is_run_from_its_environment_and_its_file_is_read(tmp_path: Path) -> None:
    """A stand-in takes the tool's place: it looks for the option that names the file, and leaves one there that our importer knows."""
    (tmp_path / "env" / "bin").mkdir(parents=True)
    program = tmp_path / "env" / "bin" / "guidellm"
    saved = ROOT / "tests" / "data" / "guidellm" / "2026-08_schema_2.json"
    program.write_text(
        f"""#!{sys.executable}
import shutil, sys
wanted = sys.argv[sys.argv.index("--output") + 1]
assert "kind=concurrent,streams=2" in sys.argv
shutil.copy({str(saved)!r}, wanted.split("path=")[1])
"""
    )
    program.chmod(0o755)
    said = stated("guidellm", tmp_path / "env", Task(1, 2, 3, 4), tmp_path, None)
    assert said.ttft_s["p50"] == pytest.approx(0.15)
    assert said.cpu_s > 0
    program.write_text("#!/bin/sh\nexit 3\n")
    with pytest.raises(subprocess.CalledProcessError):
        stated("guidellm", tmp_path / "env", Task(1, 2, 3, 4), tmp_path, None)


@pytest.mark.parametrize("peer", ["jmeter=/tmp", "guidellm", "guidellm=nowhere"])
def test_a_peer_that_is_not_there_is_refused_in_words(peer: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--peer", peer])
    assert ended.value.code == 2
    assert "say NAME=FOLDER" in capsys.readouterr().err


@pytest.mark.parametrize("name", TOOLS)
def test_every_tool_is_asked_for_the_same_load(name: str, tmp_path: Path) -> None:
    words = " ".join(TOOLS[name].command(tmp_path, Task(8000, 7, 3, 11), tmp_path))
    assert str(tmp_path / name) in words
    assert "8000" in words
    assert "21" in words
