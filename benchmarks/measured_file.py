"""Make app/catalog/measured.csv from tables in the shared layout: `python -m benchmarks.measured_file --serving CSV --groundtruth CSV`."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from app.catalog.measured import PATH, write
from app.domain.measurement import Measurement
from benchmarks.shared_tables import Refused, read_served, read_single


def main(arguments: Sequence[str]) -> int:
    """Read both tables, write the file, say how many rows went where."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measured_file", description=__doc__)
    parser.add_argument("--serving", type=Path, required=True, metavar="CSV")
    parser.add_argument("--groundtruth", type=Path, required=True, metavar="CSV")
    parser.add_argument("--out", type=Path, default=PATH)
    options = parser.parse_args(arguments)
    rows: Iterable[Measurement | Refused] = (*read_served(options.serving), *read_single(options.groundtruth))
    kept = [row for row in rows if isinstance(row, Measurement)]
    write(options.out, kept)
    print(f"{len(kept)} measurements written to {options.out}; rows without a time of one phase, or without a load, are left out")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
