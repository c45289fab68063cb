"""`phaseline check`: whether this installation is sound."""

import typer

from app.commands.common import Json, print_json
from app.services.context import make_context
from app.services.startup import Check, soundness
from app.settings import load_settings
from app.worker import nvml
from app.worker.devices import devices


def check(as_json: Json = False) -> None:
    """Say whether this installation is sound."""
    context = make_context(load_settings())
    checks = [*soundness(context), _devices()]
    ok = all(item.ok for item in checks)
    if as_json:
        print_json({"ok": ok, "checks": [{"name": item.name, "ok": item.ok, "detail": item.detail} for item in checks]})
    else:
        for item in checks:
            print(f"{'ok ' if item.ok else 'BAD'} {item.name}: {item.detail}")
    if not ok:
        raise typer.Exit(2)


def _devices() -> Check:
    """What a worker of this machine could measure."""
    try:
        found = devices()
    except nvml.DeviceLost as error:
        return Check("devices", False, str(error))
    listed = ", ".join(f"{device.name} ({'/'.join(device.backends) or 'no backend: install phaseline[gpu]'})" for device in found)
    gpu = "" if nvml.available() else "; GPUs are looked for with phaseline[gpu]"
    return Check("devices", True, listed + gpu)
