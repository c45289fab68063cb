"""Who may call: hosts and origins, as pure rules and through the whole application."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from starlette.datastructures import Headers

from app.security.origin import host_allowed, host_name, same_origin
from tests.applications import served_from

OURS = "http://127.0.0.1:8000"
# Sec-Fetch-Site, Origin, and whether a call that changes something passes.
CALLS: list[tuple[str | None, str | None, bool]] = [
    (None, None, True),
    (None, OURS, True),
    (None, "https://evil.example", False),
    (None, "null", False),
    ("same-origin", None, True),
    ("same-origin", OURS, True),
    ("same-origin", "https://evil.example", False),
    ("none", None, True),
    ("same-site", None, False),
    ("same-site", OURS, False),
    ("cross-site", None, False),
    ("cross-site", "https://evil.example", False),
    ("cross-site", OURS, False),
    ("cross-site", "null", False),
    ("", None, False),
    ("SAME-ORIGIN", None, False),
]
SAFE = ("GET", "HEAD", "OPTIONS")
UNSAFE = ("POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "PROPFIND", "BREW")
FORGED_ORIGINS = (
    "http://127.0.0.1:8001",
    "http://127.0.0.1",
    "http://localhost:8000",
    "http://127.0.0.1:8000.evil.example",
    "http://evil.example/127.0.0.1:8000",
    "http://127.0.0.1:8000@evil.example",
    "file://127.0.0.1:8000",
    "chrome-extension://127.0.0.1:8000",
    "http://[::1",
    "http://",
    "//127.0.0.1:8000",
    "127.0.0.1:8000",
    "",
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served_from(tmp_path_factory.mktemp("guarded")) as started:
        yield started


def headers_of(site: str | None, origin: str | None) -> dict[str, str]:
    given = {"sec-fetch-site": site, "origin": origin}
    return {name: value for name, value in given.items() if value is not None}


@pytest.mark.parametrize("method", [*SAFE, *UNSAFE])
@pytest.mark.parametrize("call", CALLS)
def test_the_rule(method: str, call: tuple[str | None, str | None, bool]) -> None:
    site, origin, passes = call
    headers = Headers({"host": "127.0.0.1:8000", **headers_of(site, origin)})
    assert same_origin(method, headers) == (passes or method in SAFE)


@pytest.mark.parametrize("path", ["/api/v1/runs/1", "/api/v1/predict", "/hardware/x/delete", "/static/app.css", "/nothing/here"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "BREW"])
def test_every_method_at_every_kind_of_address(client: TestClient, path: str, method: str) -> None:
    for site, origin, passes in CALLS:
        answer = client.request(method, path, headers=headers_of(site, origin))
        assert (answer.status_code != 403) == passes, f"{site} {origin}"
        if not passes:
            assert answer.headers["content-type"] == "application/problem+json"
            assert "another site" in answer.json()["detail"]


@pytest.mark.parametrize("origin", FORGED_ORIGINS)
def test_an_origin_that_only_looks_like_ours_is_refused(client: TestClient, origin: str) -> None:
    assert client.delete("/api/v1/runs/1", headers={"origin": origin}).status_code == 403


def test_reading_is_open_to_any_page_and_tells_it_nothing(client: TestClient) -> None:
    """Another site may send a GET; without CORS headers its script cannot read the answer."""
    answer = client.get("/api/v1/predict", headers={"origin": "https://evil.example", "sec-fetch-site": "cross-site"})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_no_preflight_is_ever_granted(client: TestClient) -> None:
    headers = {"origin": "https://evil.example", "access-control-request-method": "DELETE"}
    answer = client.options("/api/v1/runs/1", headers=headers)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_the_operators_names_count_as_ours_when_a_proxy_replaced_the_host() -> None:
    headers = Headers({"host": "127.0.0.1:8000", "origin": "https://phaseline.example"})
    assert same_origin("POST", headers, ("Phaseline.example",))
    assert not same_origin("POST", headers, ("other.example",))
    assert not same_origin("POST", headers, ("*",)), "every host is no list of our own"


ALLOWED = (
    "localhost", "localhost:8000", "LOCALHOST", "127.0.0.1", "127.0.0.1:8000", "127.9.9.9", "[::1]", "[::1]:8000", "10.0.0.7:80",
    "192.168.1.5", "172.16.0.1:8000", "[fd00::1]", "[::ffff:10.0.0.1]",
)  # fmt: skip
REFUSED = (
    "", "evil.test", "evil.test:8000", "127.0.0.1.evil.test", "localhost.evil.test", "evil.test@127.0.0.1", "127.0.0.1/evil",
    "127.0.0.1?evil", "127.0.0.1#evil", "127.0.0.1:8000:9", "127.0.0.1:", "8.8.8.8", "[2001:4860:4860::8888]", "[::1", "::1", "2130706433",
    "0x7f000001", "127.1", "localhost:99999999", "local host", "lоcalhost", "testserver",
)  # fmt: skip


@pytest.mark.parametrize("host", ALLOWED)
def test_local_names_and_private_addresses_are_answered(client: TestClient, host: str) -> None:
    assert host_allowed(host, ())
    assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", REFUSED)
def test_any_other_host_is_400(client: TestClient, host: str) -> None:
    assert not host_allowed(host, ())
    for path in ("/healthz", "/api/v1/predict", "/", "/static/app.css"):
        answer = client.get(path, headers={b"host": host.encode("utf-8")})
        assert answer.status_code == 400
        assert answer.headers["content-type"] == "application/problem+json"
        assert "PHASELINE_ALLOWED_HOSTS" in answer.json()["detail"]


def test_named_hosts_are_answered_whatever_their_case() -> None:
    assert host_allowed("Phaseline.Example:443", ("phaseline.example",))
    assert host_allowed("phaseline.example", ("Phaseline.EXAMPLE",))
    assert not host_allowed("sub.phaseline.example", ("phaseline.example",))
    assert host_allowed("anything.example", ("*",))
    assert not host_allowed("not a host", ("*",))


def test_a_host_is_read_without_port_and_brackets() -> None:
    assert [host_name(host) for host in ("A.Example:1", "[FD00::1]:80", "x y", "a:b")] == ["a.example", "fd00::1", None, None]
