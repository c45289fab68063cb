"""Keys of targets: they stay on this machine, in the environment or in a file, under the name that the target gives."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.domain.errors import PhaselineError
from app.logs import redactor

_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)


class KeyMissing(PhaselineError):
    """The key that a target names is not on this machine."""


def key_of(reference: str, folder: Path) -> str:
    """The key of this name: PHASELINE_KEY_NAME, or the text of the file NAME in `folder`. It is never logged from then on.

    Raises KeyMissing, which says where it was looked for.
    """
    if not _REFERENCE.fullmatch(reference) or ".." in reference:
        raise KeyMissing("The target's key_ref is no name of a key: letters, digits, dot, dash and underscore.")
    variable = "PHASELINE_KEY_" + re.sub(r"[^A-Z0-9]", "_", reference.upper())
    key = os.environ.get(variable, "").strip()
    if not key:
        try:
            key = (folder / reference).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            key = ""
    if not key:
        raise KeyMissing(f"The key {reference} is not on this worker: set {variable}, or put it into {folder / reference}.")
    redactor.learn(key)
    return key


def resolved(target: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A target with its address and headers for the measuring process. Raises KeyMissing."""
    host = str(target["host"])
    origin = f"{target['scheme']}://{f'[{host}]' if ':' in host else host}:{target['port']}"
    metrics = target.get("metrics_path")
    reference = target.get("key_ref")
    return {
        **{key: target[key] for key in ("name", "scheme", "host", "port", "networks")},
        "url": origin + str(target["base_path"]),
        "metrics_url": origin + str(metrics) if metrics is not None else None,
        "headers": {"authorization": f"Bearer {key_of(str(reference), folder)}"} if reference else {},
    }
