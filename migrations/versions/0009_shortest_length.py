"""How far the lengths of a run's answers lie apart.

Revision 0009, after 0008.
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    """Upgrade the schema."""
    op.add_column("run", sa.Column("shortest_length", sa.Double(), nullable=True))


def downgrade() -> None:
    """Take the upgrade back."""
    op.drop_column("run", "shortest_length")
