"""The job in a process of its own, as the agent starts it: progress, points, the document, refusals, and no key anywhere."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from app.formats import read_runs
from benchmarks.mock_server import Behaviour
from tests.worker.load.serving import served

ROOT = Path(__file__).resolve().parents[3]
CANARY = "sk-canary-9876543210"


def job(folder: Path, url: str, networks: list[str]) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, events and standard error of one job."""
    parameters = {
        "target": "here", "model": "mock", "api": "chat", "concurrency": [1, 2], "prompt_tokens": [40], "output_tokens": [4],
        "duration_s": 0.05, "min_requests": 4, "warmup_requests": 1,
    }  # fmt: skip
    target = {"name": "here", "url": url, "metrics_url": None, "networks": networks, "headers": {"authorization": f"Bearer {CANARY}"}}
    device = {"name": "this processor", "kind": "cpu", "backends": ["numpy"]}
    (folder / "job.json").write_text(json.dumps({"kind": "endpoint_sweep", "parameters": parameters, "device": device, "target": target}))
    command = [sys.executable, "-m", "app.worker.measure", "endpoint_sweep", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_a_job_tells_its_points_and_leaves_a_document(tmp_path: Path) -> None:
    with served(Behaviour(ttft_s=0.01, itl_s=0.002)) as server:
        code, events, err = job(tmp_path, f"http://127.0.0.1:{server.port}/v1", ["127.0.0.0/8"])
        keys = {entry.headers["authorization"] for entry in server.log}
    assert (code, err) == (0, "")
    assert keys == {f"Bearer {CANARY}"}
    points = [event["point"] for event in events if event["event"] == "point"]
    assert [point["concurrency"] for point in points] == [1, 2]
    assert all(point["status"] == "ok" and point["ttft_s"] >= 0.01 for point in points)
    progress = [event for event in events if event["event"] == "progress"]
    assert {event["total"] for event in progress} == {2}
    assert [event["file"] for event in events if event["event"] == "result"] == ["result.json", "result.json"]
    result = (tmp_path / "result.json").read_bytes()
    assert len(read_runs("result.json", result).runs) == 2
    assert CANARY not in json.dumps(events)
    assert CANARY.encode() not in result


def test_a_target_outside_its_networks_is_refused_without_a_connection(tmp_path: Path) -> None:
    with served(Behaviour()) as server:
        code, events, err = job(tmp_path, f"http://127.0.0.1:{server.port}/v1", ["10.0.0.0/8"])
        connections = server.connections
    assert (code, err, connections) == (2, "", 0)
    assert "none of the allowed networks" in events[-1]["text"]
    assert not (tmp_path / "result.json").exists()
