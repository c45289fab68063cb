"""`phaseline measure endpoint`: a table, a file that imports, and what it refuses before it connects."""

import json
from pathlib import Path

import pytest

from app.formats import read_runs
from benchmarks.mock_server import Behaviour
from tests.commands import Run, runner
from tests.worker.load.serving import served

LITTLE = ("--prompt", "40", "--output", "4", "--duration", "0.05", "--requests", "3", "--warmup", "1")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


def test_it_prints_a_row_a_point_and_writes_a_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVER_KEY", "sk-canary-5")
    out = tmp_path / "sweep.json"
    with served(Behaviour(ttft_s=0.01, itl_s=0.002)) as server:
        address = f"http://127.0.0.1:{server.port}"
        ended = run(
            "measure", "endpoint", address, "--model", "mock", "--concurrency", "1,2", *LITTLE, "--out", out, "--key-env", "SERVER_KEY"
        )
        again = run("measure", "endpoint", address, "--model", "mock", *LITTLE, "--out", out)
        keys = {entry.headers["authorization"] for entry in server.log}
    assert (ended.code, ended.err) == (0, "")
    head, first, second, *_ = ended.out.splitlines()
    assert head.split()[:5] == ["load", "prompt", "output", "requests", "failed"]
    assert [line.split()[:4] for line in (first, second)] == [["1", "clients", "40", "4"], ["2", "clients", "40", "4"]]
    assert "phaseline import" in ended.out
    runs = read_runs(out.name, out.read_bytes()).runs
    assert [run.labels["environment.device"] for run in runs] == ["load client"] * 2
    assert keys == {"Bearer sk-canary-5"}
    assert b"sk-canary-5" not in out.read_bytes()
    assert (again.code, "already" in again.err) == (2, True)


def test_with_json_it_prints_the_document_alone(run: Run, tmp_path: Path) -> None:
    with served(Behaviour(ttft_s=0.01, itl_s=0.002)) as server:
        ended = run(
            "measure", "endpoint", f"http://127.0.0.1:{server.port}", "--model", "mock", "--rate", "50", *LITTLE, "--json",
            "--out", tmp_path / "sweep.json",
        )  # fmt: skip
    assert (ended.code, ended.err) == (0, "")
    assert [point["request_rate_per_s"] for point in json.loads(ended.out)["runs"]] == [50.0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("http://169.254.169.254",), "metadata"),
        (("http://2852039166",), "four decimal numbers"),
        (("ftp://gpu.example",), "http"),
        (("http://127.0.0.1:9",), "No connection"),
        (("http://127.0.0.1:9", "--concurrency", "x"), "--concurrency"),
        (("http://127.0.0.1:9", "--key-env", "NOT_SET_ANYWHERE"), "NOT_SET_ANYWHERE"),
        (("http://127.0.0.1:9", "--prompt", "0"), "prompt_tokens"),
    ],
)
def test_what_cannot_be_measured_is_one_sentence(run: Run, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    ended = run("measure", "endpoint", *words, "--model", "m", "--out", tmp_path / "sweep.json")
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err
    assert not (tmp_path / "sweep.json").exists()
