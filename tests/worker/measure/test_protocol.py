"""The process that measures: told by its folder, answering in JSON lines and an exit code."""

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from app.domain.architecture import dense
from app.domain.plain import to_plain
from app.formats import read_runs
from app.formats.phaseline_device import rates_in
from app.worker.measure.job import REFUSED, Refused, read_job
from app.worker.measure.reporter import Reporter
from app.worker.measure.threads import COUNTS, pinned_environment

CPU = {"name": "this processor", "kind": "cpu", "backends": ["numpy"]}
QUICK = {"largest": 256, "seconds_per_shape": 0.001}


def given(folder: Path, job: Mapping[str, Any]) -> Path:
    (folder / "job.json").write_text(json.dumps(job))
    return folder


def ran(kind: str, folder: Path) -> tuple[int, list[dict[str, Any]]]:
    done = subprocess.run(
        [sys.executable, "-m", "app.worker.measure", kind, str(folder)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def test_a_device_is_measured_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    code, events = ran("device_microbench", given(tmp_path, {"parameters": QUICK, "device": CPU}))
    assert code == 0
    steps = [event for event in events if event["event"] == "progress"]
    # read, copy, triad, gemv, one launch, one square
    assert [event["done"] for event in steps] == [0, 1, 2, 3, 4, 5]
    assert {event["total"] for event in steps} == {6}
    assert steps[0]["eta_s"] is None
    assert steps[-1]["eta_s"] > 0
    assert [event["point"]["status"] for event in events if event["event"] == "point"] == ["ok"] * 6
    assert events[-1] == {"event": "result", "file": "result.json", "format": "phaseline"}
    data = (tmp_path / "result.json").read_bytes()
    (run,) = read_runs("result.json", data).runs
    assert run.labels["threads"] == "1"
    rates = rates_in("result.json", data, 0)
    assert rates is not None
    assert {move.what for move in rates.moves} == {"read", "copy", "triad", "gemv"}
    assert rates.ridge("fp32") is not None


@pytest.mark.parametrize(
    ("kind", "job", "expected"),
    [
        ("device_microbench", {"parameters": {"command": "rm"}}, "command cannot be used"),
        ("device_microbench", {"parameters": {"dtypes": ["fp8"]}, "device": CPU}, "fp8"),
        ("device_microbench", {"kind": "llama_bench"}, "one object of the kind device_microbench"),
        ("no_such_kind", {}, "no kind of job called no_such_kind"),
    ],
)
def test_what_cannot_be_done_is_refused_in_the_last_line_of_the_log(kind: str, job: dict[str, Any], expected: str, tmp_path: Path) -> None:
    code, events = ran(kind, given(tmp_path, job))
    assert code == REFUSED
    assert events[-1]["event"] == "log"
    assert expected in events[-1]["text"]


def test_a_job_is_read_with_its_model_and_device(tmp_path: Path) -> None:
    model = dense("small", "llama", layers=2, hidden=64, heads=4, kv_heads=2, head_dim=16, intermediate=128, vocab=256)
    job = read_job("device_microbench", given(tmp_path, {"model": to_plain(model), "device": {"kind": "cuda", "index": 1, "name": "A1"}}))
    assert (job.model, job.index, job.device.is_cpu) == (model, 1, False)
    with pytest.raises(Refused, match=r"job\.json cannot be read"):
        read_job("device_microbench", tmp_path / "nowhere")


def test_the_time_that_is_left_is_that_of_the_steps_done() -> None:
    stream, now = io.StringIO(), iter([0.0, 10.0, 14.0, 18.0])
    reporter = Reporter(stream, lambda: next(now))
    reporter.begin(4)
    reporter.step("a")
    reporter.finished({"value": float("nan")})
    # 8 s of one step are over since 10.0, three are left
    reporter.step("b")
    first, point, second = (json.loads(line) for line in stream.getvalue().splitlines())
    assert (first["eta_s"], second["eta_s"]) == (None, 24.0)
    assert point == {"event": "point", "point": {"value": None}}


def test_threads_are_pinned_once() -> None:
    pinned = pinned_environment(2, {"HOME": "/x", COUNTS[0]: "8"})
    assert pinned == {"HOME": "/x", **dict.fromkeys(COUNTS, "2")}
    assert pinned_environment(2, pinned) is None
    assert pinned_environment(None, {}) is None
