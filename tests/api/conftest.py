"""Applications that the tests of one file share."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from fastapi.testclient import TestClient

from app.services.sample_runs import load_samples
from tests.applications import context_of, served_from
from tests.postgres import postgres_server

__all__ = ["postgres_server"]  # a fixture


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An application that starts empty, for all tests of a file."""
    with served_from(tmp_path_factory.mktemp("api")) as started:
        yield started


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An application with the six sample runs, for tests that only read."""
    with served_from(tmp_path_factory.mktemp("stocked")) as started:
        load_samples(context_of(started), datetime(2026, 11, 29, tzinfo=UTC))
        yield started
