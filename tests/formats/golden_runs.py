"""Golden summaries: what this tree makes of every real sample file, one JSON file a format in `golden/`.

They hold our figures alone: metrics with origin and definition, workload, counts, names of flags; no text, array or configuration of
the file. A change of an importer shows there as a diff to review. Make them anew with

    python -m tests.formats.golden_runs

Each entry carries in `reviewed` how its figures were checked against the file by hand. Where figures change, the note is emptied, and
the test fails until somebody has looked at the file again and said so.
"""

import csv
import json
from pathlib import Path
from typing import Any

from app.domain.errors import ImportRefused
from app.domain.run import Run
from app.formats import IMPORTERS, read_runs
from app.services.summary import run_summary
from tests.conftest import SHARED

FOLDER = Path(__file__).with_name("golden")
_KEPT = (
    "engine", "engine_version", "model", "hardware", "devices", "tp", "pp", "ep", "weight_dtype", "kv_dtype", "started_at", "duration_s",
    "load_mode", "measured_at", "token_count_source", "rate_unlimited",
)  # fmt: skip
_FIGURES = ("workload", "requests", "metrics")
_DIGITS = 9
# Of a file of many operating points these many are kept, evenly spaced, the first and the last among them.
_MOST_RUNS = 12
_USUAL = {"definition": "canonical", "rate_unlimited": False, "context_depth_tokens": 0}


def expected() -> dict[str, dict[str, str]]:
    """What the origin list expects of each sample of a format that is read here: {format: {file name: expectation}}."""
    known = {importer.id for importer in IMPORTERS}
    found: dict[str, dict[str, str]] = {}
    with (SHARED / "samples" / "PROVENANCE.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            folder, name = row["path"].split("/", 1)
            if folder in known:
                found.setdefault(folder, {})[name] = row["expect"]
    return found


def outcome(format_id: str, name: str) -> dict[str, Any]:
    """What becomes of a sample: {"count": of its runs, "runs": [entry, …]}, or {"refused": our sentence}."""
    data = (SHARED / "samples" / format_id / name).read_bytes()
    try:
        parsed = read_runs("sample", data)
    except ImportRefused as refusal:
        # A sentence about a file that nobody reads ends with the list of what is read, which grows.
        return {"refused": refusal.reason.partition(" These are")[0]}
    count = len(parsed.runs)
    places = range(count) if count <= _MOST_RUNS else [round(step * (count - 1) / (_MOST_RUNS - 1)) for step in range(_MOST_RUNS)]
    return {"count": count, "runs": [entry(parsed.runs[place]) for place in places]}


def entry(run: Run) -> dict[str, Any]:
    """The figures of a run that are kept; what is not known, or as it is for nearly all, is left out."""
    summary = run_summary(run)
    kept = {key: summary[key] for key in _KEPT if summary.get(key) is not None}
    figures = {key: _sparse(summary[key]) for key in _FIGURES}
    flags = {flag["flag"]: flag["withholds"] for flag in summary["flags"]}
    samples = {} if run.samples is None else {"samples": run.samples.size}
    return {**_sparse(kept), **figures, **samples, "flags": flags}


def _sparse(value: Any) -> Any:
    """Without null and what is usual, figures rounded to 9 digits."""
    if isinstance(value, dict):
        return {key: _sparse(child) for key, child in value.items() if child is not None and _USUAL.get(key, ...) != child}
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def kept(format_id: str) -> dict[str, Any]:
    """The golden file of a format, empty when there is none: {file name: {"reviewed", "count", "runs"} or {"reviewed", "refused"}}."""
    path = FOLDER / f"{format_id}.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return found


def without_flags(found: dict[str, Any]) -> Any:
    """What a review speaks of: figures, not the flags beside them."""
    return found.get("refused") or [{key: value for key, value in run.items() if key != "flags"} for run in found["runs"]]


def rewritten(format_id: str, names: list[str]) -> dict[str, Any]:
    """The golden file of a format as it is now. A review stays where the figures it speaks of are the same."""
    before, now = kept(format_id), {}
    for name in names:
        found = outcome(format_id, name)
        old = before.get(name)
        same = old is not None and ("runs" in old) == ("runs" in found) and without_flags(old) == without_flags(found)
        now[name] = {"reviewed": old["reviewed"] if old is not None and same else "", **found}
    return now


def as_text(found: dict[str, Any]) -> str:
    """A golden file as text: one line for each key of a run, so that a diff shows what changed."""
    files = []
    for name, each in found.items():
        lines = [f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in each.items() if key != "runs"]
        if "runs" in each:
            lines.append('  "runs": [\n   ' + ",\n   ".join(_run_text(run) for run in each["runs"]) + "\n  ]")
        files.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(files) + "\n}\n"


def _run_text(run: dict[str, Any]) -> str:
    metrics = ",\n     ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in run["metrics"].items())
    rest = {key: value for key, value in run.items() if key not in ("metrics", "flags")}
    head = json.dumps(rest, ensure_ascii=False)[1:-1]
    return f"{{{head},\n    " + f'"metrics": {{\n     {metrics}}},\n    "flags": {json.dumps(run["flags"])}}}'


if __name__ == "__main__":
    for format_id, names in expected().items():
        text = as_text(rewritten(format_id, sorted(names)))
        (FOLDER / f"{format_id}.json").write_text(text, encoding="utf-8")
