"""Tests here run loops of their own, in a process whose browser may keep one.

The browser tests' one chromium lives until the process ends, and its plain interface leaves a running loop behind in the thread of the
tests; asyncio then refuses another. While a test of this folder is set up and called, that loop is out of sight. It is back before the
teardown of a process's last test, when the browser is closed.
"""

import asyncio
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from tests.worker.drivers import library

__all__ = ["library"]  # a fixture


@contextmanager
def _no_loop_in_sight() -> Iterator[None]:
    kept = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(kept)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Fixtures may run loops."""
    with _no_loop_in_sight():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """So do tests."""
    with _no_loop_in_sight():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """And the ends of fixtures, but for those of the whole process."""
    if nextitem is None:
        return (yield)
    with _no_loop_in_sight():
        return (yield)
