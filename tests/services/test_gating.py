"""The sentence of a gate: each clause counts once, however it ended."""

import pytest

from app.domain.gates import Clause, ClauseResult, Gate, Outcome
from app.services.gating import gates_sentence


def _results(outcome: Outcome, broken: bool, names: str) -> tuple[ClauseResult, ...]:
    return tuple(ClauseResult(Clause(name, "itl_s", "mean", ">", 0.05, True), outcome, broken) for name in names)


def _sentence(held: str = "", broken: str = "", unjudged: str = "", allowed: bool = False) -> str:
    """The sentence of a gate whose clauses are called by one letter each."""
    missing = _results("missing", not allowed, unjudged)
    return gates_sentence([Gate(1, 2, (*_results("holds", False, held), *_results("broken", True, broken), *missing))])


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (_sentence("a"), "The gate passes: 1 clause, none broken."),
        (_sentence("ab"), "The gate passes: 2 clauses, none broken."),
        (_sentence("a", "b"), "The gate fails: 1 of 2 clauses broken (b)."),
        (_sentence("", "ab"), "The gate fails: 2 of 2 clauses broken (a, b)."),
        (_sentence("", "", "a"), "The gate fails: 1 of 1 clause broken (a), because it could not be judged."),
        (_sentence("a", "", "bc"), "The gate fails: 2 of 3 clauses broken (b, c), because they could not be judged."),
        (_sentence("", "a", "b"), "The gate fails: 2 of 2 clauses broken (a, b), 1 of them because it could not be judged."),
        (_sentence("x", "a", "bc"), "The gate fails: 3 of 4 clauses broken (a, b, c), 2 of them because they could not be judged."),
        (_sentence("", "", "a", True), "The gate passes: 1 clause, none broken; 1 could not be judged, which is allowed."),
        (_sentence("a", "", "bc", True), "The gate passes: 3 clauses, none broken; 2 could not be judged, which is allowed."),
        (_sentence("", "a", "b", True), "The gate fails: 1 of 2 clauses broken (a); 1 could not be judged, which is allowed."),
    ],
)
def test_each_clause_counts_once(found: str, sentence: str) -> None:
    assert found == sentence


def test_the_same_clause_of_several_runs_is_named_once() -> None:
    gates = [Gate(1, run, _results("broken", True, "a")) for run in (2, 3)]
    assert gates_sentence(gates) == "The gate fails: 2 of 2 clauses broken (a)."
