"""Webhooks: the registered targets, the outbox of what is to be sent to them, and the runs that are still to be judged."""

from datetime import datetime

from sqlalchemy import BigInteger, Index
from sqlmodel import Field

from app.store.table_base import ROW_ID, Table
from app.store.types import CleanText, FiniteJson, Name


class WebhookRow(Table, table=True):
    """One registered target. Its secret is nowhere: it follows from the installation's key and `salt`; `key_mark` tells that key."""

    __tablename__ = "webhook"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    name: str = Field(sa_type=Name)
    url: str = Field(sa_type=CleanText)
    networks: list[str] = Field(default_factory=list, sa_type=FiniteJson)
    events: list[str] = Field(default_factory=list, sa_type=FiniteJson)
    salt: str = Field(sa_type=Name)
    key_mark: str = Field(sa_type=Name)
    created_at: datetime


class WebhookDeliveryRow(Table, table=True):
    """One event for one target, from the moment it happened: what is sent, how often that was tried, and what came of it last.

    `state` is waiting, delivered or failed. `next_at` is when it is tried again; while somebody tries it, when that counts as lost.
    """

    __tablename__ = "webhook_delivery"
    __table_args__ = (Index(None, "state", "next_at"), {"sqlite_autoincrement": True})

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    webhook_id: int = Field(sa_type=BigInteger, foreign_key="webhook.id", ondelete="CASCADE", index=True)
    delivery: str = Field(sa_type=Name, unique=True)
    event: str = Field(sa_type=Name)
    body: str = Field(sa_type=CleanText)
    state: str = Field(sa_type=Name)
    attempts: int = 0
    next_at: datetime
    last_at: datetime | None = None
    last_status: int | None = None
    last_problem: str | None = Field(default=None, sa_type=CleanText)
    created_at: datetime


class RunToJudgeRow(Table, table=True):
    """A new run that was not set against its baseline yet; written with the run and gone when that is done."""

    __tablename__ = "run_to_judge"

    run_id: int = Field(primary_key=True, sa_type=BigInteger, foreign_key="run.id", ondelete="CASCADE")
