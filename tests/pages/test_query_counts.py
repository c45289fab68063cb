"""A page asks the database the same number of questions however many runs are stored."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from fastapi.testclient import TestClient

from app import main
from app.main import create_app
from app.services.context import Context
from benchmarks.queries import noted
from benchmarks.seed import fill
from benchmarks.server import settings_in

FEW, MANY = 10, 200
ADDRESSES = (
    "/",
    "/?prompt_tokens=500",
    "/predict",
    "/runs",
    "/runs?sort=-mbu",
    "/runs?q=sweep&tag=nightly&hardware=h100-sxm5-80gb",
    "/runs/1",
    "/runs/outdated",
    "/runs/1/edit",
    "/runs/1/reimport",
    "/compare",
    "/compare?base=1&other=2&other=3",
    "/api/v1/runs?limit=200",
    "/api/v1/runs/1",
    "/api/v1/compare?base=1&other=2",
    "/webhooks",
)


async def asleep(_: Context) -> None:
    """In place of what the server does by itself, whose statements belong to no page."""
    await asyncio.Event().wait()


@pytest.fixture(scope="module")
def browsers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[int, TestClient]]:
    """The application with few and with many runs; the first file's keep their samples."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        for task in ("keep_house_forever", "deliver_forever"):
            patch.setattr(main, task, asleep)
        made = {}
        for runs in (FEW, MANY):
            app = create_app(settings_in(tmp_path_factory.mktemp(f"{runs}-runs")))
            made[runs] = stack.enter_context(TestClient(app, base_url="http://127.0.0.1:8000"))
            assert len(fill(app.state.context, runs, sampled=1)) == runs
        yield made


@pytest.mark.parametrize("address", ADDRESSES)
def test_queries_do_not_grow_with_the_number_of_runs(browsers: dict[int, TestClient], address: str) -> None:
    counts = {}
    for runs, browser in browsers.items():
        with noted(browser.app.state.context.database) as statements:  # type: ignore[attr-defined]
            answer = browser.get(address)
        assert answer.status_code == 200, answer.text[:300]
        counts[runs] = len(statements)
    assert counts[FEW] == counts[MANY], f"{address} sends more statements the more runs there are"
    assert counts[FEW] > 0
