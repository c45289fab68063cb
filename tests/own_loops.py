"""Tests may run loops of their own, in a process whose browser keeps one.

The browser tests' one chromium lives until the process ends, and its plain interface leaves a running loop behind in the thread of the
tests; asyncio then refuses another. While a test without a browser is set up, called and torn down, that loop is out of sight. It is back
before the teardown of a process's last test, when the browser is closed.
"""

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager, nullcontext

import pytest


@contextmanager
def _no_loop_in_sight() -> Iterator[None]:
    kept = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(kept)


def _has_a_browser(item: pytest.Item) -> bool:
    return "chromium" in getattr(item, "fixturenames", ())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Fixtures may run loops."""
    with nullcontext() if _has_a_browser(item) else _no_loop_in_sight():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """So do tests."""
    with nullcontext() if _has_a_browser(item) else _no_loop_in_sight():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """And the ends of fixtures, but for those of the whole process."""
    with nullcontext() if nextitem is None or _has_a_browser(item) else _no_loop_in_sight():
        return (yield)
