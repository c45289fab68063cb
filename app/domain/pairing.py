"""Two sets of runs joined by what was measured, never by where a run stands in its set."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.run import Run

Key = tuple[str | None, str | None, int | None, float | None, int | None, int | None, int]


@dataclass(frozen=True)
class Pairing:
    """Runs of the same model and load on both sides, and those that have no partner."""

    pairs: tuple[tuple[Run, Run], ...]
    only_before: tuple[Run, ...]
    only_after: tuple[Run, ...]


def workload_key(run: Run) -> Key:
    """What two runs must share to be the same measurement: model, kind and size of load, lengths to the token, context before."""
    workload = run.workload
    prompt, output = (None if mean is None else round(mean) for mean in (workload.prompt_tokens_mean, workload.output_tokens_mean))
    return (run.model, run.load_mode, workload.concurrency, workload.request_rate_per_s, prompt, output, workload.context_depth_tokens)


def pair_runs(before: Sequence[Run], after: Sequence[Run]) -> Pairing:
    """Join two sets on `workload_key`, in the order of `before`. Where a key stands several times, its runs are paired in order."""
    waiting: dict[Key, list[Run]] = {}
    for run in after:
        waiting.setdefault(workload_key(run), []).append(run)
    pairs, alone = [], []
    for run in before:
        partners = waiting.get(workload_key(run))
        if partners:
            pairs.append((run, partners.pop(0)))
        else:
            alone.append(run)
    return Pairing(tuple(pairs), tuple(alone), tuple(run for rest in waiting.values() for run in rest))
