"""Webhooks over HTTP: registered with a secret shown once, told of a regression, retried, given up, and what is kept of it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.webhooks import DeliveryList, NewWebhookShape, WebhookList
from app.domain.addresses import Destination
from app.domain.webhooks import MOST_ATTEMPTS, signed_by
from app.security.outbound import Answer
from app.services import webhooks as service
from app.services.context import Context
from app.services.delivering import LEASE, deliver_due
from app.store import webhooks as store
from tests.answers import API, ok, problem
from tests.result_files import data_of, served

HOOKS = f"{API}/webhooks"
# After everything that a test asks for.
NOW = datetime.now(UTC).replace(microsecond=0) + timedelta(minutes=10)


class Target:
    """A target that notes what it is sent and answers as it is told."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers) or [Answer(204)]
        self.seen: list[tuple[Destination, dict[str, str], bytes]] = []

    def __call__(self, to: Destination, headers: dict[str, str], body: bytes) -> Answer:
        self.seen.append((to, headers, body))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(autouse=True)
def _no_rounds_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.delivering._EVERY_S", 3600.0)


def registered(client: TestClient, **body: Any) -> dict[str, Any]:
    made: dict[str, Any] = ok(client.post(HOOKS, json={"url": "https://ci.example/hooks", **body}), 201)
    return made


def stored(client: TestClient, itl_ms: float, **fields: str) -> int:
    data = data_of(served(mean_tpot_ms=itl_ms, mean_itl_ms=itl_ms, mean_e2el_ms=50 + 50 * itl_ms))
    sent = client.post(f"{API}/runs", files={"file": ("a.json", data)}, data={"hardware": "l40s", **fields})
    number: int = ok(sent, 201)["runs"][0]["id"]
    return number


def deliveries(client: TestClient, hook: dict[str, Any]) -> list[dict[str, Any]]:
    answer = ok(client.get(f"{HOOKS}/{hook['id']}/deliveries"))
    DeliveryList.model_validate(answer)
    found: list[dict[str, Any]] = answer["items"]
    return found


def test_a_secret_is_shown_once_and_stands_nowhere(client: TestClient, settings: Any) -> None:
    made = registered(client, name="build server", networks=["10.0.0.0/8"])
    NewWebhookShape.model_validate(made)
    assert made["secret"].startswith("phs_")
    assert len(made["secret"]) == len("phs_") + 43
    listed = ok(client.get(HOOKS))
    WebhookList.model_validate(listed)
    assert listed["items"] == [{key: value for key, value in made.items() if key != "secret"}]
    assert made["secret"] not in client.get("/webhooks").text
    key = settings.data_dir / "secret.key"
    assert key.stat().st_mode & 0o777 == 0o600
    for path in Path(settings.data_dir).glob("phaseline.db*"):
        content = path.read_bytes()
        assert made["secret"].encode() not in content
        assert key.read_bytes().strip() not in content
    assert registered(client)["secret"] != made["secret"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"url": "ftp://ci.example/"}, "http or https"),
        ({"url": "https://me:secret@ci.example/"}, "user name or a password"),
        ({"url": "https://ci.example/?token=1"}, "query"),
        ({"url": "https://2852039166/"}, "four decimal numbers"),
        ({"url": "https://ci.example/", "networks": ["10.0.0.1/8"]}, "is no network"),
        ({"url": "https://ci.example/", "events": ["everything"]}, "told of regression and ping"),
        ({"url": "https://ci.example/", "events": []}, "told of regression and ping"),
        ({}, "url"),
    ],
)
def test_what_is_no_target(client: TestClient, body: dict[str, Any], words: str) -> None:
    problem(client.post(HOOKS, json=body), 422, words)
    assert ok(client.get(HOOKS))["items"] == []


def test_a_regression_is_told_signed_and_once_to_each_target(client: TestClient, context: Context) -> None:
    told, other = registered(client), registered(client, events=["ping"])
    base = stored(client, 10.0)
    ok(client.post(f"{API}/baselines", json={"run": base, "name": "release 1"}), 201)
    stored(client, 10.1)
    assert deliveries(client, told) == []
    slower = stored(client, 12.0)
    (waiting,) = deliveries(client, told)
    assert (waiting["state"], waiting["attempts"], waiting["last_status"]) == ("waiting", 0, None)
    assert deliveries(client, other) == []

    target = Target(Answer(200))
    assert deliver_due(context, NOW, target) == 1
    ((to, headers, body),) = target.seen
    assert (to.host, to.path) == ("ci.example", "/hooks")
    assert signed_by(told["secret"], headers["X-Phaseline-Signature"], body, int(NOW.timestamp()))
    assert not signed_by(other["secret"], headers["X-Phaseline-Signature"], body, int(NOW.timestamp()))
    said = json.loads(body)
    assert headers["X-Phaseline-Delivery"] == said["delivery"] == waiting["delivery"]
    assert (said["event"], said["run"]["id"], said["baseline"]["run"]) == ("regression", slower, base)
    assert (said["verdict"], said["phase"], said["compare"]) == ("regressed", "decode", f"/compare?base={base}&other={slower}")
    (figure,) = said["metrics"]
    assert (figure["key"], figure["base"], figure["value"]) == ("itl_s", pytest.approx(0.01), pytest.approx(0.012))
    assert said["sentence"].replace("\xa0", " ") == "Decode got 20.0 % slower per token; prefill did not move."
    (done,) = deliveries(client, told)
    assert (done["state"], done["attempts"], done["last_status"], done["next_at"]) == ("delivered", 1, 200, None)
    assert deliver_due(context, NOW + timedelta(days=1), target) == 0


