"""Sending what is in the outbox: claimed, signed, sent once, and what came of it noted; again later where it was not taken."""

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from app.domain.addresses import Destination, parse_destination
from app.domain.webhooks import retry_after_s, signature
from app.security.outbound import Answer, post
from app.services.context import Context
from app.services.rounds import in_rounds
from app.services.secret_key import derived_secret, key_mark, secret_key
from app.services.webhooks import PURPOSE, judge_new
from app.store import webhooks
from app.store.webhooks import DELIVERED, FAILED, WAITING, StoredDelivery, StoredWebhook

Send = Callable[[Destination, dict[str, str], bytes], Answer]

# Longer than any attempt takes: until then nobody else tries the same delivery.
LEASE = timedelta(seconds=120)
KEPT = timedelta(days=30)
_EVERY_S = 5.0
_IN_ONE_ROUND = 20
_TAKEN = range(200, 300)

log = structlog.get_logger()


def deliver_due(context: Context, now: datetime, send: Send = post) -> int:
    """Try every delivery that is due, some at most; how many were tried. What a crash left between claim and outcome is tried again."""
    judge_new(context, None, now)
    for tried in range(_IN_ONE_ROUND):
        with context.database.read() as session:
            # A reader waits for nobody: the usual answer, that nothing is due, costs no lock.
            if not webhooks.is_due(session, now):
                return tried
        with context.database.write() as session:
            claimed = webhooks.claim(session, now, LEASE)
            target = None if claimed is None else webhooks.get(session, claimed.webhook_id)
        if claimed is None or target is None:
            return tried
        answer = _attempt(context, claimed, target, now, send)
        _note(context, claimed, answer, now)
    return _IN_ONE_ROUND


def _attempt(context: Context, claimed: StoredDelivery, target: StoredWebhook, now: datetime, send: Send) -> Answer:
    key = secret_key(context.settings)
    if key_mark(key) != target.key_mark:
        return Answer(None, "not sent: the key of this installation is another one than the secret was made with; register the target anew")
    body, moment = claimed.body.encode(), int(now.timestamp())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Phaseline",
        "X-Phaseline-Event": claimed.event,
        "X-Phaseline-Delivery": claimed.delivery,
        "X-Phaseline-Signature": signature(derived_secret(key, PURPOSE, target.salt), moment, body),
    }
    return send(parse_destination(target.url, target.networks), headers, body)


def _note(context: Context, claimed: StoredDelivery, answer: Answer, now: datetime) -> None:
    taken = answer.status in _TAKEN
    problem = answer.problem or (None if taken else _refused(answer.status))
    wait = retry_after_s(claimed.attempts)
    state = DELIVERED if taken else FAILED if wait is None else WAITING
    with context.database.write() as session:
        webhooks.finish(session, claimed, state, now + timedelta(seconds=wait or 0.0), answer.status, problem)
        webhooks.forget_before(session, now - KEPT)


def _refused(status: int | None) -> str:
    if status is not None and 300 <= status < 400:
        return f"answered {status}: redirects are not followed, register the address itself"
    return f"answered {status}"


async def deliver_forever(context: Context) -> None:
    """A round every few seconds until cancelled."""
    await in_rounds(lambda: deliver_due(context, context.clock.now()), _EVERY_S, "webhooks could not be sent and are tried again")
