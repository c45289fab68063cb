"""`phaseline compare`: which phase moved between runs, and why."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from app.catalog import load
from app.commands.common import Json, contents, print_json, ready_context
from app.domain.checks import as_shown
from app.domain.comparison import Comparison, Side, compare
from app.domain.errors import InvalidRequest
from app.domain.gates import parse_spec
from app.formats import joined, read_runs
from app.services.comparing import BASELINE, compare_runs, explained, file_side, sides_of
from app.services.comparison_json import comparison_json
from app.services.diagnosing import Explained, explain_files
from app.services.gating import all_passed, gates_json, gates_lines, gates_of
from app.services.markdown import comparison_markdown
from app.services.plain_text import comparison_lines
from app.services.profiles import catalog_book

# The exit code of a comparison whose gate is broken: 2 is what the user can mend, 1 a fault of ours.
_GATE_BROKEN = 3


def compare_command(
    runs: Annotated[list[str], typer.Argument(help="Run ids (repeats as 1,2,3) or files; the first is the base, or the word baseline.")],
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
    fail_on: Annotated[list[str] | None, typer.Option(help="Exit with 3 when this comes true, such as 'itl.p50>+5%'.")] = None,
    allow_missing: Annotated[bool, typer.Option("--allow-missing", help="A clause that cannot be judged is not broken.")] = False,
) -> None:
    """Which phase moved between runs, by how much, and why."""
    clauses = parse_spec(fail_on or ())
    comparisons, reasons = _comparisons(runs)
    gates = gates_of(clauses, comparisons, allow_missing) if clauses else []
    if as_json:
        print_json({**comparison_json(comparisons, reasons), **({"gate": gates_json(gates)} if gates else {})})
    elif markdown:
        print(comparison_markdown(comparisons, reasons, gates), end="")
    else:
        for comparison, reason in zip(comparisons, reasons, strict=True):
            print("\n".join(comparison_lines(comparison, reason)))
        print("\n".join(gates_lines(gates)), end="\n" if gates else "")
    if not all_passed(gates):
        raise typer.Exit(_GATE_BROKEN)


def _comparisons(names: Sequence[str]) -> tuple[list[Comparison], list[Explained]]:
    stored = names[1:] if names[0] == BASELINE else names
    if stored and all(re.fullmatch("[0-9,]+", name) for name in stored):
        context = ready_context()
        views, comparisons = compare_runs(context, sides_of(context, names[0], names[1:]))
        return comparisons, explained(views, comparisons)
    sides: list[Side] = []
    if any(name.isdigit() for name in names):
        raise InvalidRequest("runs", "Name run ids or files, not both in one comparison.")
    book = catalog_book(load())
    for name, data in joined(contents([Path(name) for name in names])):
        for run in map(as_shown, read_runs(name, data).runs):
            sides.append(file_side(book, len(sides) + 1, run))
    if len(sides) < 2:
        raise InvalidRequest("runs", "A comparison needs two runs: name two files or ids, the first is the base.")
    comparisons = [compare(sides[0], side) for side in sides[1:]]
    return comparisons, [explain_files(comparison) for comparison in comparisons]
