"""Damaged files through the service that stores: each is stored whole, with every run shown again, or leaves nothing of itself."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from fastapi.testclient import TestClient

from app.services import runs
from app.services.storing import store_files
from tests.applications import RUN_TABLES, context_of, row_counts, served_from
from tests.formats.damage import FORMATS, damaged

FEW, MANY = 12, 1_500
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """One application for the file: starting one takes half a second."""
    with served_from(tmp_path_factory.mktemp("damage") / "data") as started:
        yield started


@pytest.mark.parametrize("format_id", FORMATS)
def test_damaged_files_are_stored_whole_or_not_at_all(application: TestClient, format_id: str) -> None:
    store_all(application, format_id, range(FEW))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("format_id", FORMATS)
def test_many_damaged_files_are_stored_whole_or_not_at_all(application: TestClient, format_id: str) -> None:
    store_all(application, format_id, range(FEW, MANY))


def store_all(application: TestClient, format_id: str, numbers: range) -> None:
    counts = row_counts(application)
    for number in numbers:
        counts = store(application, damaged(format_id, number), counts)


def store(application: TestClient, data: bytes, before: dict[str, int]) -> dict[str, int]:
    """Store one file and look what became of it; the rows of each table afterwards."""
    context = context_of(application)
    outcome = store_files(context, [("damaged", data)], {}, NOW)
    after = row_counts(application)
    assert bool(outcome.run_ids) != bool(outcome.refused)
    if not outcome.created:
        assert after == before
        return after
    assert after["upload"] == before["upload"] + 1
    assert after["run"] == before["run"] + len(outcome.run_ids)
    assert all(after[table] >= before[table] for table in RUN_TABLES)
    for view in runs.views(context, outcome.run_ids):
        assert json.loads(json.dumps(view.summary(), allow_nan=False))["id"] == view.id
    return after
