"""A real server, one per worker, and windows that remember everything their pages complained about."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.window import Site, Window
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
READY_WITHIN_S = 30
# A page answers in a tenth of a second; what takes this long on a busy machine is broken.
TIMEOUT_MS = 15_000
expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory, chromium: Browser) -> Iterator[Site]:
    """`phaseline serve` as a process of its own, on a free port, with data of its own; none of the user's settings reach it."""
    port = free_port()
    folder = tmp_path_factory.mktemp("served")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PHASELINE_")}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "app", "serve", "--port", str(port)],
            cwd=ROOT,
            env={
                **environment,
                "PHASELINE_DATA_DIR": str(folder / "data"),
                "PHASELINE_MAX_UPLOAD_BYTES": str(2**20),
                "PHASELINE_LOCAL_WORKER": "0",
            },
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            site = Site(f"http://127.0.0.1:{port}")
            _wait(site, process, folder / "log")
            yield site
        finally:
            process.terminate()
            process.wait(10)


def _wait(site: Site, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{site.url}/readyz", timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"the server did not become ready: {log.read_text()[-2000:]}")


@pytest.fixture(scope="session")
def tab(server: Site, chromium: Browser) -> Iterator[Window]:
    """One tab for all tests of a worker: opening one costs as much as three pages."""
    yield from _opened(server, chromium)


@pytest.fixture(scope="session")
def tab_without_scripts(server: Site, chromium: Browser) -> Iterator[Window]:
    """The same with scripts switched off."""
    yield from _opened(server, chromium, java_script_enabled=False)


def _opened(server: Site, chromium: Browser, **options: bool) -> Iterator[Window]:
    context = chromium.new_context(base_url=server.url, **options)  # type: ignore[arg-type]
    context.set_default_timeout(TIMEOUT_MS)
    yield Window(context, server)
    context.close()


@pytest.fixture
def window(tab: Window) -> Iterator[Window]:
    """A window of 1440 x 900, light, as new; at the end it must not have complained about anything that was not expected."""
    yield from _checked(tab)


@pytest.fixture
def plain_window(tab_without_scripts: Window) -> Iterator[Window]:
    """The same without scripts."""
    yield from _checked(tab_without_scripts)


def _checked(tab: Window) -> Iterator[Window]:
    tab.reset()
    yield tab
    assert tab.complaints() == []


@pytest.fixture(scope="session")
def samples(server: Site) -> dict[str, int]:
    """The sample runs by their labels, stored in the server."""
    server.post("/runs/samples")
    return {run["label"]: run["id"] for run in server.json("/api/v1/runs?tag=sample&limit=500")["items"]}
