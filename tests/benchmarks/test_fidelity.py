"""The fidelity benchmark runs as a command, on little, and prints the contract's shape. No time is judged here: its own run does that."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fidelity import CLIENTS, errors

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
