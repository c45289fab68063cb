"""Jobs, their events, workers and their tokens, targets, schedules.

Revision 0004, after 0003.
"""

from collections.abc import Iterable

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Upgrade the schema."""
    _create_workers()
    _create_targets()
    _create_schedules()
    _create_jobs()


def downgrade() -> None:
    """Take the upgrade back."""
    for table in ("job_event", "job", "job_schedule", "target", "worker", "worker_token"):
        op.drop_table(table)


def _row_id(table: str) -> list[sa.schema.SchemaItem]:
    number = sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False)
    return [number, sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}"))]


def _texts(*names: str, nullable: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=nullable) for name in names]


def _integers(*names: str, nullable: bool = False) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.Integer(), nullable=nullable) for name in names]


def _moments(*names: str, nullable: bool = False) -> list[sa.Column[object]]:
    return [sa.Column(name, sa.DateTime(timezone=True), nullable=nullable) for name in names]


def _documents(names: Iterable[str], nullable: bool = False) -> list[sa.Column[object]]:
    return [sa.Column(name, sa.JSON(none_as_null=True), nullable=nullable) for name in names]


def _number_of(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=True)


def _refers(table: str, column: str, to: str, ondelete: str = "SET NULL") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{to}.id"], name=op.f(f"fk_{table}_{column}_{to}"), ondelete=ondelete)


def _create_workers() -> None:
    op.create_table(
        "worker_token",
        *_row_id("worker_token"),
        *_texts("name", "sha256", "shown", "origin"),
        *_moments("created_at"),
        *_moments("expires_at", "revoked_at", "used_at", nullable=True),
        sa.UniqueConstraint("sha256", name=op.f("uq_worker_token_sha256")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "worker",
        *_row_id("worker"),
        *_texts("identity_sha256", "session_sha256", "name", "version"),
        _number_of("token_id"),
        *_documents(("kinds", "devices")),
        *_moments("registered_at", "seen_at"),
        *_moments("left_at", nullable=True),
        _refers("worker", "token_id", "worker_token"),
        sa.UniqueConstraint("identity_sha256", name=op.f("uq_worker_identity_sha256")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_worker_session_sha256"), "worker", ["session_sha256"])
    op.create_index(op.f("ix_worker_token_id"), "worker", ["token_id"])


def _create_targets() -> None:
    op.create_table(
        "target",
        *_row_id("target"),
        *_texts("name", "scheme", "host", "base_path"),
        *_integers("port"),
        *_texts("metrics_path", "key_ref", nullable=True),
        *_documents(("networks",)),
        *_moments("created_at"),
        sa.UniqueConstraint("name", name=op.f("uq_target_name")),
        sqlite_autoincrement=True,
    )


def _create_schedules() -> None:
    op.create_table(
        "job_schedule",
        *_row_id("job_schedule"),
        *_texts("name", "kind"),
        *_documents(("parameters",)),
        *_texts("wanted_device", "daily_at", nullable=True),
        *_integers("priority"),
        *_integers("every_hours", nullable=True),
        sa.Column("limit_s", sa.Double(), nullable=True),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        *_moments("begun_at", "next_at"),
        *_moments("last_at", nullable=True),
        sqlite_autoincrement=True,
    )


def _create_jobs() -> None:
    op.create_table(
        "job",
        *_row_id("job"),
        *_texts("kind", "state"),
        *_texts("label", "device", "wanted_device", "last_worker", "last_device", "reason", nullable=True),
        *_documents(("parameters", "run_ids")),
        *_documents(("progress",), nullable=True),
        *_integers("priority", "attempt", "lost_workers", "interruptions"),
        sa.Column("limit_s", sa.Double(), nullable=True),
        sa.Column("cancel_requested", sa.Boolean(), nullable=False),
        sa.Column("events", sa.BigInteger(), nullable=False),
        _number_of("worker_id"),
        _number_of("schedule_id"),
        *_moments("created_at"),
        *_moments("lease_until", "not_before", "started_at", "finished_at", nullable=True),
        _refers("job", "worker_id", "worker"),
        _refers("job", "schedule_id", "job_schedule"),
        sqlite_autoincrement=True,
    )
    running = sa.text("state = 'running'")
    op.create_index("uq_job_running_device", "job", ["device"], unique=True, sqlite_where=running, postgresql_where=running)
    op.create_index(op.f("ix_job_state_priority_id"), "job", ["state", "priority", "id"])
    op.create_index(op.f("ix_job_state_lease_until"), "job", ["state", "lease_until"])
    op.create_index(op.f("ix_job_worker_id"), "job", ["worker_id"])
    op.create_index(op.f("ix_job_schedule_id"), "job", ["schedule_id"])
    op.create_table(
        "job_event",
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        *_integers("attempt"),
        *_texts("kind"),
        *_documents(("data",)),
        *_moments("at"),
        _refers("job_event", "job_id", "job", "CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "position", name=op.f("pk_job_event")),
    )
