"""The places around a run that may hint at what its file does not say, and what they hint at."""

import re
from collections.abc import Mapping
from typing import Any

from app.domain.identity import IDENTITY
from app.domain.run import Run
from app.domain.suggestion import Source, Suggestion, suggestions
from app.services.profiles import ProfileBook

_FOLDERS = 4
# Labels that speak of the prompts, of another model, or of no machine at all.
_OTHER_THINGS = re.compile(r"dataset|date|prompt|error|spec|draft|goodput|random|sonnet|sharegpt", re.IGNORECASE)


def hints(book: ProfileBook, run: Run, file_name: str) -> tuple[Suggestion, ...]:
    """What file name, folders and labels hint at, for each part of the identity that is not known or that the catalog does not know."""
    return suggestions(_sources(run, file_name), book.lexicon, _open(book, run))


def hints_json(found: tuple[Suggestion, ...]) -> list[Mapping[str, Any]]:
    """Hints as JSON: `value` is null where several candidates are possible."""
    return [{"key": each.key, "value": each.value, "candidates": list(each.candidates), "evidence": list(each.evidence)} for each in found]


def _open(book: ProfileBook, run: Run) -> list[str]:
    unknown = {"model": book.find_model(run.model) is None, "hardware": book.find_hardware(run.hardware) is None}
    return [key for key in IDENTITY if unknown.get(key, getattr(run, key) is None)]


def _sources(run: Run, file_name: str) -> list[Source]:
    *folders, name = re.split(r"[/\\]+", file_name)
    found = [Source("the file name", re.sub(r"\.[A-Za-z]\w{0,5}\Z", "", name))]
    found.extend(Source("the folder", folder) for folder in folders[-_FOLDERS:])
    found.extend(Source(where, text) for where, text in (("the model's words", run.model), ("the hardware's words", run.hardware)) if text)
    if run.label:
        found.append(Source("the run's label", run.label))
    found.extend(Source(f"the label {key}", f"{key} {value}") for key, value in run.labels.items() if not _OTHER_THINGS.search(key))
    return [source for source in found if source.text]
