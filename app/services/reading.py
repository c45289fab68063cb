"""Reading result files without storing them."""

from collections.abc import Sequence
from typing import Any

from app.domain.checks import as_shown
from app.domain.errors import ImportRefused
from app.formats import joined, read_runs
from app.services.assessment import assess
from app.services.profiles import ProfileBook
from app.services.refusals import refusal_json
from app.services.suggesting import hints, hints_json
from app.services.summary import run_summary


def read_files(book: ProfileBook, files: Sequence[tuple[str, bytes]]) -> dict[str, Any]:
    """What `phaseline parse` prints: run summaries, and for each file that gave none the reason and what was tried."""
    found: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    for name, data in joined(files):
        try:
            parsed = read_runs(name, data)
        except ImportRefused as error:
            refused.append(refusal_json(name, error.reason, error.tried, error.flag))
            continue
        for run in map(as_shown, parsed.runs):
            model = book.find_model(run.model)
            assessment = assess(run, model.architecture if model else None, book.find_hardware(run.hardware), book.find_engine(run.engine))
            found.append({**run_summary(run, assessment), "file": name, "suggestions": hints_json(hints(book, run, name))})
    return {"runs": found, "refused": refused}
