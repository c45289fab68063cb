"""The bounds of app/domain/change_points.py, drawn anew: `python -m benchmarks.change_points [--json]`.

For each n many series of normal noise are drawn; the bound is the value of T that a share FALSE_ALARMS of them exceeds.
"""

import argparse
import json

import numpy as np

from app.domain.change_points import FALSE_ALARMS, MOST, statistics

SIZES = (*range(8, 30), *range(30, 60, 5), *range(60, 100, 10), *range(100, MOST + 1, 25))
_DRAWN = 20_000
_CELLS = 4_000_000
_SEED = 20040701


def bound(n: int, drawn: int = _DRAWN) -> float:
    """The T that noise of `n` runs exceeds with the chance FALSE_ALARMS."""
    generator = np.random.default_rng(_SEED + n)
    rows = max(1, _CELLS // (n * n))
    largest = [statistics(generator.standard_normal((min(rows, drawn - done), n))).max(axis=1) for done in range(0, drawn, rows)]
    return float(np.quantile(np.concatenate(largest), 1 - FALSE_ALARMS))


def main() -> None:
    """Print a bound for each size."""
    parser = argparse.ArgumentParser(description="Bounds of the change-point statistic under noise.")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--drawn", type=int, default=_DRAWN, help="series drawn for each n")
    asked = parser.parse_args()
    figures = {f"bound_{n}": round(bound(n, asked.drawn), 3) for n in SIZES}
    if asked.json:
        print(json.dumps({"figures": figures, "groups": [], "conditions": {"drawn": asked.drawn, "false_alarms": FALSE_ALARMS}}))
        return
    for name, value in figures.items():
        print(f"{name.removeprefix('bound_'):>4}  {value:.3f}")


if __name__ == "__main__":
    main()
