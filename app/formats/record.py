"""The one gate through which figures of a file pass: finite, not negative, a number at all, of a size that can be.

A `Record` reads one JSON object (or one row of a table) and remembers what it turned away, so that the run can say so.
"""

from collections.abc import Iterator, Mapping

import numpy as np

from app.domain.errors import ImportRefused
from app.domain.run import Floats
from app.domain.text import clean_text

LARGEST_INTEGER = 2**63 - 1
# No time, rate or count of a benchmark is beyond these, whatever its unit (1e18 ns are 31 years); 0 stands for itself.
LARGEST = 1e18
SMALLEST = 1e-15


class ArrayProblem(Exception):
    """Per-request figures that cannot be used, as a clause that says why."""


class Record:
    """One object of a file. `where` begins the path of every key, like `line 3: `.

    `warnings` gathers sentences about what was left out, `not_numbers` the keys that held NaN or infinity, `negative` clauses
    about time that ran backwards.
    """

    def __init__(self, values: Mapping[str, object], where: str = "") -> None:
        self._values = values
        self._where = where
        self.warnings: list[str] = []
        self.not_numbers: list[str] = []
        self.negative: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def path(self, key: str) -> str:
        """Where `key` stands in the file, for messages."""
        return f"{self._where}{clean_text(key, 60)}"

    def items(self) -> Iterator[tuple[str, object]]:
        """Every key with its value as the file has it."""
        yield from self._values.items()

    def raw(self, key: str) -> object:
        """The value as the file has it, None when it is not there."""
        return self._values.get(key)

    def number(self, key: str) -> float | None:
        """A finite figure of 0 or more, None when there is none. Raises ImportRefused for integers beyond 63 bits."""
        value = self._values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.warnings.append(f"{self.path(key)} is no number and left out.")
            return None
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            raise ImportRefused(f"{self.path(key)} is an integer beyond 63 bits: no count or time is that large.")
        return self._in_range(key, float(value))

    def _in_range(self, key: str, value: float) -> float | None:
        if not np.isfinite(value):
            self.not_numbers.append(self.path(key))
            return None
        if value < 0:
            self.negative.append(f"{self.path(key)} is negative ({value:.6g})")
            return None
        if value > LARGEST or 0 < value < SMALLEST:
            self.warnings.append(f"{self.path(key)} is {value:.3g}, which cannot be, and left out.")
            return None
        return value

    def positive(self, key: str) -> float | None:
        """A figure above 0: tools write 0 where they have no value."""
        return self.number(key) or None

    def count(self, key: str) -> int | None:
        """A whole number of 0 or more, None when there is none. Raises ImportRefused when something else stands there."""
        value = self._values.get(key)
        if value is None:
            return None
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not whole or value < 0:
            raise ImportRefused(f"{self.path(key)} must be a whole number of 0 or more, and is {_shown(value)}.")
        if value > LARGEST_INTEGER:
            raise ImportRefused(f"{self.path(key)} is an integer beyond 63 bits: no count is that large.")
        return int(value)

    def text(self, key: str) -> str | None:
        """A cleaned word or line, None when there is none."""
        value = self._values.get(key)
        return (clean_text(value) or None) if isinstance(value, str) else None

    def child(self, key: str) -> "Record":
        """The object under `key`; an empty one when there is none."""
        value = self._values.get(key)
        return Record(value if isinstance(value, dict) else {}, f"{self._where}{clean_text(key, 60)}.")

    def sequence(self, key: str) -> list[object] | None:
        """The list under `key`, None when there is none."""
        value = self._values.get(key)
        return value if isinstance(value, list) else None

    def label(self, key: str) -> str | None:
        """A scalar in words for a run's labels; None for null, lists and objects."""
        value = self._values.get(key)
        if isinstance(value, str):
            return clean_text(value) or None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int):
            return clean_text(str(value)) if abs(value) <= LARGEST_INTEGER else None
        return repr(value) if isinstance(value, float) else None


def whole_total(tokens: float) -> int | None:
    """A sum of counts as an integer; None where it is NaN or beyond 63 bits, as no store could hold it."""
    # The largest integer is 2**63 as a double, so only what is below it fits.
    return round(tokens) if tokens < float(LARGEST_INTEGER) else None


def floats(values: list[object], name: str) -> Floats:
    """A list of numbers as doubles, null as NaN. Raises ArrayProblem for anything else in it, and for negative values."""
    kinds = set(map(type, values))
    if not kinds <= {int, float, type(None)}:
        raise ArrayProblem(f"{name} holds something that is no number")
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError as error:
        raise ArrayProblem(f"{name} holds an integer that no figure can be") from error
    if bool((array < 0).any()):
        raise ArrayProblem(f"{name} holds a negative value (a stepped clock?)")
    array[~(array <= LARGEST) | ((array > 0) & (array < SMALLEST))] = np.nan
    return array


def _shown(value: object) -> str:
    if isinstance(value, (list, dict)):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return "beyond 63 bits"
    return clean_text(str(value), 40) or "empty"
