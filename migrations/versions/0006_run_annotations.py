"""Annotations: what a person says happened when a run was measured.

Revision 0006, after 0005.
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "run_annotation",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_run_annotation_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run_annotation")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_run_annotation_run_id"), "run_annotation", ["run_id"])


def downgrade() -> None:
    """Take the upgrade back."""
    op.drop_table("run_annotation")
