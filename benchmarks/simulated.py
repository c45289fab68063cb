"""The step simulator against published measurements, the closed form beside it: `python -m benchmarks.simulated [--json]`.

Rows of served load from the built-in measurements, each with its engine's profile as shipped, at most EACH of an engine, device, model and
weight format (drawn once, the same ones each time). Errors are absolute, of means, in percent of what was measured. It says how far a
simulated load may be trusted; no constant is fitted to it.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.catalog.measured import measurements
from app.domain.phases import Question, price_request
from app.domain.request_rules import check
from app.domain.simulation import ServedLoad, Simulator
from benchmarks.asked import Asked
from benchmarks.fit import questions
from benchmarks.report import Report, as_json, as_text, machine

EACH = 12
MOST_TOKENS = 2_000_000  # of all answers of a row; more would take longer than it says


@dataclass(frozen=True)
class Row:
    """A measured row: relative errors of TTFT and ITL, simulated and in closed form."""

    asked: Asked
    ttft: float
    itl: float
    closed_ttft: float
    closed_itl: float


def chosen(asked: Sequence[Asked], each: int = EACH) -> list[Asked]:
    """At most `each` served rows of a deployment that has a profile and no pools of its own."""
    groups: dict[Hashable, list[Asked]] = defaultdict(list)
    for one in asked:
        request = one.request
        if one.measurement.kind != "served" or one.profile is None or one.measurement.flags or request.concurrency is None:
            continue
        if request.prefill_replicas is None and request.concurrency * request.requests_per_client * request.output_tokens <= MOST_TOKENS:
            groups[one.engine, one.hardware.slug, one.measurement.model, one.weights].append(one)
    random = np.random.default_rng(0)
    return [one for rows in groups.values() for one in random.permutation(np.array(rows, dtype=object))[:each]]


def rows(asked: Sequence[Asked]) -> Iterator[Row]:
    """Each simulated."""
    for one in asked:
        request, row = one.request, one.measurement
        seen = Simulator.of(one.architecture, one.hardware, request, engine=one.profile).run(
            ServedLoad(
                request.prompt_tokens,
                request.output_tokens,
                clients=request.concurrency,
                requests_per_client=request.requests_per_client,
                shortest_length=request.shortest_length,
            )
        )
        load = check(request, one.architecture, one.hardware)
        closed = price_request(Question.of(one.architecture, one.hardware, request, load, one.profile))
        pairs = ((seen.ttft.mean, row.ttft_s), (seen.itl_s, row.tpot_s), (closed.ttft_s, row.ttft_s), (closed.itl_s, row.tpot_s))
        yield Row(one, *(float("nan") if said is None or found is None else float(said) / found - 1.0 for said, found in pairs))


def group(name: str, found: Sequence[Row]) -> dict[str, Any]:
    """Medians of one group, in percent; bias is the median with its sign."""
    line: dict[str, Any] = {"by": {"rows": name}, "n": len(found)}
    for key in ("ttft", "closed_ttft", "itl", "closed_itl"):
        errors = 100.0 * np.array([getattr(row, key) for row in found])
        line[f"{key}_median_ape"] = round(float(np.nanmedian(np.abs(errors))), 1)
        line[f"{key}_bias"] = round(float(np.nanmedian(errors)), 1)
    return line


def main(arguments: Sequence[str]) -> int:
    """Run and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulated", description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = list(rows(chosen(questions(measurements()))))
    groups = []
    for engine in dict.fromkeys(row.asked.engine for row in found):
        for experts, kind in ((False, "dense"), (True, "mixture")):
            for equal, lengths in ((True, "equal"), (False, "drawn")):
                mine = [
                    row
                    for row in found
                    if row.asked.engine == engine and row.asked.experts == experts and (row.asked.request.shortest_length >= 1.0) == equal
                ]
                if mine:
                    groups.append(group(f"{engine} {kind}, lengths {lengths}", mine))
    whole = group("all", found)
    report = Report({key: float(value) for key, value in whole.items() if key != "by"}, groups, machine())
    print(as_json(report) if options.json else as_text(report, {}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
