"""The run that would decide between causes: parameters of a measuring job, and the same as a command for a machine without one.

A job carries no addresses, so the target is the person's to name; everything else is that of the run in question, but for what the
question itself varies.
"""

import shlex
from collections.abc import Mapping
from typing import Any

from app.domain.diagnosis import Undetermined
from app.domain.run import Run

SERVER = "endpoint_sweep"
# The command's option for each list of the job.
_OPTIONS = {"concurrency": "--concurrency", "rates_per_s": "--rate", "prompt_tokens": "--prompt", "output_tokens": "--output"}


def separating_run(question: Undetermined, run: Run | None) -> dict[str, Any] | None:
    """Kind and parameters of the job that decides; None where it is not a run that decides but a setting to look up."""
    if question.run is None:
        return None
    asked = {key: list(value) if isinstance(value, tuple) else value for key, value in question.run.items()}
    kind = str(asked.pop("kind", SERVER))
    return {"kind": kind, **(_as_before(run) if kind == SERVER else {}), **asked}


def _as_before(run: Run | None) -> dict[str, Any]:
    """The load of a run as a sweep of one point; open loops as they were offered."""
    if run is None:
        return {}
    load = run.workload
    found: dict[str, Any] = {} if run.model is None else {"model": run.model}
    for key, mean in (("prompt_tokens", load.prompt_tokens_mean), ("output_tokens", load.output_tokens_mean)):
        if mean is not None and mean >= 1:
            found[key] = [round(mean)]
    if load.concurrency:
        found["concurrency"] = [load.concurrency]
    return found


def command(parameters: Mapping[str, Any]) -> str:
    """The command line that does the same from here."""
    if parameters["kind"] != SERVER:
        return "phaseline measure device"
    words = ["phaseline measure endpoint URL", "--model", shlex.quote(str(parameters.get("model", "MODEL")))]
    for key, option in _OPTIONS.items():
        if parameters.get(key):
            words += [option, ",".join(f"{value:g}" for value in parameters[key])]
    return " ".join(words)
