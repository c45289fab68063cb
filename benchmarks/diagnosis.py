"""Is the diagnosis right? Pairs of runs with one known change each, put to the function that /compare asks.

    python -m benchmarks.diagnosis [--json | --markdown] [--pairs N] [--seed S]

Deployments, loads, changes and noise are drawn from the seed, runs from the step simulator (`synthetic`). Rules were worked on with the
seeds below HELD_OUT; the figures to quote are those of a seed from there on, as the default is.
"""

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from app.catalog import load
from app.domain.comparison import compare
from app.domain.run import Run
from app.services.assessment import assess
from app.services.diagnosing import Explained, explain_pair
from app.services.profiles import catalog_book
from app.services.runs import RunView
from app.store.records import StoredRun, Upload
from benchmarks.report import Report, Target, as_json, as_text, machine
from benchmarks.synthetic.deployment import Deployment
from benchmarks.synthetic.handing import TOOLS, Tools
from benchmarks.synthetic.kinds import KINDS
from benchmarks.synthetic.pairs import Pair, draw
from benchmarks.synthetic.stream import Noise

HELD_OUT = 10000
TARGETS = {
    "first_cause_right": Target(0.85, "at least"),
    "phase_right": Target(0.98, "at least"),
    "pairs": Target(200, "at least"),
    "kinds": Target(20, "at least"),
}
NOTHING, NO_CAUSE = "nothing", "no cause"
KINDS_BY_NAME = {kind.name: kind.cause for kind in KINDS}
_WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Answer:
    """What was said of one pair, beside what was done. `between` are the causes that were not told apart, with what would."""

    kind: str
    tools: str
    cause: str | None
    phase: str
    said: str
    said_phase: str
    between: tuple[str, ...]
    causes: tuple[str, ...]
    drawn: int

    @property
    def right(self) -> bool:
        """Whether the first-ranked cause is the one that was put in; where nothing was, whether nothing is said."""
        return self.said == (self.cause or NOTHING)

    @property
    def undetermined(self) -> bool:
        """Whether the cause that was put in is among those said not to be told apart, with what would."""
        return not self.right and self.cause in self.between

    @property
    def phase_right(self) -> bool:
        """Whether the phase that moved is the one that is named."""
        return self.said_phase == self.phase


def view(deployment: Deployment, run: Run, number: int) -> RunView:
    """A run as a page has it after it was read from the store: without its samples, with model, device and assessment."""

    model, hardware, engine = deployment.model, deployment.hardware, deployment.engine
    assessment = assess(run, model.architecture, hardware, engine)
    upload = Upload(number, "default", f"pair-{number}.json", run.format, "", 0, _WHEN)
    stored = StoredRun(
        id=number,
        run=replace(run, samples=None),
        upload=upload,
        seq_in_file=0,
        project="default",
        model_slug=model.slug,
        hardware_slug=hardware.slug,
        tags=(),
        notes="",
        mbu=None,
        mfu=None,
        prefill_share=None,
        has_samples=True,
        said_by_file=None,
        said_by_person={},
        gone_since=None,
        happened_at=_WHEN,
        created_at=_WHEN,
        updated_at=_WHEN,
    )
    return RunView(stored, model, hardware, engine, assessment, catalog_book(load()))


def explained(pair: Pair) -> Explained:
    """What /compare says of a pair."""
    base, other = (view(side, run, number) for number, (side, run) in enumerate(zip(pair.sides, (pair.base, pair.other), strict=True), 1))
    return explain_pair(compare(base.side(), other.side()), base, other)


def answer(pair: Pair) -> Answer:
    """The diagnosis of a pair beside what was done to it."""
    found = explained(pair).diagnosis
    causes = tuple(each.rule.cause or each.rule.id for each in found.findings)
    between = tuple(cause for each in found.undetermined for cause in each.between)
    said = causes[0] if causes else NOTHING if found.phase == "none" else NO_CAUSE
    return Answer(pair.kind.name, pair.tools, pair.kind.cause, pair.phase, said, found.phase, between, causes, pair.drawn)


