"""`phaseline measure …`: one measurement here and now, no server needed; the file it writes imports."""

import typer

from app.commands.measure_endpoint import endpoint

measure = typer.Typer(no_args_is_help=True, help="One measurement here and now; writes a file that imports.")


@measure.callback()
def _measure() -> None:
    """One measurement here and now; writes a file that imports."""


measure.command()(endpoint)
