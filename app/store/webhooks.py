"""Registered targets and the outbox: what is to be sent is stored first, so that a restart sends it again rather than never."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import delete, select, update
from sqlmodel import Session, col

from app.store.types import is_id
from app.store.webhook_tables import RunToJudgeRow, WebhookDeliveryRow, WebhookRow

WAITING, DELIVERED, FAILED = "waiting", "delivered", "failed"


@dataclass(frozen=True)
class StoredWebhook:
    """One registered target; the secret follows from `salt`."""

    id: int
    name: str
    url: str
    networks: tuple[str, ...]
    events: tuple[str, ...]
    salt: str
    key_mark: str
    created_at: datetime


@dataclass(frozen=True)
class StoredDelivery:
    """One event for one target, with what came of it last."""

    id: int
    webhook_id: int
    delivery: str
    event: str
    body: str
    state: str
    attempts: int
    next_at: datetime
    last_at: datetime | None
    last_status: int | None
    last_problem: str | None
    created_at: datetime


def every(session: Session) -> list[StoredWebhook]:
    """All targets, the one registered last first."""
    return [_webhook(row) for row in session.scalars(select(WebhookRow).order_by(col(WebhookRow.id).desc()))]


def get(session: Session, number: int) -> StoredWebhook | None:
    """The target of this number, or None."""
    row = session.get(WebhookRow, number) if is_id(number) else None
    return None if row is None else _webhook(row)


def add(session: Session, row: WebhookRow) -> StoredWebhook:
    """Register a target; its number is never used again."""
    session.add(row)
    session.flush()
    return _webhook(row)


def remove(session: Session, number: int) -> bool:
    """Delete a target with its deliveries; whether there was one."""
    if not is_id(number):
        return False
    return session.scalar(delete(WebhookRow).where(col(WebhookRow.id) == number).returning(col(WebhookRow.id))) is not None


def enqueue(session: Session, webhook_id: int, delivery: str, event: str, body: str, now: datetime) -> None:
    """Put an event into the outbox, in the session's transaction."""
    row = WebhookDeliveryRow(webhook_id=webhook_id, delivery=delivery, event=event, body=body, state=WAITING, next_at=now, created_at=now)
    session.add(row)
    session.flush()


def is_due(session: Session, now: datetime) -> bool:
    """Whether anything waits whose time has come."""
    row = WebhookDeliveryRow
    return session.scalar(select(col(row.id)).where(col(row.state) == WAITING, col(row.next_at) <= now).limit(1)) is not None


def claim(session: Session, now: datetime, lease: timedelta) -> StoredDelivery | None:
    """The next delivery that is due, counted as tried and kept from others until the lease ends; None when none is due."""
    due = (
        select(col(WebhookDeliveryRow.id))
        .where(col(WebhookDeliveryRow.state) == WAITING, col(WebhookDeliveryRow.next_at) <= now)
        .order_by(col(WebhookDeliveryRow.next_at), col(WebhookDeliveryRow.id))
        .limit(1)
        .with_for_update(skip_locked=True)
    )
    number = session.scalar(due)
    row = None if number is None else session.get(WebhookDeliveryRow, number)
    if row is None:
        return None
    row.attempts += 1
    row.last_at = now
    row.next_at = now + lease
    session.add(row)
    session.flush()
    return _delivery(row)


def finish(session: Session, claimed: StoredDelivery, state: str, next_at: datetime, status: int | None, problem: str | None) -> bool:
    """Note what came of an attempt; False when somebody else has tried again meanwhile, whose outcome counts."""
    row = WebhookDeliveryRow
    statement = (
        update(row)
        .where(col(row.id) == claimed.id, col(row.attempts) == claimed.attempts, col(row.state) == WAITING)
        .values(state=state, next_at=next_at, last_status=status, last_problem=problem)
        .returning(col(row.id))
    )
    return session.scalar(statement) is not None


def deliveries(session: Session, webhook_id: int | None, limit: int) -> list[StoredDelivery]:
    """The deliveries of a target (of all), newest first."""
    statement = select(WebhookDeliveryRow).order_by(col(WebhookDeliveryRow.id).desc()).limit(limit)
    if webhook_id is not None:
        statement = statement.where(col(WebhookDeliveryRow.webhook_id) == webhook_id)
    return [_delivery(row) for row in session.scalars(statement)]


def forget_before(session: Session, moment: datetime) -> None:
    """Delete what was settled before this moment: the outbox is no archive."""
    row = WebhookDeliveryRow
    session.execute(delete(row).where(col(row.state) != WAITING, col(row.created_at) < moment))


def to_judge(session: Session, limit: int) -> tuple[int, ...]:
    """Runs that were not set against their baselines yet, oldest first."""
    return tuple(session.scalars(select(col(RunToJudgeRow.run_id)).order_by(col(RunToJudgeRow.run_id)).limit(limit)))


def take_to_judge(session: Session, run_ids: Sequence[int]) -> tuple[int, ...]:
    """Take these runs from the list in the session's transaction; those that somebody else took are left out."""
    taken = delete(RunToJudgeRow).where(col(RunToJudgeRow.run_id).in_(run_ids)).returning(col(RunToJudgeRow.run_id))
    return tuple(sorted(session.scalars(taken)))


def _webhook(row: WebhookRow) -> StoredWebhook:
    if row.id is None:
        raise ValueError("a webhook without a number")
    return StoredWebhook(row.id, row.name, row.url, tuple(row.networks), tuple(row.events), row.salt, row.key_mark, row.created_at)


def _delivery(row: WebhookDeliveryRow) -> StoredDelivery:
    if row.id is None:
        raise ValueError("a delivery without a number")
    names = [name for name in StoredDelivery.__dataclass_fields__ if name != "id"]
    return StoredDelivery(id=row.id, **{name: getattr(row, name) for name in names})
