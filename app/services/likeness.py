"""What a new run has to do with others: the same figures in another file, or a summary beside the stages that it pools."""

from collections.abc import Sequence

from app.domain.run import Run
from app.services.context import Context
from app.store import runs
from app.store.records import StoredRun
from app.store.twins import twins_of

# A file of very many runs is told of by its first.
_LOOKED_AT = 20


def likenesses(context: Context, run_ids: Sequence[int]) -> tuple[str, ...]:
    """Sentences for whoever uploaded these runs. Nothing is merged, linked or left out because of them."""
    looked_at = tuple(run_ids[:_LOOKED_AT])
    with context.database.read() as session:
        twins = twins_of(session, looked_at)
        stored = runs.get_many(session, looked_at)
    return (*(_same(one, twins[one.id]) for one in stored if one.id in twins), *_pooled(stored))


def _same(one: StoredRun, twin: int) -> str:
    return (
        f"{one.upload.name}: run {one.id} has the figures of run {twin}, so it may be the same run exported again: "
        "delete one of the two if it is."
    )


def _pooled(stored: Sequence[StoredRun]) -> list[str]:
    """inference-perf writes a summary of all stages beside a file for each: the same requests, twice."""
    stages = [one for one in stored if _is_report(one.run) and "requested_rate" in one.run.labels]
    summaries = [one for one in stored if _is_report(one.run) and "requested_rate" not in one.run.labels]
    if not stages:
        return []
    named = ", ".join(str(one.id) for one in stages)
    return [f"{one.upload.name}: run {one.id} pools the stages of its run (here: {named}); they are not added up." for one in summaries]


def _is_report(run: Run) -> bool:
    return run.format == "inference_perf" and run.samples is None
