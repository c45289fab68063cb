"""${message}

Revision ${up_revision}, after ${down_revision or 'an empty database'}.
"""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision: str = ${repr(up_revision)}
down_revision: str | None = ${repr(down_revision)}
branch_labels: None = ${repr(branch_labels)}
depends_on: None = ${repr(depends_on)}


def upgrade() -> None:
    """Upgrade the schema."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Take the upgrade back."""
    ${downgrades if downgrades else "pass"}
