"""Alembic's part of a migration: it runs the scripts in a connection that `migrate` opened, and writes the start of a new one.

A module of its own because alembic takes a twentieth of the time to a served page, and only a database that is to change needs it.
"""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def run_to_head(scripts: Path, connection: Connection) -> None:
    """Every migration that the database has not had yet."""
    command.upgrade(_config(scripts, connection), "head")


def run_back(scripts: Path, connection: Connection, revision: str) -> None:
    """Back to an earlier revision, or to `base`."""
    command.downgrade(_config(scripts, connection), revision)


def write_script(scripts: Path, connection: Connection, message: str, revision: str) -> None:
    """A new migration from what differs between the tables and the database."""
    command.revision(_config(scripts, connection), message, autogenerate=True, rev_id=revision)


def _config(scripts: Path, connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    # The value goes through a parser that reads % as the start of a name.
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
