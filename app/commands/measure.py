"""`phaseline measure …`: one measurement here and now, no server needed; the file it writes imports."""

import typer

from app.commands.measure_endpoint import endpoint
from app.commands.measure_here import device, model

measure = typer.Typer(no_args_is_help=True, help="One measurement here and now; writes a file that imports.")


@measure.callback()
def _measure() -> None:
    """One measurement here and now; writes a file that imports."""


measure.command()(device)
measure.command()(model)
measure.command()(endpoint)
