"""Security headers stand on every kind of answer, errors and faults included."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from app.security.headers import CONTENT_SECURITY_POLICY, SECURITY_HEADERS
from tests.answers import API, ok
from tests.applications import served_from
from tests.result_files import served_file

PATHS = {
    "a page": ("GET", "/glossary", 200),
    "a page that is not there": ("GET", "/nothing", 404),
    "a page of a run that is not there": ("GET", "/runs/99", 404),
    "a page with an id that can be none": ("GET", f"/runs/{2**63}", 422),
    "JSON": ("GET", f"{API}/predict", 200),
    "CSV": ("GET", f"{API}/runs?as=csv", 200),
    "OpenAPI": ("GET", f"{API}/openapi.json", 200),
    "a problem": ("GET", f"{API}/runs/99", 404),
    "input that does not fit": ("GET", f"{API}/runs?limit=0", 422),
    "an address of the API that is not there": ("GET", f"{API}/nothing", 404),
    "a method that is not taken": ("PUT", f"{API}/predict", 405),
    "no content": ("DELETE", f"{API}/runs/1", 204),
    "a static file": ("GET", "/static/app.css", 200),
    "a static file that is not there": ("GET", "/static/nothing.js", 404),
    "a way out of the static folder": ("GET", "/static/..%2f..%2fpyproject.toml", 404),
    "liveness": ("GET", "/healthz", 200),
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served_from(tmp_path_factory.mktemp("headers")) as started:
        yield started


@pytest.mark.parametrize("kind", PATHS)
def test_every_answer_has_them(client: TestClient, kind: str) -> None:
    method, path, status = PATHS[kind]
    if kind == "no content":
        number = ok(client.post(f"{API}/runs", content=served_file(1)), 201)["runs"][0]["id"]
        path = f"{API}/runs/{number}"
    answer = client.request(method, path)
    assert answer.status_code == status
    assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS


def test_refusals_of_the_guard_have_them(client: TestClient) -> None:
    for answer in (client.get("/", headers={"host": "evil.test"}), client.post("/", headers={"origin": "https://evil.example"})):
        assert answer.status_code in (400, 403)
        assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS


@pytest.mark.parametrize("path", [f"{API}/hardware", "/hardware"])
def test_a_fault_of_ours_has_them_and_tells_nothing(client: TestClient, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("app.services.profiles.read_book", fail)
    answer = client.get(path)
    assert answer.status_code == 500
    assert "secret detail" not in answer.text
    assert "Traceback" not in answer.text
    assert "the log has the details" in answer.text
    assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS


def test_the_original_is_sandboxed_and_keeps_the_others(client: TestClient) -> None:
    number = ok(client.post(f"{API}/runs", content=served_file(2)), 201)["runs"][0]["id"]
    headers = client.get(f"{API}/runs/{number}/original").headers
    expected = {**SECURITY_HEADERS, "content-security-policy": "sandbox"}
    assert {name: headers.get(name) for name in SECURITY_HEADERS} == expected


def test_the_policy_lets_no_inline_and_no_foreign_code_run() -> None:
    rules = dict(rule.split(" ", 1) for rule in CONTENT_SECURITY_POLICY.split("; "))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == rules["form-action"] == "'self'"
    assert rules["base-uri"] == rules["frame-ancestors"] == "'none'"
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY


def test_a_versioned_static_file_is_kept_and_another_is_asked_for_again(client: TestClient) -> None:
    assert "immutable" in client.get("/static/tokens.css?v=1").headers["cache-control"]
    assert "cache-control" not in client.get("/static/tokens.css").headers
    assert "immutable" not in client.get("/static/nothing.css?v=1").headers["cache-control"]
