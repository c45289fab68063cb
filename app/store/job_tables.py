"""Jobs, the workers that run them, and what belongs to both. Times are UTC by the server's clock; states are plain strings."""

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Index, UniqueConstraint, text
from sqlmodel import Field

from app.store.table_base import ROW_ID, Table
from app.store.types import CleanText, FiniteDouble, FiniteJson, Name

_RUNS = text("state = 'running'")


class JobRow(Table, table=True):
    """One measurement job. `attempt` fences everything a worker reports; `lease_until` is when its worker counts as lost.

    `wanted_device` is the device it asks for, `device` the one that runs it, `last_device` and `last_worker` those that did.
    `run_ids` are the runs its result became, `progress` the last that was reported, `events` how many events there are.
    """

    __tablename__ = "job"
    # One running job per device, whoever claims: the database says so. Ids are never used again.
    __table_args__ = (
        Index(
            "uq_job_running_device",
            "device",
            unique=True,
            sqlite_where=text("state = 'running'"),
            postgresql_where=text("state = 'running'"),
        ),
        Index(None, "state", "priority", "id"),
        Index(None, "state", "lease_until"),
        {"sqlite_autoincrement": True},
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    kind: str = Field(sa_type=Name)
    label: str | None = Field(default=None, sa_type=CleanText)
    parameters: dict[str, Any] = Field(sa_type=FiniteJson)
    priority: int
    limit_s: float | None = Field(default=None, sa_type=FiniteDouble)
    state: str = Field(sa_type=Name)
    attempt: int
    lost_workers: int
    interruptions: int
    cancel_requested: bool
    worker_id: int | None = Field(default=None, sa_type=BigInteger, foreign_key="worker.id", ondelete="SET NULL", index=True)
    device: str | None = Field(default=None, sa_type=Name)
    wanted_device: str | None = Field(default=None, sa_type=Name)
    last_worker: str | None = Field(default=None, sa_type=CleanText)
    last_device: str | None = Field(default=None, sa_type=Name)
    lease_until: datetime | None = None
    not_before: datetime | None = None
    reason: str | None = Field(default=None, sa_type=CleanText)
    progress: dict[str, Any] | None = Field(default=None, sa_type=FiniteJson)
    run_ids: list[int] = Field(default_factory=list, sa_type=FiniteJson)
    events: int = Field(default=0, sa_type=BigInteger)
    schedule_id: int | None = Field(default=None, sa_type=BigInteger, foreign_key="job_schedule.id", ondelete="SET NULL", index=True)
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None


class JobEventRow(Table, table=True):
    """What happened to a job, in order: `kind` is state, progress, point or log; `position` counts from 1 within the job."""

    __tablename__ = "job_event"

    job_id: int = Field(primary_key=True, sa_type=BigInteger, foreign_key="job.id", ondelete="CASCADE")
    position: int = Field(primary_key=True, sa_type=BigInteger)
    attempt: int
    kind: str = Field(sa_type=Name)
    data: dict[str, Any] = Field(sa_type=FiniteJson)
    at: datetime


class WorkerTokenRow(Table, table=True):
    """What a worker of another machine shows. The token itself is not kept, only its sha256; `shown` are its first characters.

    `origin` is `user`, or `server` for the one that a server makes for the worker beside it.
    """

    __tablename__ = "worker_token"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    name: str = Field(sa_type=CleanText)
    sha256: str = Field(sa_type=Name, unique=True)
    shown: str = Field(sa_type=Name)
    origin: str = Field(sa_type=Name)
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None


class WorkerRow(Table, table=True):
    """A worker by its identity, which it keeps over restarts; `session_sha256` names the one process of it that may report now."""

    __tablename__ = "worker"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    identity_sha256: str = Field(sa_type=Name, unique=True)
    session_sha256: str = Field(sa_type=Name, index=True)
    token_id: int | None = Field(default=None, sa_type=BigInteger, foreign_key="worker_token.id", ondelete="SET NULL", index=True)
    name: str = Field(sa_type=CleanText)
    version: str = Field(sa_type=CleanText)
    kinds: list[str] = Field(sa_type=FiniteJson)
    devices: list[dict[str, Any]] = Field(sa_type=FiniteJson)
    registered_at: datetime
    seen_at: datetime
    left_at: datetime | None = None


class TargetRow(Table, table=True):
    """A server that endpoint jobs may call. The key is not here: `key_ref` names it to the worker, which keeps it."""

    __tablename__ = "target"
    __table_args__ = (UniqueConstraint("name"), {"sqlite_autoincrement": True})

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    name: str = Field(sa_type=Name)
    scheme: str = Field(sa_type=Name)
    host: str = Field(sa_type=CleanText)
    port: int
    base_path: str = Field(sa_type=CleanText)
    metrics_path: str | None = Field(default=None, sa_type=CleanText)
    networks: list[str] = Field(sa_type=FiniteJson)
    key_ref: str | None = Field(default=None, sa_type=Name)
    created_at: datetime


class JobScheduleRow(Table, table=True):
    """A job that comes back: every so many hours, or each day at a time of UTC. `next_at` is when it is due."""

    __tablename__ = "job_schedule"
    __table_args__ = ({"sqlite_autoincrement": True},)

    id: int | None = Field(default=None, primary_key=True, sa_type=ROW_ID)
    name: str = Field(sa_type=CleanText)
    kind: str = Field(sa_type=Name)
    parameters: dict[str, Any] = Field(sa_type=FiniteJson)
    wanted_device: str | None = Field(default=None, sa_type=Name)
    priority: int
    limit_s: float | None = Field(default=None, sa_type=FiniteDouble)
    every_hours: int | None = None
    daily_at: str | None = Field(default=None, sa_type=Name)
    enabled: bool
    begun_at: datetime
    next_at: datetime
    last_at: datetime | None = None
