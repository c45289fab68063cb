"""Whole applications, started for a test or for all tests of a file: starting one takes half a second."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient
from sqlalchemy import text

from app.main import create_app
from app.services.context import Context
from app.settings import Settings

BASE_URL = "http://127.0.0.1:8000"
RUN_TABLES = ("upload", "upload_chunk", "run", "metric_value", "run_tag", "request_samples", "sample_chunk", "sample_histogram")


def settings_in(folder: Path, **changes: Any) -> Settings:
    """Settings that read neither the environment nor a .env file, with data in `folder`."""
    return Settings(_env_file=None, data_dir=folder, **{"database_url": None, "root_path": "", "allowed_hosts": (), **changes})


@contextmanager
def served_from(folder: Path, **changes: Any) -> Iterator[TestClient]:
    """An application with these settings, started; it answers and does not raise, as for a browser."""
    with TestClient(create_app(settings_in(folder, **changes)), base_url=BASE_URL, raise_server_exceptions=False) as started:
        yield started


def context_of(client: TestClient) -> Context:
    """The context of a started application."""
    found: Context = client.app.state.context  # type: ignore[attr-defined]
    return found


def row_counts(client: TestClient) -> dict[str, int]:
    """How many rows each table that an upload writes to has."""
    with context_of(client).database.read() as session:
        return {table: session.execute(text(f"SELECT count(*) FROM {table}")).scalar_one() for table in RUN_TABLES}
