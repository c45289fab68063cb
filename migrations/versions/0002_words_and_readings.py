"""What the file says and what a person says are kept apart; runs that are read again from their files remember it.

Revision 0002, after 0001.
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: None = None
depends_on: None = None

RUN_INTEGERS = ("dp", "gone_since")
RUN_DOCUMENTS = ("said_by_file", "said_by_person")


def upgrade() -> None:
    """Upgrade the schema."""
    for name in RUN_INTEGERS:
        op.add_column("run", sa.Column(name, sa.BigInteger(), nullable=True))
    for name in RUN_DOCUMENTS:
        op.add_column("run", sa.Column(name, sa.JSON(none_as_null=True), nullable=True))
    op.add_column("upload", sa.Column("deleted_runs", sa.JSON(none_as_null=True), nullable=True))
    op.create_table(
        "run_reading",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("from_version", sa.BigInteger(), nullable=False),
        sa.Column("to_version", sa.BigInteger(), nullable=False),
        sa.Column("changes", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_run_reading_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_reading")),
    )
    op.create_index(op.f("ix_run_reading_run_id"), "run_reading", ["run_id"])


def downgrade() -> None:
    """Take the upgrade back."""
    op.drop_table("run_reading")
    op.drop_column("upload", "deleted_runs")
    for name in (*RUN_DOCUMENTS, *RUN_INTEGERS):
        op.drop_column("run", name)
