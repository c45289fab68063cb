"""Fixtures every test may use. Tests never touch a user's DATA_DIR: settings here read neither the environment nor a .env file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.services.context import Context
from app.settings import Settings
from tests.chromium import chromium as chromium
from tests.own_loops import pytest_runtest_call as pytest_runtest_call
from tests.own_loops import pytest_runtest_setup as pytest_runtest_setup
from tests.own_loops import pytest_runtest_teardown as pytest_runtest_teardown

WORKER_SETTINGS = ("SERVER", "WORKER_TOKEN", "WORKER_TOKEN_FILE", "WORKER_NAME", "WORKER_DIR", "SHARE_WORKER_TOKEN", "LEASE_S")
SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture
def shared_dir() -> Path:
    """The folder of real files beside the checkout; the test is skipped where it is absent."""
    if not SHARED.is_dir():
        pytest.skip("../shared is absent: this test reads real files that are never copied into the project")
    return SHARED


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No PHASELINE_ setting of the user reaches a test, and a command that a test runs keeps its data in the test's own folder."""
    monkeypatch.setenv("PHASELINE_DATA_DIR", str(tmp_path / "data"))
    for name in (
        "DATABASE_URL",
        "DATABASE_URL_FILE",
        "HOST",
        "PORT",
        "ROOT_PATH",
        "OPEN",
        "ALLOWED_HOSTS",
        "MAX_UPLOAD_BYTES",
        *WORKER_SETTINGS,
    ):
        monkeypatch.delenv(f"PHASELINE_{name}", raising=False)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with a folder of their own."""
    return Settings(_env_file=None, data_dir=tmp_path / "data")


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    """The whole application on SQLite, started; it answers and does not raise, as for a browser."""
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as started:
        yield started


@pytest.fixture
def context(client: TestClient) -> Context:
    """The context of that application."""
    found: Context = client.app.state.context  # type: ignore[attr-defined]
    return found
