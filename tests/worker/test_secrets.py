"""Keys stay on the worker: found by name, never in a text that leaves."""

import json
from pathlib import Path

import pytest

from app.logs import Redactor, redactor
from app.worker.child import environment
from app.worker.keys import KeyMissing, key_of, resolved
from app.worker.reports import cleaned

TARGET = {
    "name": "vllm", "scheme": "https", "host": "fd00::7", "port": 8443, "base_path": "/v1", "metrics_path": "/metrics",
    "networks": ["fd00::/8"], "key_ref": "team.vllm-1",
}  # fmt: skip


def test_a_key_comes_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyMissing, match="PHASELINE_KEY_TEAM_VLLM_1"):
        key_of("team.vllm-1", tmp_path)
    (tmp_path / "team.vllm-1").write_text("canary-of-a-file\n")
    assert key_of("team.vllm-1", tmp_path) == "canary-of-a-file"
    monkeypatch.setenv("PHASELINE_KEY_TEAM_VLLM_1", "canary-of-the-environment")
    assert key_of("team.vllm-1", tmp_path) == "canary-of-the-environment"
    assert "canary" not in redactor.text("sent canary-of-a-file and canary-of-the-environment")


@pytest.mark.parametrize("reference", ["../identity", "a/b", "", ".", "a..b", "x" * 65, "a\nb"])
def test_a_reference_is_a_name_and_no_path(tmp_path: Path, reference: str) -> None:
    with pytest.raises(KeyMissing):
        key_of(reference, tmp_path)


def test_a_target_is_resolved_for_the_measuring_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHASELINE_KEY_TEAM_VLLM_1", "canary-key-1")
    found = resolved(TARGET, tmp_path)
    assert (found["url"], found["metrics_url"]) == ("https://[fd00::7]:8443/v1", "https://[fd00::7]:8443/metrics")
    assert found["headers"] == {"authorization": "Bearer canary-key-1"}
    assert resolved({**TARGET, "key_ref": None, "metrics_path": None}, tmp_path)["headers"] == {}


@pytest.mark.parametrize(
    "text",
    ["Authorization: Bearer canary0123", "key sk-canary0123", "token hf_canary0123", "phw_canary0123456", "api_key=canary0123",
     '{"api-key": "canary0123"}', "http://user:canary0123@h.example/", "GET https://h.example/x?token=canary0123", "password: canary0123"],
)  # fmt: skip
def test_what_looks_like_a_secret_is_taken_out(text: str) -> None:
    assert "canary" not in Redactor().text(text)


def test_ordinary_lines_stay_as_they_are() -> None:
    for line in ("prefill 2048 tokens, batch 1", "square 256 x 256, fp32: 70.8 GFLOP/s", "at https://h.example/v1"):
        assert Redactor().text(line) == line


def test_events_are_cleaned_before_they_leave() -> None:
    redactor.learn("canary-known-1")
    events = [
        {"event": "log", "level": "odd", "text": "x canary-known-1"}, {"event": "progress", "done": -1, "current": "canary-known-1"},
        {"event": "point", "point": {"a": "canary-known-1", "b": float("nan"), "c": [1]}}, {"event": "unknown"},
    ]  # fmt: skip
    told = [cleaned(event) for event in events]
    assert "canary" not in json.dumps(told)
    assert told[1] == {"event": "progress", "done": 0, "total": None, "current": "…", "eta_s": None}
    assert told[2] == {"event": "point", "point": {"a": "…", "b": None, "c": "[1]"}}
    assert told[3] is None


def test_a_measuring_process_sees_no_setting_and_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PHASELINE_WORKER_TOKEN", "PHASELINE_KEY_X", "OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "canary")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    seen = environment(tmp_path)
    assert "canary" not in seen.values()
    assert seen["CUDA_VISIBLE_DEVICES"] == "1"
    assert seen["HOME"] == str(tmp_path)
