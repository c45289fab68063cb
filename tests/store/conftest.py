"""A database for each test, on SQLite and on a private PostgreSQL server that lives as long as the test session."""

import io
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from app.domain.run import Distribution, Flag, Rate, RequestCounts, RequestSamples, Run, Workload
from app.store import uploads
from app.store.database import Database
from app.store.migrate import upgrade
from app.store.records import DEFAULT_PROJECT, NewRun, NewUpload, SavedUpload
from tests.postgres import TEMPLATE, Server, own_database, postgres_server, postgres_template

__all__ = ["postgres_server", "postgres_template"]  # fixtures

# A shared machine is slow now and then, which says nothing about an example.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An upgraded SQLite file to copy."""
    database = Database(f"sqlite:///{tmp_path_factory.mktemp('template') / 'migrated.db'}")
    upgrade(database)
    database.close()
    assert database.path is not None
    return database.path


BOTH = [pytest.param("sqlite"), pytest.param("postgresql", marks=pytest.mark.postgres)]


def _database(request: pytest.FixtureRequest, folder: Path) -> Iterator[Database]:
    """An upgraded, empty database of the kind the fixture's parameter says."""
    if request.param == "sqlite":
        path = folder / "phaseline.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        made = Database(f"sqlite:///{path}")
        yield made
        made.close()
        return
    yield from _postgres_database(request.getfixturevalue("postgres_template"), f"TEMPLATE {TEMPLATE}")


@pytest.fixture(params=BOTH)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """An upgraded, empty database: the test runs once on each kind."""
    yield from _database(request, tmp_path)


@pytest.fixture(params=BOTH, scope="module")
def module_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """One for all tests of a file that only read what its fixture stored."""
    yield from _database(request, tmp_path_factory.mktemp("module"))


@pytest.fixture(params=BOTH, scope="module")
def another_module_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A second one, for other contents."""
    yield from _database(request, tmp_path_factory.mktemp("module"))


@pytest.fixture(params=BOTH)
def bare_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without any table: the test runs once on each kind."""
    if request.param == "sqlite":
        made = Database(f"sqlite:///{tmp_path / 'phaseline.db'}")
        yield made
        made.close()
        return
    yield from _postgres_database(request.getfixturevalue("postgres_server"), "")


@pytest.fixture
def sqlite_database(tmp_path: Path, sqlite_template: Path) -> Iterator[Database]:
    """An upgraded, empty SQLite database."""
    path = tmp_path / "phaseline.db"
    shutil.copy(sqlite_template, path)
    made = Database(f"sqlite:///{path}")
    yield made
    made.close()


def _postgres_database(server: Server, how: str) -> Iterator[Database]:
    with own_database(server, how) as url:
        made = Database(url)
        yield made
        made.close()


@pytest.fixture
def a_run() -> NewRun:
    """A run with something in every kind of field."""
    run = Run(
        format="vllm_bench_serve",
        engine="vllm",
        engine_version="0.9.1",
        model="meta-llama/Llama-3.1-8B-Instruct",
        hardware="NVIDIA H100 80GB HBM3",
        devices=2,
        tp=2,
        weight_dtype="bf16",
        started_at=datetime(2026, 4, 30, 8, 30, tzinfo=UTC),
        duration_s=61.25,
        load_mode="closed",
        measured_at="client",
        token_count_source="server",
        label="nightly",
        workload=Workload(2000.0, 300.0, 2_000_000, 300_000, 32, None, rate_unlimited=True, dataset="random", shortest_length=0.25),
        requests=RequestCounts(sent=1000, completed=999, failed=1),
        metrics={
            "ttft_s": Distribution(mean=0.095, p50=0.094, p99=0.12, n=999, origin="samples"),
            "tpot_s": Distribution(mean=0.0071, definition="per chunk"),
            "output_tokens_per_s": Rate(4211.0, "aggregate"),
        },
        flags=(Flag("cold_start_outliers", "the first request took 3 s", ("ttft_s.mean",)),),
        labels={"commit": "abc123"},
        warnings=("the file says two durations",),
    )
    return NewRun(run, "llama-3-1-8b", "h100-sxm5-80gb", tags=("nightly", "h100"), notes="as usual", mbu=0.68, mfu=0.41, prefill_share=0.05)


Store = Callable[..., SavedUpload]


@pytest.fixture
def store_file(database: Database) -> Store:
    """Store runs as one file; the content defaults to something no other file of the test has."""
    return storing(database)


@pytest.fixture(scope="session")
def storing_in() -> Callable[[Database], Store]:
    """What makes such a function for any database."""
    return storing


def storing(database: Database) -> Store:
    """A function that stores runs as one file of the given database."""
    made = iter(range(10**6))

    def store(
        runs: Sequence[NewRun],
        content: bytes | None = None,
        *,
        name: str = "result.json",
        project: str = DEFAULT_PROJECT,
        received_at: datetime = NOON,
    ) -> SavedUpload:
        unique = f"file {next(made)}".encode() if content is None else content
        return uploads.store(database, NewUpload(name, "vllm_bench_serve", received_at, project), io.BytesIO(unique), runs)

    return store


@pytest.fixture
def samples() -> RequestSamples:
    """Four requests: three that succeeded, one of them with a single token, and one that failed."""
    nan = np.nan
    return RequestSamples(
        ok=np.array([True, True, False, True]),
        prompt_tokens=np.array([100.0, 200.0, 300.0, 400.0]),
        output_tokens=np.array([11.0, 21.0, 0.0, 1.0]),
        ttft_s=np.array([0.1, 0.2, nan, 0.4]),
        e2e_s=np.array([1.1, 2.2, nan, 0.4]),
        start_s=np.array([0.0, 0.5, 1.0, 1.5]),
        queue_s=None,
        chunk_gaps_s=np.array([0.01, 0.02, 9.0, 0.03]),
        chunk_gap_counts=np.array([2, 0, 1, 1]),
        errors=("", "", "timeout", ""),
    )


@pytest.fixture
def sampled_run(a_run: NewRun, samples: RequestSamples) -> NewRun:
    """The run with those requests."""
    return replace(a_run, run=replace(a_run.run, samples=samples))
