"""Fit the engine profiles: `python -m benchmarks.fit [--out app/catalog/engines.toml]`, a few minutes on one core.

Reads the built-in measurements (app/catalog/measured.csv), fits bounded constants in nested groups with physical priors and writes the
catalog's engine entries, each with its source, its number of rows, its error and its left-out error.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from app.catalog import load
from app.catalog.measured import measurements
from app.domain.measurement import Measurement
from benchmarks.asked import Asked, ask
from benchmarks.fitting.bands import Bands
from benchmarks.fitting.fits import served_fit, stream_fit
from benchmarks.fitting.profiles import SERVED_ENGINES, STREAM_ENGINES, as_toml, engine_entry

CATALOG = Path(__file__).resolve().parents[1] / "app" / "catalog" / "engines.toml"


def distinct(rows: Sequence[Measurement]) -> list[Measurement]:
    """Each measurement once, whatever labels it is published under."""
    seen: set[tuple[object, ...]] = set()
    kept = []
    for row in rows:
        point = row.operating_point if row.kind != "stream" else (row.id,)
        if point not in seen:
            seen.add(point)
            kept.append(row)
    return kept


def questions(rows: Sequence[Measurement]) -> list[Asked]:
    """What can be asked of these rows."""
    catalog = load()
    found = (ask(row, catalog, lambda name: None) for row in distinct(rows))
    return [one for one in found if isinstance(one, Asked)]


def main(arguments: Sequence[str]) -> int:
    """Fit and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fit", description=__doc__)
    parser.add_argument("--out", type=Path, default=CATALOG)
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    asked = questions(measurements())
    served, streams = Bands.of(served_fit(asked)), Bands.of(stream_fit(asked))
    entries = [engine_entry(engine, served, stream=False) for engine in SERVED_ENGINES]
    entries += [engine_entry(engine, streams, stream=True) for engine in STREAM_ENGINES]
    options.out.write_text(as_toml(entries), encoding="utf-8")
    print(f"{len(entries)} engines from {len(asked)} measurements written to {options.out} in {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
