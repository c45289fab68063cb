"""What no model can explain: how far measurements of one deployment lie from each other.

Two yardsticks, each on the rows that have it. `repeats`: the same engine, device, model and load measured more than once (other versions of
the engine, other days), each against the median of its group. `neighbours`: a row against the straight line, in logarithms, between the
same deployment at the next lower and the next higher number of clients, at most four times apart; what lies off it is no function of load.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.asked import Asked
from benchmarks.fitting.fits import holds_start_up

Floats = npt.NDArray[np.float64]
WIDEST_GAP = 4.0
FEWEST = 10


def noise(asked: Sequence[Asked]) -> list[dict[str, Any]]:
    """Groups of both yardsticks for each population of served rows, and how many TTFT hold the start of their benchmark."""
    served = [one for one in asked if one.measurement.kind == "served"]
    start_up = holds_start_up(served)
    found: list[dict[str, Any]] = []
    for word, experts in (("dense", False), ("moe", True)):
        mine = [one for one in served if one.experts == experts]
        for name, values in (("tpot", [one.measurement.tpot_s for one in mine]), ("ttft", [one.measurement.ttft_s for one in mine])):
            times = np.array([np.nan if value is None else value for value in values])
            for kind, errors in (("repeats", list(repeats(mine, times))), ("neighbours", list(neighbours(mine, times)))):
                if len(errors) >= FEWEST:
                    by = {"population": f"{word}_{name}", "noise": kind}
                    found.append({"by": by, "n": len(errors), "median_ape": float(np.median(errors)), "mean_ape": float(np.mean(errors))})
        held = int(sum(hit for hit, one in zip(start_up, served, strict=True) if one.experts == experts))
        found.append({"by": {"population": f"{word}_ttft", "holds": "start-up"}, "n": held})
    return found


def repeats(asked: Sequence[Asked], times: Floats) -> Iterator[float]:
    """|median of the group - measured| / measured of every row whose question was measured more than once."""
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for place, one in enumerate(asked):
        groups[one.engine, one.architecture.groups, one.hardware.slug, one.request].append(place)
    for places in groups.values():
        mine = times[places][np.isfinite(times[places])]
        if len(mine) > 1:
            yield from np.abs(np.median(mine) / mine - 1.0)


def neighbours(asked: Sequence[Asked], times: Floats) -> Iterator[float]:
    """|line between its neighbours - measured| / measured of every number of clients that has one on both sides."""
    groups: dict[Hashable, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one, time in zip(asked, times, strict=True):
        row = one.measurement
        if np.isfinite(time):
            same = (one.engine, row.engine_version, one.architecture.groups, one.hardware.slug, one.weights, row.layout)
            groups[(*same, row.prompt_tokens, row.output_tokens)][row.sequences].append(np.log(time))
    for loads in groups.values():
        clients = sorted(loads)
        for low, middle, high in zip(clients, clients[1:], clients[2:], strict=False):
            if high / low <= WIDEST_GAP:
                share = np.log(middle / low) / np.log(high / low)
                line = (1.0 - share) * np.median(loads[low]) + share * np.median(loads[high])
                yield float(np.abs(np.expm1(line - np.median(loads[middle]))))
