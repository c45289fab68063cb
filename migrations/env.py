"""Runs the migrations on the connection that `app.store.migrate` opened, inside its transaction."""

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlalchemy.types import TypeDecorator

from app.store.tables import metadata


def render_item(kind: str, item: Any, autogen_context: AutogenContext) -> str | Literal[False]:
    """Write a column type of ours as the plain type under it, so that old migrations never depend on new code."""
    if kind == "type" and isinstance(item, TypeDecorator):
        return f"sa.{item.impl!r}"
    return False


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    # The driver's own transactions are switched off (see app.store.database), so DDL is as atomic on SQLite as on PostgreSQL.
    transactional_ddl=True,
    compare_type=True,
    render_item=render_item,
)
with context.begin_transaction():
    context.run_migrations()
