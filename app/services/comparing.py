"""Stored runs or files compared: the first is the base."""

from collections.abc import Sequence
from typing import Literal

from app.domain.comparison import Comparison, compare
from app.domain.errors import InvalidRequest, NotFound
from app.services.baselines import baseline_of
from app.services.context import Context
from app.services.diagnosing import Explained, explain_pair
from app.services.noise import spreads_between
from app.services.runs import RunView, views

MAX_RUNS = 8
BASELINE: Literal["baseline"] = "baseline"


def compare_runs(context: Context, run_ids: Sequence[int]) -> tuple[list[RunView], list[Comparison]]:
    """The runs and the comparison of each other one with the first. Raises NotFound, or InvalidRequest for fewer than two or too many."""
    distinct = list(dict.fromkeys(run_ids))
    if len(distinct) < 2:
        raise InvalidRequest("other", "A comparison needs two different runs: name a base and at least one other.")
    if len(distinct) > MAX_RUNS:
        raise InvalidRequest("other", f"{len(distinct)} runs are too many for one page: {MAX_RUNS} at most.")
    found = views(context, distinct)
    with context.database.read() as session:
        spreads = spreads_between(session, found[0].stored, [other.stored for other in found[1:]])
    base = found[0].side()
    return found, [compare(base, other.side(), spreads[other.id]) for other in found[1:]]


def base_of(context: Context, base: int | Literal["baseline"], run_id: int) -> int:
    """The number of the base: itself, or the run that is the baseline of the other's series. Raises NotFound when it has none."""
    if base != BASELINE:
        return base
    there = baseline_of(context, run_id)
    if there is None:
        raise NotFound(f"Run {run_id} has no baseline, so it was never compared: make a run of its series the baseline first.")
    return there.run_id


def explained(views: Sequence[RunView], comparisons: Sequence[Comparison]) -> list[Explained]:
    """Why each other run differs from the first."""
    return [explain_pair(comparison, views[0], view) for comparison, view in zip(comparisons, views[1:], strict=True)]
