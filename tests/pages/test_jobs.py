"""/jobs and what belongs to it: asked for by a form, followed on its page, stopped; workers, tokens, servers, schedules."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.pages.job_view import point_table, time_left
from tests.answers import API, ok
from tests.applications import served_from
from tests.pages import markup
from tests.pages.conftest import words_of

MICROBENCH = {"kind": "device_microbench", "sent": "1", "dtypes": "fp32", "largest": "512", "rows": "1, 8"}
DEVICE = {"key": "cpu-of-a", "name": "A processor", "kind": "cpu", "backends": ["numpy"], "memory_bytes": 8 * 2**30}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with served_from(tmp_path) as started:
        yield started


def words(client: TestClient, address: str) -> str:
    return words_of(client.get(address).text)


def asked(client: TestClient, **changes: str) -> int:
    answer = client.post("/jobs/new", data={**MICROBENCH, **changes}, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    return int(answer.headers["location"].rsplit("/", 1)[1])


def worker(client: TestClient) -> dict[str, Any]:
    """A connected worker with one processor; its answer to registering."""
    told = {"identity": "a" * 40, "name": "rack-2", "version": "1", "kinds": ["device_microbench", "inprocess_sweep"], "devices": [DEVICE]}
    token = ok(client.post(f"{API}/worker-tokens", json={"name": "rack-2"}), 201)["token"]
    found: dict[str, Any] = ok(client.post(f"{API}/worker/register", json=told, headers={"authorization": f"Bearer {token}"}))
    return found


def test_a_new_user_finds_four_measurements_and_how_to_start_a_worker(client: TestClient) -> None:
    page = words(client, "/jobs")
    for text in (
        "Measure the device",
        "Measure a model",
        "Measure a server",
        "Run llama-bench",
        "No worker is connected, so jobs wait.",
        "phaseline worker --server",
    ):
        assert text in page


def test_a_form_says_what_it_takes_where_before_it_starts(client: TestClient) -> None:
    assert "No worker is connected. The job would wait for one." in words(client, "/jobs/new?kind=device_microbench")
    worker(client)
    page = words(client, "/jobs/new?kind=device_microbench")
    assert "A processor rack-2" in page
    assert "numpy on A processor" in page
    refused = words(client, "/jobs/new?kind=inprocess_sweep&model=llama-3-1-8b")
    assert "Not here: numpy measures fp32 up to 160 million parameters" in refused


def test_the_estimate_alone_answers_a_change_of_the_form(client: TestClient) -> None:
    headers = {"HX-Request": "true", "HX-Request-Type": "partial"}
    part = client.get("/jobs/new", params={**MICROBENCH}, headers=headers).text
    assert part.strip().startswith('<div class="body stack" id="estimate"')
    assert "<html" not in part


def test_a_job_is_asked_for_followed_and_stopped(client: TestClient) -> None:
    number = asked(client, label="first")
    page = words(client, f"/jobs/{number}")
    assert "Waiting: first" in page
    assert "No worker is connected" in page
    assert "largest 512" in page
    assert 'hx-trigger="every' in client.get(f"/jobs/{number}").text
    assert client.post(f"/jobs/{number}/cancel", follow_redirects=False).status_code == 303
    page = client.get(f"/jobs/{number}").text
    assert "Stopped: first" in words_of(page)
    assert "hx-trigger" not in page
    assert f"/jobs/{number}" in client.get("/jobs?state=cancelled").text
    assert f'href="/jobs/{number}"' not in client.get("/jobs?state=failed").text


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"dtypes": "fp99"}, "dtypes", "Input should be"),
        ({"largest": "many"}, "largest", "valid integer"),
        ({"rows": ""}, "", ""),
        ({"model": "nobody-knows"}, "model", "nobody-knows"),
    ],
)
def test_a_wrong_field_is_marked_and_what_was_typed_stays(client: TestClient, changes: dict[str, str], field: str, message: str) -> None:
    answer = client.post("/jobs/new", data={**MICROBENCH, **changes, "label": "kept <b>"}, follow_redirects=False)
    if not field:
        assert answer.status_code == 303
        return
    assert answer.status_code == 422
    page = markup.read(answer.text)
    wrong = [each.attributes["name"] for each in page.all("input") if each.attributes.get("aria-invalid") == "true"]
    assert wrong == [field]
    assert message in answer.text
    assert "kept &lt;b&gt;" in answer.text


@pytest.mark.parametrize(("extra", "value"), [("priority", "high"), ("priority", "101"), ("job_limit_s", "nan"), ("job_limit_s", "0")])
def test_what_every_job_has_is_checked_too(client: TestClient, extra: str, value: str) -> None:
    answer = client.post("/jobs/new", data={**MICROBENCH, extra: value})
    assert answer.status_code == 422
    assert f"{extra} must be a number from" in answer.text


@pytest.mark.parametrize("address", ["/jobs/999", "/jobs/new?kind=rm", "/jobs/0"])
def test_what_is_not_there_is_said(client: TestClient, address: str) -> None:
    assert client.get(address).status_code in (404, 422)


def test_a_token_is_shown_once_and_can_be_revoked(client: TestClient) -> None:
    made = client.post("/jobs/workers/tokens", data={"name": "rack", "expires_days": ""})
    token = next(part for part in words_of(made.text).split() if part.startswith("phw_") and len(part) > 20)
    page = client.get("/jobs/workers").text
    assert token not in page
    assert "until revoked" in words_of(page)
    number = ok(client.get(f"{API}/worker-tokens"))["items"][0]["id"]
    client.post(f"/jobs/workers/tokens/{number}/revoke")
    assert "no more" in words(client, "/jobs/workers")


def test_a_server_is_registered_by_its_address_and_measured_by_its_name(client: TestClient) -> None:
    typed = {"name": "mine", "address": "http://10.0.0.5:8000/v1", "networks": "10.0.0.0/8", "key_ref": ""}
    assert client.post("/jobs/workers/targets", data=typed, follow_redirects=False).status_code == 303
    kept = ok(client.get(f"{API}/targets"))["items"][0]
    assert (kept["scheme"], kept["host"], kept["port"], kept["base_path"], kept["networks"]) == (
        "http",
        "10.0.0.5",
        8000,
        "/v1",
        ["10.0.0.0/8"],
    )
    assert "/jobs/new?kind=endpoint_sweep&amp;target=mine" in client.get("/jobs/workers").text
    client.post(f"/jobs/workers/targets/{kept['id']}/delete")
    assert ok(client.get(f"{API}/targets"))["items"] == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "-x"}, "A target’s name"),
        ({"address": "file:///etc/passwd"}, "scheme, host, port, path"),
        ({"address": "http://user:key@10.0.0.5/v1"}, "scheme, host, port, path"),
        ({"address": "http://10.0.0.5/v1?next=x"}, "scheme, host, port, path"),
        ({"address": "http://10.0.0.5:70000/v1"}, "The port must be from 1 to 65535."),
        ({"key_ref": "sk-secret key"}, "the key itself stays on the worker"),
        ({"networks": "10.0.0.1/8"}, "networks must be like"),
    ],
)
def test_a_server_that_cannot_be_is_refused_and_what_was_typed_stays(client: TestClient, changes: dict[str, str], message: str) -> None:
    typed = {"name": "mine", "address": "http://10.0.0.5:8000/v1", **changes}
    answer = client.post("/jobs/workers/targets", data=typed)
    assert answer.status_code == 422
    assert message.replace("’", "'") in words_of(answer.text).replace("’", "'")
    assert ok(client.get(f"{API}/targets"))["items"] == []


def test_a_job_comes_back_by_a_schedule(client: TestClient) -> None:
    number = asked(client)
    sent = client.post("/jobs/workers/schedules", data={"job": str(number), "name": "nightly", "daily_at": "02:30"}, follow_redirects=False)
    assert sent.status_code == 303
    kept = ok(client.get(f"{API}/schedules"))["items"][0]
    assert (kept["name"], kept["daily_at"], kept["parameters"]["largest"]) == ("nightly", "02:30", 512)
    client.post(f"/jobs/workers/schedules/{kept['id']}/switch", data={"enabled": "false"})
    assert ok(client.get(f"{API}/schedules"))["items"][0]["enabled"] is False
    client.post(f"/jobs/workers/schedules/{kept['id']}/delete")
    assert ok(client.get(f"{API}/schedules"))["items"] == []


@pytest.mark.parametrize(
    "typed", [{"job": "1", "daily_at": "25:00"}, {"job": "x", "daily_at": "02:30"}, {"job": "99", "daily_at": "02:30"}, {"job": "1"}]
)
def test_a_schedule_that_cannot_be_is_refused(client: TestClient, typed: dict[str, str]) -> None:
    asked(client)
    assert client.post("/jobs/workers/schedules", data=typed).status_code == 422


def test_points_are_told_with_units_and_bars_share_a_scale() -> None:
    table = point_table([{"phase": "prefill", "ttft_s": 0.2, "flops_per_s": 5e10}, {"ttft_s": 0.1, "itl_s": 0.01, "note": None}])
    assert [title for title, _ in table.titles] == ["Phase", "TTFT", "Rate", "ITL", "Note"]
    assert [cell.text.replace("\xa0", " ") for cell in table.rows[0]] == ["prefill", "200 ms", "50.0 GFLOP/s", "", ""]
    assert [row[1].bar for row in table.rows] == [100.0, 50.0]
    assert table.rows[0][3].bar is None


@pytest.mark.parametrize(
    ("eta", "text"), [(None, ""), (0.2, "about 1 s left"), (119, "about 119 s left"), (540, "about 9 min left"), (9000, "about 2.5 h left")]
)
def test_the_time_left_is_never_in_seconds_beyond_two_minutes(eta: float | None, text: str) -> None:
    assert time_left(eta) == text


def test_the_moment_of_a_job_is_the_servers(client: TestClient) -> None:
    assert f"asked for {datetime.now(UTC):%d %b %Y}".replace(" 0", " ") in words(client, f"/jobs/{asked(client)}").replace(" 0", " ")
