"""Stored runs or files compared: the first is the base."""

from collections.abc import Sequence

from app.domain.comparison import Comparison, compare
from app.domain.errors import InvalidRequest
from app.services.context import Context
from app.services.diagnosing import Explained, explain_pair
from app.services.runs import RunView, views

MAX_RUNS = 8


def compare_runs(context: Context, run_ids: Sequence[int]) -> tuple[list[RunView], list[Comparison]]:
    """The runs and the comparison of each other one with the first. Raises NotFound, or InvalidRequest for fewer than two or too many."""
    distinct = list(dict.fromkeys(run_ids))
    if len(distinct) < 2:
        raise InvalidRequest("other", "A comparison needs two different runs: name a base and at least one other.")
    if len(distinct) > MAX_RUNS:
        raise InvalidRequest("other", f"{len(distinct)} runs are too many for one page: {MAX_RUNS} at most.")
    found = views(context, distinct)
    base = found[0].side()
    return found, [compare(base, other.side()) for other in found[1:]]


def explained(views: Sequence[RunView], comparisons: Sequence[Comparison]) -> list[Explained]:
    """Why each other run differs from the first."""
    return [explain_pair(comparison, views[0], view) for comparison, view in zip(comparisons, views[1:], strict=True)]
