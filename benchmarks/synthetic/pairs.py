"""A pair of runs with one known change, and what is known about it: drawn until the change is one that a right answer exists for.

A closed loop is chaotic: requests that end a little later meet other ones, and a mean of a hundred first tokens differs by several per
cent between two runs of one deployment. So what moved is what moves without noise and in repeats with noise alike; where repeats of the
pair would be answered differently, no answer to one of them is right.
"""

from dataclasses import dataclass

import numpy as np

from app.catalog import Catalog
from app.domain.diagnosis.thresholds import MOSTLY, NOISE
from app.domain.diagnosis.times import first_tokens, steps
from app.domain.diagnosis.vocabulary import Phase
from app.domain.errors import PhaselineError
from app.domain.run import Run
from benchmarks.synthetic.deployment import Deployment, serve
from benchmarks.synthetic.handing import Tools, handed
from benchmarks.synthetic.kinds import Kind
from benchmarks.synthetic.stream import QUIET, Noise

# A phase whose undisturbed time moves by less stands still, by more it moved; between the two there is no right answer: drawn anew.
STANDS_STILL, MOVED = 0.01, 0.07
# Of the time that was added before the first token, the part in the queue from which it lies there or does not; between them as well.
NOT_QUEUED, QUEUED = 0.4, 0.6
# Disturbed repeats of a pair that must show the same phase, by the change that a comparison counts.
REPEATS = 3
_TRIES = 400


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
            phase = clear_phase(kind, sides, noise, random)
        except PhaselineError:
            continue
        if phase is None:
            continue
        served = [serve(side, noise, random) for side in sides]
        base, other = (handed(side, each, tools, noise, random) for side, each in zip(sides, served, strict=True))
        return Pair(kind, tools, base, other, sides, phase, tried)
    raise ArithmeticError(f"no draw of {kind.name} in {_TRIES} gave a clear change")


def clear_phase(kind: Kind, sides: tuple[Deployment, Deployment], noise: Noise, random: np.random.Generator) -> Phase | None:
    """The phase that moved without noise and in every repeat with it; None where there is none."""
    phase = _phase(kind, _known(sides, QUIET, np.random.default_rng(0)), (STANDS_STILL, MOVED), (NOT_QUEUED, QUEUED))
    if phase is None:
        return None
    for _ in range(REPEATS):
        if _phase(kind, _known(sides, noise, random), (NOISE, NOISE), (MOSTLY, MOSTLY)) != phase:
            return None
    return phase


def _known(sides: tuple[Deployment, Deployment], noise: Noise, random: np.random.Generator) -> list[Run]:
    """Both sides with everything that a tool may report."""
    return [handed(side, serve(side, noise, random), "server", noise, random) for side in sides]


def _phase(kind: Kind, runs: list[Run], moves: tuple[float, float], queues: tuple[float, float]) -> Phase | None:
    """The phase that moved, by the statistics that a comparison may use.

    None where one of them moved by an amount between `moves`, the part in the queue is between `queues`, or nothing moved although
    something was changed.
    """
    firsts, tokens = first_tokens(*runs), steps(*runs)
    if firsts is None or tokens is None:
        return None
    first, step = firsts[1] / firsts[0] - 1, tokens[1] / tokens[0] - 1
    if any(moves[0] < abs(change) < moves[1] for change in (first, step)):
        return None
    moved_first, moved_step = abs(first) >= moves[1], abs(step) >= moves[1]
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
    return None if queues[0] < queued < queues[1] else "queue" if queued >= queues[1] else "prefill"


def _share(runs: list[Run], key: str) -> float:
    return (_mean(runs[1], key) - _mean(runs[0], key)) / (_mean(runs[1], "ttft_s") - _mean(runs[0], "ttft_s"))


def _mean(run: Run, key: str) -> float:
    found = run.distribution(key)
    if found is None or found.mean is None:
        raise ArithmeticError(f"a synthetic run has no {key}")
    return found.mean
