"""llama-bench by a stand-in that replays a small file of ours: only what the worker's owner allows, and its own JSON as the result."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from app.formats import read_runs
from app.jobs import DeviceFacts
from app.jobs.llama_bench import LlamaBench
from app.worker.measure import llama_bench
from app.worker.measure.job import Failed, Job, Refused
from app.worker.measure.llama_bench import BINARY, MODELS, command_of
from app.worker.measure.reporter import Reporter

REPLAYED = Path(__file__).resolve().parents[2] / "data" / "llama_bench" / "2026-03_pair.json"
CPU = DeviceFacts("this processor", "cpu", ())


@pytest.fixture
def owned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A worker whose owner allows a stand-in and one model; it replays our file, or fails as the test says."""
    models = tmp_path / "models"
    models.mkdir()
    (models / "tiny.gguf").write_bytes(b"")
    binary = tmp_path / "llama-bench"
    _stand_in(binary, f"sys.stdout.write(open({str(REPLAYED)!r}).read())")
    monkeypatch.setenv(BINARY, str(binary))
    monkeypatch.setenv(MODELS, str(models))
    return binary


def _stand_in(binary: Path, does: str) -> None:
    words = f"#!{sys.executable}\nimport sys\nprint('words', *sys.argv[1:], file=sys.stderr)\n{does}\n"
    binary.write_text(words)
    binary.chmod(0o755)


def job(folder: Path, **parameters: Any) -> Job:
    return Job("llama_bench", LlamaBench(gguf="tiny.gguf", **parameters), CPU, folder)


def ran(what: Job) -> list[dict[str, Any]]:
    stream = io.StringIO()
    llama_bench.run(what, Reporter(stream))
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.usefixtures("owned")
def test_its_own_json_is_the_result(tmp_path: Path) -> None:
    events = ran(job(tmp_path, prompt_tokens=(512, 1024), depths=(0, 64), repeats=3, threads=2))
    result = next(event for event in events if event["event"] == "result")
    assert (result["file"], result["format"]) == ("llama-bench.json", "llama_bench")
    assert (tmp_path / "llama-bench.json").read_bytes() == REPLAYED.read_bytes()
    assert len(read_runs("x", (tmp_path / "llama-bench.json").read_bytes()).runs) == events[-1]["point"]["runs"]
    log = next(event["text"] for event in events if event["event"] == "log")
    expected = f"words -m {tmp_path}/models/tiny.gguf -p 512,1024 -n 128 -d 0,64 -r 3 -t 2 -ngl 0 -o json"
    assert log == expected


@pytest.mark.parametrize(
    ("does", "expected"),
    [
        ("sys.exit(3)", "ended with code 3 and gave no result"),
        ("print('usage: llama-bench')", "cannot be read"),
        (f"sys.stdout.write(open({str(REPLAYED)!r}).read()); sys.exit(1)", "what it had done by then is kept"),
        ("import time; time.sleep(60)", "took longer than its limit of 0.5 s"),
    ],
)
def test_a_bench_that_fails_says_how(owned: Path, does: str, expected: str, tmp_path: Path) -> None:
    _stand_in(owned, does)
    with pytest.raises(Failed, match=expected):
        ran(job(tmp_path, limit_s=0.5 if "sleep" in does else 60.0))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({BINARY: ""}, "allows no llama-bench"),
        ({BINARY: "llama-bench"}, "allows no llama-bench"),
        ({MODELS: "models"}, "has no model folder"),
        ({MODELS: "/nowhere"}, "has no model folder"),
    ],
)
def test_what_the_owner_does_not_allow_is_refused(owned: Path, changes: dict[str, str], expected: str, tmp_path: Path) -> None:
    allowed = {BINARY: str(owned), MODELS: str(tmp_path / "models")}
    assert command_of(LlamaBench(gguf="tiny.gguf"), allowed, on_gpu=True)[-3:] == ["99", "-o", "json"]
    with pytest.raises(Refused, match=expected):
        command_of(LlamaBench(gguf="tiny.gguf"), {**allowed, **changes}, on_gpu=True)
    with pytest.raises(Refused, match=r"no other\.gguf in this worker's model folder; there are: tiny\.gguf"):
        command_of(LlamaBench(gguf="other.gguf"), allowed, on_gpu=True)
