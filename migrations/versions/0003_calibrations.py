"""Calibrations: scalars fitted to stored runs.

Revision 0003, after 0002.
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "calibration",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("hardware_slug", sa.Text(), nullable=False),
        sa.Column("engine_slug", sa.Text(), nullable=True),
        sa.Column("weight_dtype", sa.Text(), nullable=False),
        sa.Column("model_version", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_calibration")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_calibration_hardware_slug"), "calibration", ["hardware_slug"])


def downgrade() -> None:
    """Take the upgrade back."""
    op.drop_table("calibration")
