"""Stored runs or files compared: the first is the base. A side is one run, or several repeats of one measurement."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from app.domain.comparison import Comparison, Side, Spreads, comparability, compare
from app.domain.errors import InvalidRequest, NotFound
from app.domain.pooling import pooled, spreads_of
from app.domain.run import Run
from app.services.assessment import assess
from app.services.baselines import baseline_of
from app.services.context import Context
from app.services.diagnosing import Explained, explain_pair
from app.services.noise import spreads_between
from app.services.profiles import ProfileBook
from app.services.runs import RunView, views

MAX_RUNS = 8
MAX_REPEATS = 10
BASELINE: Literal["baseline"] = "baseline"
SIDE_PATTERN = r"^[0-9]{1,19}(,[0-9]{1,19}){0,9}$"
SideIds = int | Sequence[int]

_LARGEST = 2**63 - 1
# What may differ between repeats: they are taken at other times, and their lengths are drawn.
_FREE = frozenset({"prompt_tokens_mean", "output_tokens_mean"})


def compare_runs(context: Context, sides: Sequence[SideIds]) -> tuple[list[RunView], list[Comparison]]:
    """One view for each side and the comparison of each other one with the first; repeats are told by their means.

    Raises NotFound, or InvalidRequest for fewer than two sides, too many, one run on two sides, or repeats that are none.
    """
    groups = list(dict.fromkeys((side,) if isinstance(side, int) else tuple(side) for side in sides))
    if len(groups) < 2:
        raise InvalidRequest("other", "A comparison needs two different runs: name a base and at least one other.")
    if len(groups) > MAX_RUNS:
        raise InvalidRequest("other", f"{len(groups)} runs are too many for one page: {MAX_RUNS} at most.")
    ids = [run_id for group in groups for run_id in group]
    doubled = next((run_id for run_id in ids if ids.count(run_id) > 1), None)
    if doubled is not None:
        raise InvalidRequest("other", f"Run {doubled} stands on two sides: name it once.")
    found = dict(zip(ids, views(context, ids), strict=True))
    shown = [side_view([found[run_id] for run_id in group]) for group in groups]
    base = shown[0].side()
    spreads = _spreads(context, shown)
    return shown, [compare(base, other.side(), spreads[other.id]) for other in shown[1:]]


def _spreads(context: Context, shown: Sequence[RunView]) -> dict[int, Spreads]:
    """What each other side's changes are judged by: the spread of named repeats, the larger of both sides; else that of the series."""
    base, *others = shown
    named = {view.id: spreads_of([member.side().run for member in view.repeats]) for view in shown}
    with context.database.read() as session:
        found = spreads_between(session, base.stored, [other.stored for other in others])
    for other in others:
        a, b = named[base.id], named[other.id]
        if a or b:
            found[other.id] = {at: max(a.get(at, 0.0), b.get(at, 0.0)) for at in {*a, *b}}
    return found


def side_ids(text: str, field: str) -> tuple[int, ...]:
    """The runs of one side: "12", or repeats as "12,15,18". Raises InvalidRequest."""
    ids = [int(part) for part in text.split(",")] if re.match(SIDE_PATTERN, text) else []
    if not ids or not all(0 < run_id <= _LARGEST for run_id in ids):
        said = f"{field} is {text[:60]!r}: name a run by its number, such as 12, or repeats of one side as 12,15,18"
        raise InvalidRequest(field, f"{said} ({MAX_REPEATS} at most).")
    return tuple(dict.fromkeys(ids))


def sides_of(context: Context, base: str, others: Sequence[str]) -> list[tuple[int, ...]]:
    """The sides that an address names; `base` may be the word baseline, that of the first other's series. Raises as its parts do."""
    found = [side_ids(text, "other") for text in others]
    if base != BASELINE:
        return [side_ids(base, "base"), *found]
    if not found:
        raise InvalidRequest("other", "The baseline of which run? Name it as other, such as other=12.")
    return [(base_of(context, BASELINE, found[0][0]),), *found]


