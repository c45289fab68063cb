"""The application as a whole: start, stop, errors as JSON or as a page, a path prefix, what is logged."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.domain.errors import PhaselineError
from app.main import create_app
from app.services.startup import prepare
from app.store import migrate
from tests.answers import API, ok, problem
from tests.applications import context_of, served_from, settings_in


def test_making_an_application_opens_nothing(tmp_path: Path) -> None:
    create_app(settings_in(tmp_path / "data"))
    assert not (tmp_path / "data" / "phaseline.db").exists()


def test_starting_migrates_and_loads_the_catalog_and_does_so_again(tmp_path: Path) -> None:
    for _ in range(2):
        with served_from(tmp_path) as client:
            assert len(ok(client.get(f"{API}/hardware"))["items"]) > 100
            assert migrate.is_current(context_of(client).database)


def test_what_was_stored_is_there_after_a_restart(tmp_path: Path) -> None:
    with served_from(tmp_path) as client:
        ok(client.post(f"{API}/models", json={"clone_of": "llama-3-1-8b", "name": "kept"}), 201)
    with served_from(tmp_path) as client:
        assert ok(client.get(f"{API}/models/kept"))["origin"] == "user"


def test_without_auto_migrate_an_old_schema_is_refused_in_a_sentence(tmp_path: Path) -> None:
    app = create_app(settings_in(tmp_path, auto_migrate=False))
    with pytest.raises(PhaselineError, match="PHASELINE_AUTO_MIGRATE"):
        prepare(app.state.context)
    with pytest.raises(PhaselineError), TestClient(app):
        pass


@pytest.mark.parametrize(("path", "kind"), [
    (f"{API}/nothing", "application/problem+json"), ("/healthz/nothing", "application/problem+json"), ("/nothing", "text/html"),
    ("/runs/99", "text/html"), ("/api", "text/html"),
])  # fmt: skip
def test_an_error_is_json_below_the_api_and_a_page_elsewhere(client: TestClient, path: str, kind: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith(kind)


@pytest.mark.parametrize(("path", "methods"), [
    (f"{API}/runs", "GET, POST"), (f"{API}/runs/1", "GET, PATCH, DELETE"), (f"{API}/predict", "GET, POST"), ("/healthz", "GET"),
    ("/static/app.css", "GET, HEAD"), (f"{API}/openapi.json", "GET, HEAD"), (f"{API}/jobs/estimate", "POST"), (f"{API}/jobs/1", "GET"),
])  # fmt: skip
def test_a_method_that_is_not_taken_names_those_that_are(client: TestClient, path: str, methods: str) -> None:
    answer = client.put(path, content=b"{}")
    assert (answer.status_code, answer.headers["allow"]) == (405, methods)


def test_a_fault_is_one_log_line_with_its_trace_and_no_values(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        password = "hunter2"  # noqa: F841 - a local that must not be logged
        raise RuntimeError("broken")

    monkeypatch.setattr("app.services.profiles.read_book", fail)
    problem(client.get(f"{API}/hardware?secret=s3cr3t"), 500, "a fault of ours", "the log has the details")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    (line,) = [line for line in lines if line.get("event") == "fault"]
    assert line["error"] == "RuntimeError"
    assert "broken" in line["exception"]
    assert "hunter2" not in json.dumps(line).replace('password = \\"hunter2\\"', "")
    assert "s3cr3t" not in json.dumps(lines)


@pytest.mark.parametrize("sent", ["/phaseline", ""], ids=["prefix handed on", "prefix stripped by the proxy"])
def test_behind_a_proxy_with_a_path_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: str) -> None:
    with served_from(tmp_path, root_path="/phaseline") as client:
        assert ok(client.get(f"{sent}/healthz")) == {"status": "ok"}
        problem(client.get(f"{sent}{API}/runs/99"), 404)
        problem(client.get(f"{sent}{API}/nothing"), 404)
        assert client.get(f"{sent}/static/app.css").status_code == 200
        page = client.get(f"{sent}/glossary")
        assert page.status_code == 200
        assert 'href="/phaseline/runs"' in page.text
        assert 'href="/runs"' not in page.text
        description: dict[str, Any] = ok(client.get(f"{sent}{API}/openapi.json"))
        assert description["servers"] == [{"url": "/phaseline"}]
        monkeypatch.setattr("app.services.profiles.read_book", lambda *_: 1 / 0)
        problem(client.get(f"{sent}{API}/hardware"), 500, "a fault of ours")
