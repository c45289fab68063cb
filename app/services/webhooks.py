"""Webhooks: targets registered and forgotten, and what they are told when a new run is worse than its baseline."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from sqlmodel import Session

from app.domain.addresses import parse_destination
from app.domain.comparison import Comparison
from app.domain.errors import InvalidRequest, NotFound
from app.domain.text import clean_text
from app.domain.webhooks import EVENTS
from app.services.baselines import Standing, standing
from app.services.context import Context
from app.services.secret_key import derived_secret, key_mark, secret_key
from app.services.sentences import comparison_sentence
from app.services.strict_json import strict_json
from app.services.summary import timestamp
from app.store import runs, webhooks
from app.store.records import StoredRun
from app.store.webhook_tables import WebhookRow
from app.store.webhooks import StoredDelivery, StoredWebhook

PURPOSE = "webhook"
_MOST = 50
_JUDGED_AT_ONCE = 100


@dataclass(frozen=True)
class Registered:
    """A new target with its secret, which is shown this once."""

    webhook: StoredWebhook
    secret: str


def register(context: Context, url: str, name: str, events: Sequence[str], networks: Sequence[str], now: datetime) -> Registered:
    """Register a target. Raises InvalidRequest naming the field that cannot be used: `url`, `networks` or `events`."""
    destination = parse_destination(url.strip(), networks)
    wanted = tuple(event for event in EVENTS if event in events)
    unknown = next((event for event in events if event not in EVENTS), None)
    if unknown is not None or not wanted:
        raise InvalidRequest("events", f"A webhook is told of {' and '.join(EVENTS)}: name at least one of these.")
    key, salt = secret_key(context.settings), secrets.token_hex(16)
    row = WebhookRow(
        name=clean_text(name) or destination.authority,
        url=f"{destination.scheme}://{destination.authority}{destination.path}",
        networks=list(destination.networks),
        events=list(wanted),
        salt=salt,
        key_mark=key_mark(key),
        created_at=now,
    )
    with context.database.write() as session:
        if len(webhooks.every(session)) >= _MOST:
            raise InvalidRequest("url", f"There are {_MOST} webhooks, the most there may be: delete one first.")
        return Registered(webhooks.add(session, row), derived_secret(key, PURPOSE, salt))


def every(context: Context) -> list[StoredWebhook]:
    """All targets, the one registered last first."""
    with context.database.read() as session:
        return webhooks.every(session)


def forget(context: Context, number: int) -> None:
    """Delete a target with what is still to be sent to it. Raises NotFound."""
    with context.database.write() as session:
        if not webhooks.remove(session, number):
            raise _not_there(number)


def deliveries(context: Context, number: int | None, limit: int = 50) -> list[StoredDelivery]:
    """What a target (any) was or is to be told, newest first. Raises NotFound for an unknown target."""
    with context.database.read() as session:
        if number is not None and webhooks.get(session, number) is None:
            raise _not_there(number)
        return webhooks.deliveries(session, number, limit)


def ping(context: Context, number: int, now: datetime) -> None:
    """Tell a target that it is reached. Raises NotFound."""
    with context.database.write() as session:
        if webhooks.get(session, number) is None:
            raise _not_there(number)
        _enqueue(session, number, "ping", {}, now)


def judge_new(context: Context, run_ids: Sequence[int] | None, now: datetime) -> None:
    """Set new runs against their baselines and put what is to be told into the outbox, in one transaction that takes them off the list.

    `run_ids` None means every run that is on it: what a stop between an import and its judgement left.
    """
    with context.database.read() as session:
        waiting = webhooks.to_judge(session, _JUDGED_AT_ONCE) if run_ids is None else tuple(run_ids)
    if not waiting:
        return
    with context.database.write() as session:
        taken = webhooks.take_to_judge(session, waiting)
        targets = [each for each in webhooks.every(session) if "regression" in each.events]
        if not taken or not targets:
            return
        for stored in runs.get_many(session, taken):
            found = standing(session, stored)
            if found.word == "regressed" and found.comparison is not None:
                told = _regression(stored, found, found.comparison)
                for target in targets:
                    _enqueue(session, target.id, "regression", told, now)


def _enqueue(session: Session, number: int, event: str, told: dict[str, Any], now: datetime) -> None:
    delivery = str(uuid4())
    body = strict_json({"event": event, "delivery": delivery, "created_at": timestamp(now), **told})
    webhooks.enqueue(session, number, delivery, event, body, now)


def _regression(stored: StoredRun, found: Standing, comparison: Comparison) -> dict[str, Any]:
    run, there, verdict = stored.run, found.baseline, found.found
    return {
        "run": {
            "id": stored.id,
            "url": f"/runs/{stored.id}",
            "label": run.label,
            "model": stored.model_slug or run.model,
            "hardware": stored.hardware_slug or run.hardware,
            "engine": run.engine,
            "engine_version": run.engine_version,
            "project": stored.project,
        },
        "baseline": None if there is None else {"id": there.id, "name": there.name, "run": there.run_id},
        "verdict": found.word,
        "phase": found.phase or None,
        "sentence": comparison_sentence(comparison),
        "metrics": [
            {"key": row.key, "stat": row.stat, "base": row.base, "value": row.other, "change": row.change, "noise": row.noise}
            for row in (verdict.regressed if verdict else ())
        ],
        "compare": f"/compare?base={comparison.base.id}&other={stored.id}",
    }


def webhook_json(found: StoredWebhook) -> dict[str, Any]:
    """A target as JSON-ready data; its secret is not in it."""
    return {
        "id": found.id,
        "name": found.name,
        "target": found.url,
        "events": list(found.events),
        "networks": list(found.networks),
        "created_at": timestamp(found.created_at),
    }


def delivery_json(found: StoredDelivery) -> dict[str, Any]:
    """A delivery as JSON-ready data, with what came of it last."""
    return {
        "delivery": found.delivery,
        "webhook": found.webhook_id,
        "event": found.event,
        "state": found.state,
        "attempts": found.attempts,
        "last_status": found.last_status,
        "last_problem": found.last_problem,
        "last_at": timestamp(found.last_at),
        "next_at": timestamp(found.next_at) if found.state == webhooks.WAITING else None,
        "created_at": timestamp(found.created_at),
        "body": json.loads(found.body),
    }


def _not_there(number: int) -> NotFound:
    return NotFound(f"There is no webhook {number}: it was deleted, or the number is wrong.")