def test_what_was_not_taken_is_tried_again_later_and_later_and_then_given_up(client: TestClient, context: Context) -> None:
    hook = registered(client)
    client.post(f"{HOOKS}/{hook['id']}/ping")
    target = Target(Answer(None, "the connection failed or was closed"), Answer(302), Answer(500))
    at = NOW
    for attempt in range(1, MOST_ATTEMPTS + 1):
        assert deliver_due(context, at, target) == 1
        (found,) = deliveries(client, hook)
        assert found["attempts"] == attempt
        if attempt < MOST_ATTEMPTS:
            assert found["state"] == "waiting"
            following = datetime.fromisoformat(found["next_at"])
            assert following - at >= timedelta(seconds=30)
            assert deliver_due(context, following - timedelta(seconds=1), target) == 0
            at = following
        if attempt == 2:
            assert (found["last_status"], found["last_problem"][:20]) == (302, "answered 302: redire")
    assert (found["state"], found["last_status"], found["next_at"]) == ("failed", 500, None)
    assert deliver_due(context, at + timedelta(days=1), target) == 0
    assert len({headers["X-Phaseline-Delivery"] for _, headers, _ in target.seen}) == 1
    assert len({headers["X-Phaseline-Signature"] for _, headers, _ in target.seen}) == MOST_ATTEMPTS


def test_a_stop_between_claim_and_outcome_sends_it_again(client: TestClient, context: Context) -> None:
    hook = registered(client)
    client.post(f"{HOOKS}/{hook['id']}/ping")
    with context.database.write() as session:
        claimed = store.claim(session, NOW, LEASE)
    assert claimed is not None
    target = Target()
    assert deliver_due(context, NOW, target) == 0
    assert deliver_due(context, NOW + LEASE, target) == 1
    with context.database.write() as session:
        # Whoever claimed first is too late: the outcome of the second attempt stands.
        assert not store.finish(session, claimed, store.FAILED, NOW, None, "too late")
    assert deliveries(client, hook)[0]["state"] == "delivered"


def test_a_stop_between_an_import_and_its_judgement_loses_nothing(
    client: TestClient, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = registered(client)
    ok(client.post(f"{API}/baselines", json={"run": stored(client, 10.0)}), 201)
    monkeypatch.setattr("app.services.storing.judge_new", lambda *_: None)
    stored(client, 12.0)
    assert deliveries(client, hook) == []
    target = Target()
    assert deliver_due(context, NOW, target) == 1
    assert json.loads(target.seen[0][2])["verdict"] == "regressed"
    service.judge_new(context, None, NOW)
    assert len(deliveries(client, hook)) == 1


def test_another_key_sends_nothing_and_says_so(client: TestClient, context: Context, settings: Any) -> None:
    hook = registered(client)
    client.post(f"{HOOKS}/{hook['id']}/ping")
    (settings.data_dir / "secret.key").write_text("0" * 64)
    target = Target()
    assert deliver_due(context, NOW, target) == 1
    assert target.seen == []
    assert "register the target anew" in deliveries(client, hook)[0]["last_problem"]


def test_a_target_goes_with_what_it_was_to_be_told(client: TestClient, context: Context) -> None:
    hook = registered(client)
    assert client.post(f"{HOOKS}/{hook['id']}/ping").status_code == 202
    assert client.delete(f"{HOOKS}/{hook['id']}").status_code == 204
    assert deliver_due(context, NOW, Target()) == 0
    for call in (client.delete, client.post):
        path = HOOKS if call == client.delete else f"{HOOKS}/{hook['id']}/ping"
        answer = call(f"{HOOKS}/{hook['id']}") if call == client.delete else call(path)
        problem(answer, 404, "There is no webhook")
    problem(client.get(f"{HOOKS}/{hook['id']}/deliveries"), 404)


def test_what_is_settled_is_kept_for_a_month(client: TestClient, context: Context) -> None:
    hook = registered(client)
    client.post(f"{HOOKS}/{hook['id']}/ping")
    deliver_due(context, datetime.now(UTC) + timedelta(minutes=1), Target())
    assert deliveries(client, hook)[0]["state"] == "delivered"
    client.post(f"{HOOKS}/{hook['id']}/ping")
    deliver_due(context, datetime.now(UTC) + timedelta(days=31), Target(Answer(500)))
    assert [each["state"] for each in deliveries(client, hook)] == ["waiting"]


def test_the_page_registers_shows_the_secret_once_and_the_attempts(client: TestClient, context: Context) -> None:
    page = client.post("/webhooks", data={"url": "https://ci.example/x", "networks": "10.0.0.0/8, fd00::/8", "events": ["ping"]})
    assert page.status_code == 201
    assert "phs_" in page.text
    (hook,) = ok(client.get(HOOKS))["items"]
    assert (hook["networks"], hook["events"]) == (["10.0.0.0/8", "fd00::/8"], ["ping"])
    client.post(f"/webhooks/{hook['id']}/ping")
    deliver_due(context, NOW, Target(Answer(503)))
    text = client.get("/webhooks").text
    assert "phs_" not in text
    assert "answered 503" in text
    assert "1 of 10" in text
    refused = client.post("/webhooks", data={"url": "https://ci.example/?a=b", "events": ["ping"]})
    assert refused.status_code == 422
    assert "holds a query" in refused.text
    assert "https://ci.example/?a=b" in refused.text
    client.post(f"/webhooks/{hook['id']}/delete")
    assert ok(client.get(HOOKS))["items"] == []
