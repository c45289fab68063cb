"""Liveness and readiness."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event

from app.api.shapes import HealthShape, ReadinessShape
from app.store import migrate
from tests.answers import ok, strict
from tests.applications import context_of, served_from


def test_liveness_touches_nothing(api: TestClient) -> None:
    engine, statements = context_of(api).database.engine, []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        HealthShape.model_validate(ok(api.get("/healthz")))
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert statements == []


def test_readiness_lists_its_checks(api: TestClient) -> None:
    answer = ok(api.get("/readyz"))
    ReadinessShape.model_validate(answer)
    assert answer["status"] == "ready"
    assert {check["name"]: check["ok"] for check in answer["checks"]} == {"schema": True, "database": True}


def test_another_schema_is_not_ready_and_says_what_to_do(tmp_path: Path) -> None:
    with served_from(tmp_path) as client:
        migrate.downgrade(context_of(client).database, "base")
        answer = client.get("/readyz")
        assert answer.status_code == 503
        body = strict(answer)
        ReadinessShape.model_validate(body)
        assert body["status"] == "not ready"
        (failing,) = [check for check in body["checks"] if not check["ok"]]
        assert failing["name"] == "schema"
        assert "PHASELINE_AUTO_MIGRATE=1" in failing["detail"]
        assert client.get("/healthz").status_code == 200


def test_a_database_that_cannot_be_written_is_not_ready(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.store.health.write_problem", lambda database: "The disk is gone: mount it.")
    answer = api.get("/readyz")
    assert answer.status_code == 503
    assert "The disk is gone: mount it." in answer.text


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_no_other_method_is_taken(api: TestClient, path: str) -> None:
    for method in ("POST", "PUT", "DELETE"):
        answer = api.request(method, path)
        assert answer.status_code == 405
        assert answer.headers["content-type"] == "application/problem+json"
