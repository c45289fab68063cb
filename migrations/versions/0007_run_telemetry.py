"""Telemetry: what the device did while a run lasted.

Revision 0007, after 0006.
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.create_table(
        "run_telemetry",
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("series", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_run_telemetry_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_telemetry")),
    )


def downgrade() -> None:
    """Take the upgrade back."""
    op.drop_table("run_telemetry")
