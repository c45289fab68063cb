"""The stand-in for NVIDIA's library, put in the place of the real one for a test of this process."""

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

DRIVER = Path(__file__).with_name("driver")
Library = Callable[..., ModuleType]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """Puts it in place; `changes` replace its functions, and an error that one gives is raised by its name: `failing("NVMLError")`."""

    def make(**changes: Any) -> ModuleType:
        spec = spec_from_file_location("pynvml", DRIVER / "pynvml.py")
        assert spec is not None
        assert spec.loader is not None
        made = module_from_spec(spec)
        spec.loader.exec_module(made)
        for name, value in changes.items():
            setattr(made, name, value)
        monkeypatch.setitem(sys.modules, "pynvml", made)
        return made

    return make


def failing(error: str) -> Callable[..., Any]:
    """A function of the library that raises this error of it."""

    def call(*_: Any) -> Any:
        raise getattr(sys.modules["pynvml"], error)("said the driver")

    return call
