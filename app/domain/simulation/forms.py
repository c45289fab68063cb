"""The kernel in its two forms: plain Python on lists, and compiled by numba on arrays, where numba is installed.

Both run the same source and give the same numbers. numba is imported when a simulation first asks for the compiled form, never before:
the domain stays quick to import, and works without it.
"""

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from app.domain.simulation import crossing, fleet, kernel, passes, state

Columns = TypeVar("Columns", bound=NamedTuple)


@cache
def can_compile() -> bool:
    """Whether numba is installed here."""
    return find_spec("numba") is not None


@cache
def compiled(name: str) -> Callable[..., None]:
    """The function `name` of `kernel` or `fleet`, compiled: seconds when first called on a machine, little where its code was kept.

    The functions it calls stay plain ones that numba may compile into it.
    """
    numba = import_module("numba")
    register = import_module("numba.extending").register_jitable
    for module in (passes, kernel, crossing, fleet):
        for function in vars(module).values():
            if callable(function) and getattr(function, "__module__", "") == module.__name__:
                register(function)
    function = getattr(kernel if hasattr(kernel, name) else fleet, name)
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(_machine_code())
    try:
        return _typed(numba.njit(cache=True)(function))
    except RuntimeError:  # no folder that can be written
        return _typed(numba.njit(function))
    finally:
        numba.config.CACHE_DIR = before


def is_ready() -> bool:
    """Whether a compiled simulation starts at once: it ran in this process before, or its machine code was kept on this machine."""
    return can_compile() and (compiled.cache_info().currsize > 0 or any(_machine_code().rglob("*.nbc")))


def _typed(function: Any) -> Callable[..., None]:
    found: Callable[..., None] = function
    return found


def _machine_code() -> Path:
    """The folder of the machine code of these very sources: numba itself looks at one file of the three only."""
    sources = [Path(str(module.__file__)) for module in (state, passes, kernel, crossing, fleet)]
    digest = sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    return sources[0].parent / "__pycache__" / f"kernel-{digest}"


def as_lists(columns: Columns) -> Columns:
    """The same tuple with every array as a list, which plain Python reads faster."""
    return type(columns)(*(item.tolist() if isinstance(item, np.ndarray) else item for item in columns))
