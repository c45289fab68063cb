"""`phaseline check`: whether this installation is sound."""

import typer

from app.commands.common import Json, print_json
from app.services.context import make_context
from app.services.startup import soundness
from app.settings import load_settings


def check(as_json: Json = False) -> None:
    """Say whether this installation is sound."""
    context = make_context(load_settings())
    checks = soundness(context)
    ok = all(item.ok for item in checks)
    if as_json:
        print_json({"ok": ok, "checks": [{"name": item.name, "ok": item.ok, "detail": item.detail} for item in checks]})
    else:
        for item in checks:
            print(f"{'ok ' if item.ok else 'BAD'} {item.name}: {item.detail}")
    if not ok:
        raise typer.Exit(2)