def asked(task: tuple[int, int]) -> Answer:
    """The answer to the pair with this index under this seed: kinds in turn, and with each round of them the next kind of tools."""
    seed, index = task
    kind = KINDS[index % len(KINDS)]
    return answer(draw(load(), kind, tools_of(index), seed * 1_000_003 + index, Noise()))


def tools_of(index: int) -> Tools:
    """Which tools measured the pair with this index."""
    return TOOLS[(index // len(KINDS) + index % len(KINDS)) % len(TOOLS)]


def answers(pairs: int, seed: int, processes: int) -> list[Answer]:
    """The answers to all pairs, in order."""
    tasks = [(seed, index) for index in range(pairs)]
    if processes == 1:
        return [asked(task) for task in tasks]
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(asked, tasks, chunksize=4))


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found) if found else float("nan")


def figures(found: Sequence[Answer]) -> dict[str, float]:
    """The figures of the contract, strict, and beside them the share that names the cause among those not told apart."""
    still = [each for each in found if each.cause is None]
    return {
        "first_cause_right": _share([each.right for each in found]),
        "phase_right": _share([each.phase_right for each in found]),
        "pairs": float(len(found)),
        "kinds": float(len({each.kind for each in found})),
        "right_or_rightly_undetermined": _share([each.right or each.undetermined for each in found]),
        "false_findings_without_a_change": _share([bool(each.causes) for each in still]),
    }


def groups(found: Sequence[Answer]) -> list[dict[str, object]]:
    """By kind of change and by kind of tools: how many, right, rightly undetermined; then the confusion table."""
    rows: list[dict[str, object]] = []
    for by in ("tools", "kind"):
        for name in dict.fromkeys(getattr(each, by) for each in found):
            part = [each for each in found if getattr(each, by) == name]
            rows.append(
                {
                    "by": {by: name},
                    "n": len(part),
                    "right": sum(each.right for each in part),
                    "undetermined": sum(each.undetermined for each in part),
                    "phase_right": sum(each.phase_right for each in part),
                    "said": dict(Counter(each.said for each in part).most_common()),
                    "phases": dict(Counter(f"{each.phase} → {each.said_phase}" for each in part if not each.phase_right).most_common()),
                }
            )
    return rows


def report(pairs: int, seed: int, processes: int) -> Report:
    """Draw, ask and count."""
    found = answers(pairs, seed, processes)
    conditions = {
        "seed": seed,
        "held_out": seed >= HELD_OUT,
        "tools": dict(Counter(each.tools for each in found)),
        **machine(),
    }
    return Report(figures(found), groups(found), conditions)


def as_markdown(found: Report) -> str:
    """The confusion table as docs show it: one row a kind of tools and a kind of change."""
    lines = [
        "| change | pairs | cause right | rightly undetermined | phase right | said instead |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in found.groups:
        ((by, name),) = row["by"].items()
        wrong = {said: n for said, n in row["said"].items() if said != (KINDS_BY_NAME.get(name) or NOTHING)}
        instead = "" if by == "tools" else ", ".join(f"{said} {n}" for said, n in wrong.items())
        title = f"all, tools: {name}" if by == "tools" else name.replace("_", " ")
        lines.append(f"| {title} | {row['n']} | {row['right']} | {row['undetermined']} | {row['phase_right']} | {instead or '–'} |")
    return "\n".join(lines)


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.diagnosis", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true", help="the confusion table as in docs/diagnosis.md")
    parser.add_argument("--pairs", type=int, default=6 * len(KINDS))
    parser.add_argument("--seed", type=int, default=HELD_OUT)
    parser.add_argument("--processes", type=int, default=min(2, len(os.sched_getaffinity(0))))
    given = parser.parse_args()
    found = report(given.pairs, given.seed, given.processes)
    print(as_json(found) if given.json else as_markdown(found) if given.markdown else as_text(found, TARGETS))


if __name__ == "__main__":
    main()
