"""Which statements a piece of work sends to the database."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from app.store.database import Database


@contextmanager
def noted(database: Database) -> Iterator[list[str]]:
    """A list that fills with the statements sent while the block runs, in order; beginning a transaction is none."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        if not statement.startswith(("BEGIN", "PRAGMA")):
            statements.append(statement)

    event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(database.engine, "before_cursor_execute", note)
