"""`phaseline compare`: which phase moved between runs, and why."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from app.catalog import load
from app.commands.common import Json, contents, print_json, ready_context
from app.domain.checks import as_shown
from app.domain.comparison import Comparison
from app.domain.errors import InvalidRequest
from app.domain.gates import parse_spec
from app.domain.run import Run
from app.formats import joined, read_runs
from app.services.comparing import BASELINE, compare_files, compare_runs, explained, sides_of
from app.services.comparison_json import comparison_json
from app.services.diagnosing import Explained, explain_files
from app.services.gating import all_passed, gates_json, gates_lines, gates_of
from app.services.markdown import comparison_markdown
from app.services.plain_text import comparison_lines
from app.services.profiles import catalog_book

# The exit code of a comparison whose gate is broken: 2 is what the user can mend, 1 a fault of ours.
_GATE_BROKEN = 3


def compare_command(
    runs: Annotated[list[str], typer.Argument(help="Run ids or files, repeats joined by commas; the first is the base, or: baseline.")],
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
    if any(name.isdigit() for name in names):
        raise InvalidRequest("runs", "Name run ids or files, not both in one comparison.")
    sides = [side for name in names for side in _sides_of_files(name)] if _repeated(names) else _sides_of(list(names))
    comparisons = compare_files(catalog_book(load()), sides)
    return comparisons, [explain_files(comparison) for comparison in comparisons]


def _repeated(names: Sequence[str]) -> bool:
    """Whether a name is several files joined by commas, and none by itself."""
    return any("," in name and not Path(name).exists() for name in names)


def _sides_of_files(name: str) -> list[list[Run]]:
    """The sides of one name: of files joined by commas one, of which each file is a repeat. Raises InvalidRequest."""
    if not _repeated([name]):
        return _sides_of([name])
    sides = [(part, _sides_of([part])) for part in name.split(",")]
    for part, found in sides:
        if len(found) != 1:
            raise InvalidRequest("runs", f"{part} holds {len(found)} runs: files joined by commas are repeats, so each must hold one.")
    return [[found[0][0] for _, found in sides]]


def _sides_of(names: Sequence[str]) -> list[list[Run]]:
    """Each run of the files as a side of its own; parts of one result are read as one."""
    files = joined(contents([Path(name) for name in names]))
    return [[as_shown(run)] for name, data in files for run in read_runs(name, data).runs]
