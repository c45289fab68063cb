"""Rates of a device in our own documents: matrix products by shape, and bytes moved by kind.

    {"name", "kind", "threads", "memory_bytes",
     "products": [{"what", "dtype", "m", "n", "k", "flops_per_s": {"best", "median", "p10"}, "repeats"}, …],
     "moves": [{"what": "read" | "copy" | "triad" | "gemv", "dtype", "bytes", "bytes_per_s": {…}, "repeats"}, …], "launch_s": {dtype: s}}

`what` of a product is `square`, or the name of a model's own layer.
"""

from collections.abc import Iterator, Mapping
from typing import get_args

from app.domain.device_rates import DeviceRates, Measured, Move, MoveKind, Product
from app.domain.errors import ImportRefused
from app.domain.run import MetricValue, Rate
from app.formats.document import read_document
from app.formats.json_reading import JsonProblem
from app.formats.phaseline_document import FORMAT
from app.formats.record import Record

_MOST = 2_000


def rates_in(name: str, data: bytes, position: int) -> DeviceRates | None:
    """The device of run number `position` (from 0) of a stored document; None when that run is none of a device."""
    try:
        entries = read_document(name, data).entries
    except (ImportRefused, JsonProblem):
        return None
    points = [point for entry in entries if entry.values.get("format") == FORMAT for point in Record(entry.values).sequence("runs") or ()]
    point = points[position] if position < len(points) else None
    if not isinstance(point, dict) or "device" not in point:
        return None
    return device_rates(Record(point).child("device"))


def device_rates(record: Record) -> DeviceRates:
    """The rates of a device; entries without a figure are left out. Raises ImportRefused for a count that is none."""
    launches = record.child("launch_s")
    return DeviceRates(
        name=record.text("name") or "this device",
        kind=record.text("kind") or "device",
        threads=record.count("threads"),
        memory_bytes=record.positive("memory_bytes"),
        products=tuple(_products(record)),
        moves=tuple(_moves(record)),
        launch_s={key: value for key, _ in launches.items() if len(key) < 16 and (value := launches.positive(key)) is not None},
    )


def device_metrics(record: Record) -> Mapping[str, MetricValue]:
    """The ceilings as figures of a run, each with the words that say what it is of. Raises ImportRefused when there is none."""
    found = device_rates(record)
    best, gemv = found.best_product(), found.best_move("gemv") or found.best_move("read")
    metrics: dict[str, MetricValue] = {}
    if best is not None:
        shape = f"{best.what} {best.m} x {best.n} x {best.k}, {best.dtype}"
        metrics["flops_per_s"] = Rate(best.rate.median, "device", "samples", f"best matrix product ({shape})")
    if gemv is not None:
        metrics["bytes_per_s"] = Rate(gemv.rate.median, "device", "samples", f"{gemv.words}, {gemv.dtype}")
    if best is not None and gemv is not None:
        metrics["intensity_flops_per_byte"] = Rate(best.rate.median / gemv.rate.median, "device", "derived", "measured ridge point")
    if not metrics:
        raise ImportRefused(f"{record.path('products')} and moves hold no rate: the measurement ended before its first.")
    return metrics


def device_words(record: Record) -> Mapping[str, str]:
    """What the device is, for the labels of its run."""
    return {f"device.{key}": label for key in ("name", "kind", "threads", "backend") if (label := record.label(key)) is not None}


def _products(record: Record) -> Iterator[Product]:
    for item in _objects(record, "products"):
        rate, sizes = _measured(item, "flops_per_s"), [item.count(key) for key in ("m", "n", "k")]
        if rate is not None and all(sizes):
            m, n, k = (size or 0 for size in sizes)
            yield Product(item.text("what") or "square", item.text("dtype") or "fp32", m, n, k, rate)


def _moves(record: Record) -> Iterator[Move]:
    kinds: tuple[MoveKind, ...] = get_args(MoveKind)
    for item in _objects(record, "moves"):
        rate, what = _measured(item, "bytes_per_s"), next((kind for kind in kinds if kind == item.text("what")), None)
        if rate is not None and what is not None:
            yield Move(what, item.text("dtype") or "fp32", item.positive("bytes"), rate)


def _measured(item: Record, key: str) -> Measured | None:
    figures = item.child(key)
    best, median, low = (figures.positive(name) for name in ("best", "median", "p10"))
    return None if median is None else Measured(best or median, median, low, item.count("repeats"))


def _objects(record: Record, key: str) -> list[Record]:
    items = (record.sequence(key) or [])[:_MOST]
    return [Record(item, f"{record.path(key)}[{index}].") for index, item in enumerate(items) if isinstance(item, dict)]
