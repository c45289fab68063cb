"""A pair of runs with one known change, and what is known about it: drawn until the change is one that a right answer exists for."""

from dataclasses import dataclass

import numpy as np

from app.catalog import Catalog
from app.domain.diagnosis.times import first_tokens, steps
from app.domain.diagnosis.vocabulary import Phase
from app.domain.errors import PhaselineError
from app.domain.run import Run
from benchmarks.synthetic.deployment import Deployment, Served, serve
from benchmarks.synthetic.handing import Tools, handed
from benchmarks.synthetic.kinds import Kind
from benchmarks.synthetic.stream import QUIET, Noise

# A phase whose undisturbed time moves by less stands still, by more it moved; between the two there is no right answer: drawn anew.
STANDS_STILL, MOVED = 0.01, 0.07
# Of the time that was added before the first token, the part in the queue from which it lies there or does not; between them as well.
NOT_QUEUED, QUEUED = 0.4, 0.6
_TRIES = 60


@dataclass(frozen=True, eq=False)
class Pair:
    """Two runs, what was changed between them, and the phase that moved without noise. `drawn` counts the tries it took."""

    kind: Kind
    tools: Tools
    base: Run
    other: Run
    sides: tuple[Deployment, Deployment]
    phase: Phase
    drawn: int


def draw(catalog: Catalog, kind: Kind, tools: Tools, seed: int, noise: Noise) -> Pair:
    """The pair of a seed. Raises ArithmeticError where no draw of the kind gives a clear change."""
    random = np.random.default_rng(seed)
    for tried in range(1, _TRIES + 1):
        try:
            sides = kind.draw(catalog, random)
            quiet = [serve(side, QUIET, np.random.default_rng(0)) for side in sides]
            phase = _phase(kind, sides, quiet)
        except PhaselineError:
            continue
        if phase is None:
            continue
        served = [serve(side, noise, random) for side in sides]
        base, other = (handed(side, each, tools, noise, random) for side, each in zip(sides, served, strict=True))
        return Pair(kind, tools, base, other, sides, phase, tried)
    raise ArithmeticError(f"no draw of {kind.name} in {_TRIES} gave a clear change")


def _phase(kind: Kind, sides: tuple[Deployment, Deployment], quiet: list[Served]) -> Phase | None:
    """The phase that moved, by the statistics that a comparison may use.

    None where one of them moved by an amount in doubt, its place is in doubt, or nothing moved although something was changed.
    """
    still = np.random.default_rng(0)
    runs = [handed(side, each, "server", QUIET, still) for side, each in zip(sides, quiet, strict=True)]
    firsts, tokens = first_tokens(*runs), steps(*runs)
    if firsts is None or tokens is None:
        return None
    first, step = firsts[1] / firsts[0] - 1, tokens[1] / tokens[0] - 1
    if any(STANDS_STILL < abs(change) < MOVED for change in (first, step)):
        return None
    moved_first, moved_step = abs(first) >= MOVED, abs(step) >= MOVED
    if moved_first and moved_step and first * step < 0:
        # One phase got slower and the other faster: asked is why it got slower.
        moved_first, moved_step = first > 0, step > 0
    if moved_first and moved_step:
        return "both"
    if moved_step:
        return "decode"
    if not moved_first and kind.cause == "R06":
        # The opening wave is kept out of what is compared, and is what moved.
        return "prefill"
    if not moved_first:
        return "none" if kind.cause is None or kind.cause == "R30" else None
    if kind.place is not None:
        return kind.place
    queued = _share(runs, "queue_s")
    return None if NOT_QUEUED < queued < QUEUED else "queue" if queued >= QUEUED else "prefill"


def _share(runs: list[Run], key: str) -> float:
    return (_mean(runs[1], key) - _mean(runs[0], key)) / (_mean(runs[1], "ttft_s") - _mean(runs[0], "ttft_s"))


def _mean(run: Run, key: str) -> float:
    found = run.distribution(key)
    if found is None or found.mean is None:
        raise ArithmeticError(f"a synthetic run has no {key}")
    return found.mean
