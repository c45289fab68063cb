"""The first tables: profiles, uploads, runs, metric values, samples.

Revision 0001, after an empty database.
"""

from collections.abc import Iterable

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: None = None
depends_on: None = None

PROFILES = ("hardware_profile", "model_profile", "engine_profile")
RUN_TEXTS = (
    "label", "engine", "engine_version", "model", "model_slug", "hardware", "hardware_slug", "weight_dtype", "kv_dtype",
    "load_mode", "measured_at", "token_count_source", "dataset",
)  # fmt: skip
RUN_INTEGERS = (
    "devices", "tp", "pp", "ep", "prompt_tokens_total", "output_tokens_total", "concurrency",
    "requests_sent", "requests_completed", "requests_failed",
)  # fmt: skip
RUN_DOUBLES = (
    "duration_s", "prompt_tokens_mean", "output_tokens_mean", "request_rate_per_s", "ttft_p50_s", "ttft_mean_s", "prefill_mean_s",
    "itl_mean_s", "tpot_mean_s", "e2e_mean_s", "output_tokens_per_s", "mbu", "mfu", "prefill_share",
)  # fmt: skip


def upgrade() -> None:
    """Upgrade the schema."""
    for table in PROFILES:
        _create_profiles(table)
    _create_uploads()
    _create_runs()
    _create_tags_and_metrics()
    _create_samples()


def downgrade() -> None:
    """Take the upgrade back."""
    for table in ("sample_histogram", "sample_chunk", "request_samples", "metric_value", "run_tag", "run", "upload_chunk", "upload"):
        op.drop_table(table)
    for table in PROFILES:
        op.drop_table(table)


def _row_id() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False)


def _texts(names: Iterable[str], nullable: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=nullable) for name in names]


def _moments(*names: str) -> list[sa.Column[object]]:
    return [sa.Column(name, sa.DateTime(timezone=True), nullable=False) for name in names]


def _documents(*names: str) -> list[sa.Column[object]]:
    return [sa.Column(name, sa.JSON(none_as_null=True), nullable=False) for name in names]


def _belongs_to(table: str, column: str, owner: str, key: str = "id") -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{owner}.{key}"], name=op.f(f"fk_{table}_{column}_{owner}"), ondelete="CASCADE")


def _primary_key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=op.f(f"pk_{table}"))


def _index(table: str, *columns: str) -> None:
    op.create_index(op.f(f"ix_{table}_{'_'.join(columns)}"), table, list(columns))


def _create_profiles(table: str) -> None:
    op.create_table(
        table,
        _row_id(),
        *_texts(("slug", "name", "origin", "notes")),
        *_documents("aliases", "data"),
        sa.Column("source", sa.JSON(none_as_null=True), nullable=True),
        *_moments("created_at", "updated_at"),
        _primary_key(table, "id"),
        sa.UniqueConstraint("slug", name=op.f(f"uq_{table}_slug")),
    )


def _create_uploads() -> None:
    op.create_table(
        "upload",
        _row_id(),
        *_texts(("project", "sha256", "name", "format")),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("chunk_count", sa.Integer(), nullable=False),
        *_moments("received_at"),
        _primary_key("upload", "id"),
        sa.UniqueConstraint("project", "sha256", name=op.f("uq_upload_project_sha256")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "upload_chunk",
        sa.Column("upload_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        _belongs_to("upload_chunk", "upload_id", "upload"),
        _primary_key("upload_chunk", "upload_id", "position"),
    )


def _create_runs() -> None:
    op.create_table(
        "run",
        _row_id(),
        sa.Column("upload_id", sa.BigInteger(), nullable=False),
        sa.Column("seq_in_file", sa.Integer(), nullable=False),
        *_texts(("project", "format", "notes", "search")),
        *_texts(RUN_TEXTS, nullable=True),
        sa.Column("importer_version", sa.BigInteger(), nullable=False),
        sa.Column("context_depth_tokens", sa.BigInteger(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=True) for name in RUN_INTEGERS),
        *(sa.Column(name, sa.Double(), nullable=True) for name in RUN_DOUBLES),
        sa.Column("rate_unlimited", sa.Boolean(), nullable=False),
        *_documents("flags", "labels", "warnings"),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        *_moments("happened_at", "created_at", "updated_at"),
        _belongs_to("run", "upload_id", "upload"),
        _primary_key("run", "id"),
        sqlite_autoincrement=True,
    )
    _index("run", "upload_id")
    _index("run", "happened_at")
    _index("run", "project", "happened_at")
    _index("run", "project", "model_slug", "model")
    _index("run", "project", "hardware_slug", "hardware")
    _index("run", "project", "engine", "format")


def _create_tags_and_metrics() -> None:
    op.create_table(
        "run_tag",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        *_texts(("tag", "project")),
        _belongs_to("run_tag", "run_id", "run"),
        _primary_key("run_tag", "run_id", "tag"),
    )
    _index("run_tag", "tag")
    _index("run_tag", "project", "tag")
    op.create_table(
        "metric_value",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        *_texts(("key", "stat", "origin", "definition")),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=True),
        sa.Column("n", sa.BigInteger(), nullable=True),
        _belongs_to("metric_value", "run_id", "run"),
        _primary_key("metric_value", "run_id", "key", "stat"),
    )


def _create_samples() -> None:
    op.create_table(
        "request_samples",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("gap_count", sa.BigInteger(), nullable=False),
        sa.Column("errors", sa.LargeBinary(), nullable=False),
        _belongs_to("request_samples", "run_id", "run"),
        _primary_key("request_samples", "run_id"),
    )
    op.create_table(
        "sample_chunk",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        _belongs_to("sample_chunk", "run_id", "request_samples", "run_id"),
        _primary_key("sample_chunk", "run_id", "name", "position"),
    )
    op.create_table(
        "sample_histogram",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        _belongs_to("sample_histogram", "run_id", "request_samples", "run_id"),
        _primary_key("sample_histogram", "run_id", "key"),
    )
