"""The command line: its commands by name, and what becomes of errors.

Errors go to standard error as one sentence; exit code 2 for what the user can mend, 1 for a fault of ours.
"""

import sys
from io import TextIOWrapper
from types import TracebackType
from typing import Annotated

import typer

from app import __version__
from app.commands.check import check
from app.commands.compare import compare_command
from app.commands.files import import_command, parse, reimport
from app.commands.measure import measure
from app.commands.predict import calibrate, predict
from app.commands.serve import serve
from app.commands.worker import worker
from app.domain.errors import PhaselineError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Phaseline: prefill and decode of LLM requests, predicted and measured.")
app.command()(serve)
app.command()(worker)
app.command()(predict)
app.command()(calibrate)
app.command()(parse)
app.command(name="import")(import_command)
app.command(name="compare")(compare_command)
app.command()(reimport)
app.command()(check)
app.add_typer(measure, name="measure")


def main() -> None:
    """Run a command. An error is one sentence: exit code 2 for what the user can mend, 1 for a fault of ours."""
    sys.excepthook = _say_fault
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal or pipe that is not UTF-8 gets what it can show, and never an error.
            stream.reconfigure(errors="backslashreplace")
    try:
        code = typer.main.get_command(app).main(prog_name="phaseline", standalone_mode=False)
    except PhaselineError as error:
        print(f"phaseline: {error}", file=sys.stderr)
        sys.exit(2)
    except typer.TyperException as error:
        # Without arguments the help was printed, and there is no message.
        if message := " ".join(error.format_message().split()).rstrip("."):
            print(f"phaseline: {message}. See `phaseline --help`.", file=sys.stderr)
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(1)
    sys.exit(code or 0)


def _say_fault(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What is printed before the interpreter ends with exit code 1; the trace too in its development mode."""
    if sys.flags.dev_mode or not issubclass(kind, Exception):
        sys.__excepthook__(kind, error, trace)
    print(f"phaseline: {kind.__name__}, a fault of ours: run the command as `python -X dev -m app …` and report it.", file=sys.stderr)


@app.callback(invoke_without_command=True)
def version_option(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Options of every command."""
    if version:
        print(__version__)
        raise typer.Exit()