def side_view(members: Sequence[RunView]) -> RunView:
    """Repeats as one view with their means; a single run is itself. Raises InvalidRequest where they are not repeats of one another."""
    first = members[0]
    if len(members) == 1:
        return first
    for member in members[1:]:
        if why := _not_a_repeat(first, member):
            raise InvalidRequest("other", f"Run {member.id} is no repeat of run {first.id}: {why} Name it as a side of its own.")
    run = pooled([member.side().run for member in members])
    assessment = assess(run, first.model.architecture if first.model else None, first.hardware, first.engine)
    known = {flag.flag for flag in run.flags}
    further = tuple(flag for flag in assessment.flags if flag.flag not in known)
    return replace(first, stored=replace(first.stored, run=run), assessment=replace(assessment, flags=further), repeats=tuple(members))


def _not_a_repeat(first: RunView, member: RunView) -> str:
    """Why a run does not repeat another: another workload or load, or a setting that is not the same."""
    return _unlike(first.side(), member.side())


def _unlike(first: Side, member: Side) -> str:
    found = comparability(first, member)
    if found.reasons:
        return found.reasons[0]
    changed = next((item for item in found.differing if item.key not in _FREE and not item.key.startswith("label: ")), None)
    return "" if changed is None else f"{changed.key} differs, {changed.base} against {changed.other}."


def base_of(context: Context, base: int | Literal["baseline"], run_id: int) -> int:
    """The number of the base: itself, or the run that is the baseline of the other's series. Raises NotFound when it has none."""
    if base != BASELINE:
        return base
    there = baseline_of(context, run_id)
    if there is None:
        raise NotFound(f"Run {run_id} has no baseline, so it was never compared: make a run of its series the baseline first.")
    return there.run_id


def file_side(book: ProfileBook, number: int, run: Run) -> Side:
    """A run that is not stored as one side, priced by what its file names."""
    settings = {"model": run.model, "hardware": run.hardware, "engine": run.engine, "tp": run.tp, "weight_dtype": run.weight_dtype}
    model = book.find_model(run.model)
    found = assess(run, model.architecture if model else None, book.find_hardware(run.hardware), book.find_engine(run.engine))
    return Side(number, run, {**settings, "concurrency": run.workload.concurrency}, found.point, found.reasons)


def compare_files(book: ProfileBook, sides: Sequence[Sequence[Run]]) -> list[Comparison]:
    """Each other side with the first, of runs that are not stored; several runs of one side are repeats, told by their means.

    A side's number counts the runs before it. Raises InvalidRequest for fewer than two sides, and for repeats that are none.
    """
    if len(sides) < 2:
        raise InvalidRequest("runs", "A comparison needs two runs: name two files or ids, the first is the base.")
    shown, spreads, number = [], [], 1
    for runs in sides:
        shown.append(_repeated_side(book, number, runs))
        spreads.append(spreads_of(runs))
        number += len(runs)
    base, *others = shown
    return [
        compare(base, other, {at: max(spreads[0].get(at, 0.0), own.get(at, 0.0)) for at in {*spreads[0], *own}})
        for other, own in zip(others, spreads[1:], strict=True)
    ]


def _repeated_side(book: ProfileBook, number: int, runs: Sequence[Run]) -> Side:
    members = [file_side(book, number + place, run) for place, run in enumerate(runs)]
    if len(members) == 1:
        return members[0]
    for member in members[1:]:
        if why := _unlike(members[0], member):
            raise InvalidRequest("runs", f"Files joined by commas are repeats, and one is none: {why} Name it as a side of its own.")
    return replace(file_side(book, number, pooled(runs)), repeats=tuple(member.id for member in members))


def explained(views: Sequence[RunView], comparisons: Sequence[Comparison]) -> list[Explained]:
    """Why each other run differs from the first."""
    return [explain_pair(comparison, views[0], view) for comparison, view in zip(comparisons, views[1:], strict=True)]
