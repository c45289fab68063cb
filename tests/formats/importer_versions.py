"""Which version of each importer gives what: a fingerprint of the runs of every file of tests/data, in `versions/`, one file a format.

A stored run remembers the version that read it, and only a lower one is offered to be read again; so a change of what an importer gives
must move its version (`version` of its IMPORTER, or SHARED_VERSION where all change). After such a change

    python -m tests.formats.importer_versions

writes the fingerprints anew. It refuses while a file gives something else under the same version.
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from app.domain.checks import as_shown
from app.domain.errors import ImportRefused
from app.domain.run import Run
from app.formats import IMPORTERS, current_versions, read_runs

DATA = Path(__file__).resolve().parents[1] / "data"
FOLDER = Path(__file__).with_name("versions")
REFUSED = "refused"
# The last digits of a sum depend on the machine.
_DIGITS = 7
_NOT_READ = ("importer_version",)


def fingerprints(format_id: str) -> dict[str, dict[str, str]]:
    """Of each file of a format: what it holds, and what it gives."""
    found = {}
    for path in sorted((DATA / format_id).iterdir()):
        data = path.read_bytes()
        found[path.name] = {"file": _hash(data), "runs": output(path.name, data)}
    return found


def output(name: str, data: bytes) -> str:
    """The fingerprint of everything that is stored of a file's runs."""
    try:
        runs = read_runs(name, data).runs
    except ImportRefused:
        return REFUSED
    return _hash(json.dumps([plain(as_shown(run)) for run in runs], sort_keys=True).encode())


def plain(value: Any) -> Any:
    """A run as plain data, samples and all: figures rounded, what is not known and the importer's version left out."""
    if isinstance(value, Run) or (is_dataclass(value) and not isinstance(value, type)):
        known = ((item.name, getattr(value, item.name)) for item in fields(value) if item.name not in _NOT_READ)
        return {name: plain(item) for name, item in known if item is not None}
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    return value.isoformat() if isinstance(value, datetime) else value


def kept(format_id: str) -> dict[str, Any]:
    """What is written down for a format: {"version": …, "files": {name: {"file", "runs"}}}; empty when there is nothing."""
    path = FOLDER / f"{format_id}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def changed(before: Mapping[str, Any], now: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The files that are the same as they were and give something else."""
    files: Mapping[str, Mapping[str, str]] = before.get("files", {})
    same = (name for name in files.keys() & now.keys() if files[name]["file"] == now[name]["file"])
    return sorted(name for name in same if files[name]["runs"] != now[name]["runs"])


def unmoved(before: Mapping[str, Any], version: int, now: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Those of the changed files whose importer has no higher version than before."""
    return changed(before, now) if version <= before.get("version", 0) else []


def as_text(version: int, now: Mapping[str, Mapping[str, str]]) -> str:
    """What is written down."""
    return json.dumps({"version": version, "files": now}, indent=1) + "\n"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def main() -> None:
    """Write every fingerprint anew, or say which importer's version has to move first."""
    versions = current_versions()
    for importer in IMPORTERS:
        now = fingerprints(importer.id)
        if names := unmoved(kept(importer.id), versions[importer.id], now):
            sys.exit(f"{importer.id} gives something else for {', '.join(names)}: raise `version` of its IMPORTER, then run this again.")
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{importer.id}.json").write_text(as_text(versions[importer.id], now), encoding="utf-8")


if __name__ == "__main__":
    main()
