"""A real engine: `transformers serve` with a small random model, offline. It takes requests in turn, and the sweep finds that out."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.worker.load.test_sweep import Served, swept

SCRIPT = Path(__file__).with_name("tiny_engine.py")
STARTS_IN_S = 150.0
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, str]]:
    """A running engine: its port and the name of its model."""
    if find_spec("transformers") is None or find_spec("torch") is None:
        pytest.skip("transformers and torch are not installed: make test installs both")
    folder = tmp_path_factory.mktemp("engine")
    model = folder / "model"
    environment = {**os.environ, **OFFLINE, "HF_HOME": str(folder / "hub"), "HOME": str(folder)}
    subprocess.run([sys.executable, str(SCRIPT), str(model)], env=environment, check=True, capture_output=True, timeout=150)
    port = free_port()
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(model), "--device", "cpu"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", str(port)], env=environment, stdout=log, stderr=log)
    try:
        _wait(process, port, folder / "log")
        yield port, str(model)
    finally:
        process.kill()
        process.wait(30)


def _wait(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    """Until it is healthy. Fails with the end of its log where it never is."""
    until = time.monotonic() + STARTS_IN_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail(f"transformers serve did not start: {log.read_text(errors='replace')[-2000:]}")


@pytest.mark.timeout(420)
def test_a_sweep_finds_that_it_serves_one_request_at_a_time(engine: tuple[int, str], tmp_path: Path) -> None:
    port, model = engine
    runs, rows, document = swept(
        Served(port),
        tmp_path,
        model=model,
        api="chat",
        concurrency=(1, 4),
        prompt_tokens=(100,),
        output_tokens=(16,),
        duration_s=0.5,
        min_requests=12,
    )
    alone, loaded = runs
    assert [run.requests.failed for run in runs] == [0, 0]
    assert alone.labels["left_out"] == "ignore_eos, min_tokens"
    assert (alone.token_count_source, alone.workload.output_tokens_mean) == ("server_usage", 16)
    assert alone.workload.prompt_tokens_mean == pytest.approx(100, rel=0.15)
    assert ["server_queue_in_ttft" in row["flags"] for row in rows] == [False, True]
    (flag,) = (flag for flag in loaded.flags if flag.flag == "server_queue_in_ttft")
    assert 0.4 < flag.figures["served_at_once"] < 2.0
    assert flag.figures["queue_mean_s"] > rows[0]["ttft_s"]
    assert all(point["status"] == "ok" for point in document["runs"])
