"""Gates over runs or files: the judgement as JSON-ready data and in sentences."""

from collections.abc import Sequence
from typing import Any

from app.domain.comparison import Comparison
from app.domain.gates import Clause, ClauseResult, Gate, is_unjudged, judge, judge_alone
from app.domain.metrics import METRICS
from app.domain.quantity import change_percent, in_metric_unit, percent
from app.services.baselines import baseline_of
from app.services.comparing import BASELINE, compare_runs, side_ids, side_view
from app.services.context import Context
from app.services.runs import views

NO_BASELINE = "the run has no baseline: it was never compared"
IS_ITSELF = "the run is the baseline itself"


def gates_of(clauses: Sequence[Clause], comparisons: Sequence[Comparison], allow_missing: bool = False) -> list[Gate]:
    """Each pair by the same clauses."""
    return [judge(clauses, comparison, allow_missing) for comparison in comparisons]


def gate_sides(context: Context, base: str, run: str, clauses: Sequence[Clause], allow_missing: bool) -> Gate:
    """A stored run, or the means of repeats, against another, or against its baseline; without one only absolute clauses can be judged.

    Raises NotFound for an unknown run, InvalidRequest when both are the same one by their numbers, or repeats are none.
    """
    ids = side_ids(run, "run")
    if base != BASELINE:
        _, comparisons = compare_runs(context, [side_ids(base, "base"), ids])
        return judge(clauses, comparisons[0], allow_missing)
    there = baseline_of(context, ids[0])
    if there is None or there.run_id in ids:
        why = NO_BASELINE if there is None else IS_ITSELF
        return judge_alone(clauses, side_view(views(context, ids)).side(), why, allow_missing)
    _, comparisons = compare_runs(context, [(there.run_id,), ids])
    return judge(clauses, comparisons[0], allow_missing)


def all_passed(gates: Sequence[Gate]) -> bool:
    """True when no clause of any of them is broken."""
    return all(gate.passed for gate in gates)


def gates_json(gates: Sequence[Gate]) -> dict[str, Any]:
    """The answer of /gate: one verdict, and every clause of every pair with its numbers and its sentence."""
    return {
        "verdict": "pass" if all_passed(gates) else "fail",
        "sentence": gates_sentence(gates),
        "clauses": [_clause_json(gate, result) for gate in gates for result in gate.results],
    }


def _clause_json(gate: Gate, result: ClauseResult) -> dict[str, Any]:
    clause = result.clause
    return {
        "clause": clause.text,
        "base_run": gate.base_id,
        "run": gate.run_id,
        "repeats": {"base": list(gate.base_ids), "run": list(gate.run_ids)},
        "key": clause.key,
        "stat": clause.stat,
        "operator": clause.operator,
        "bound": clause.bound,
        "relative": clause.relative,
        "base": result.base,
        "value": result.value,
        "change": result.change,
        "noise": result.noise,
        "n": list(result.n),
        "outcome": result.outcome,
        "broken": result.broken,
        "note": result.note,
        "sentence": clause_sentence(result),
    }


def gates_sentence(gates: Sequence[Gate]) -> str:
    """How many clauses are broken, and which; how many of them, or beside them, could not be judged."""
    results = [result for gate in gates for result in gate.results]
    broken = [result for result in results if result.broken]
    allowed = sum(is_unjudged(result.outcome) and not result.broken for result in results)
    left = f"; {allowed} could not be judged, which is allowed" if allowed else ""
    asked = f"{len(results)} {'clause' if len(results) == 1 else 'clauses'}"
    if not broken:
        return f"The gate passes: {asked}, none broken{left}."
    named = ", ".join(dict.fromkeys(result.clause.text for result in broken))
    return f"The gate fails: {len(broken)} of {asked} broken ({named}){_because(broken)}{left}."


def _because(broken: Sequence[ClauseResult]) -> str:
    """That some of the broken clauses are so for want of figures."""
    unjudged = sum(is_unjudged(result.outcome) for result in broken)
    if not unjudged:
        return ""
    reason = f"because {'it' if unjudged == 1 else 'they'} could not be judged"
    return f", {reason}" if unjudged == len(broken) else f", {unjudged} of them {reason}"


def gates_lines(gates: Sequence[Gate]) -> list[str]:
    """The judgement for a terminal: nothing without a gate."""
    if not gates:
        return []
    results = [result for gate in gates for result in gate.results]
    return [gates_sentence(gates), *(f"  {'BAD' if result.broken else 'ok '} {clause_sentence(result)}" for result in results)]


def clause_sentence(result: ClauseResult) -> str:
    """What was found, in numbers, and why that breaks the clause or does not."""
    name = figure_name(result.clause)
    if is_unjudged(result.outcome):
        ends = "which breaks the clause" if result.broken else "which is allowed"
        return f"{name} cannot be judged ({result.outcome}: {result.note.rstrip('.')}), {ends}."
    found = f"{name} {_found(result)}"
    if result.outcome == "within noise":
        return f"{found}: past the bound of {_bound(result.clause)}, but within the noise of {percent(result.noise)}."
    side = "above" if result.clause.operator == ">" else "below"
    return f"{found}: {side} {_bound(result.clause)}." if result.broken else f"{found}: not {side} {_bound(result.clause)}."


def figure_name(clause: Clause) -> str:
    """The figure of a clause in words: "ITL p50"."""
    title = METRICS[clause.key].title
    return title if clause.stat == "value" else f"{title} {clause.stat}"


def _found(result: ClauseResult) -> str:
    unit = METRICS[result.clause.key].unit
    value = in_metric_unit(result.value, unit)
    if result.change is None or result.base is None:
        return f"is {value}"
    return f"went from {in_metric_unit(result.base, unit)} to {value}, {change_percent(result.change)}"


def _bound(clause: Clause) -> str:
    return change_percent(clause.bound) if clause.relative else in_metric_unit(clause.bound, METRICS[clause.key].unit)
