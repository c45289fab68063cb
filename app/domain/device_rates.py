"""What a device was measured to achieve: matrix products by shape, bytes moved by kind, the launch of a small product.

    ridge point = best product / GEMV rate      FLOP/byte from which arithmetic sets the pace, at achieved rates

A matrix-vector product (GEMV) reads a weight once and uses it once, as decode does: its rate is the ceiling of decode, a plain copy's
is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

MoveKind = Literal["read", "copy", "triad", "gemv"]
SQUARE = "square"
_WORDS: Mapping[MoveKind, str] = {"read": "reading", "copy": "copying", "triad": "triad (a = b + s·c)", "gemv": "matrix-vector product"}


@dataclass(frozen=True)
class Measured:
    """Repeats of one rate per second: the best, the median, the slowest tenth's bound, and how many repeats."""

    best: float
    median: float
    p10: float | None = None
    n: int | None = None


@dataclass(frozen=True)
class Product:
    """A matrix product [m, k] x [k, n] in `dtype`: `what` is `square` or a model's layer; the rate is in FLOP/s (2·m·n·k each)."""

    what: str
    dtype: str
    m: int
    n: int
    k: int
    rate: Measured

    @property
    def flops(self) -> float:
        """Operations of one product."""
        return 2.0 * self.m * self.n * self.k


@dataclass(frozen=True)
class Move:
    """Bytes moved per second over a buffer of `bytes`, far beyond the caches; reads and writes both count."""

    what: MoveKind
    dtype: str
    bytes: float | None
    rate: Measured

    @property
    def words(self) -> str:
        """What was done, in words."""
        return _WORDS[self.what]


@dataclass(frozen=True)
class DeviceRates:
    """Everything that one microbenchmark found of a device. `launch_s` is by number format."""

    name: str
    kind: str
    threads: int | None = None
    memory_bytes: float | None = None
    products: tuple[Product, ...] = ()
    moves: tuple[Move, ...] = ()
    launch_s: Mapping[str, float] = field(default_factory=dict)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Number formats of the products, in the order in which they were measured."""
        return tuple(dict.fromkeys(product.dtype for product in self.products))

    def best_product(self, dtype: str | None = None) -> Product | None:
        """The product of the highest median rate, of one format or of all; None when there is none."""
        found = [product for product in self.products if dtype in (None, product.dtype)]
        return max(found, key=lambda product: product.rate.median, default=None)

    def in_model(self, dtype: str) -> float | None:
        """FLOP/s of a model's own layers one after another at the largest row count measured; None when none was."""
        layers = [product for product in self.products if product.dtype == dtype and product.what != SQUARE]
        rows = max((product.m for product in layers), default=0)
        largest = [product for product in layers if product.m == rows]
        seconds = sum(product.flops / product.rate.median for product in largest)
        return sum(product.flops for product in largest) / seconds if seconds else None

    def best_move(self, *kinds: MoveKind) -> Move | None:
        """The move of the highest median rate among `kinds` (all when none is named); None when there is none."""
        found = [move for move in self.moves if not kinds or move.what in kinds]
        return max(found, key=lambda move: move.rate.median, default=None)

    def ridge(self, dtype: str) -> float | None:
        """FLOP/byte from which arithmetic sets the pace, at measured rates; None where either is missing."""
        best, gemv = self.best_product(dtype), self.best_move("gemv") or self.best_move("read")
        return None if best is None or gemv is None else best.rate.median / gemv.rate.median
