"""Storing what somebody brings: new files become runs, and what is said about files that are here already corrects their runs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.services import runs
from app.services.context import Context
from app.services.importing import ImportOutcome, import_files, overrides_of
from app.services.likeness import likenesses
from app.services.webhooks import judge_new
from app.store.uploads import Also

_NO_CORRECTIONS = ("project", "name")


def store_files(
    context: Context, files: Sequence[tuple[str, bytes]], fields: Mapping[str, Any], now: datetime, also: Also | None = None
) -> ImportOutcome:
    """Import (name, bytes) with what the person says in `fields`. Runs of bytes that were here before are corrected by the fields.

    `also` writes in the transaction that stores a file, with the ids of its runs; what it raises undoes that.

    Raises InvalidRequest for a field that cannot be used, before anything is stored.
    """
    outcome = import_files(context, files, overrides_of(fields), now, also)
    if outcome.created:
        new = [run_id for run_id in outcome.run_ids if run_id not in outcome.existing_ids]
        outcome = replace(outcome, warnings=(*outcome.warnings, *likenesses(context, new)))
        judge_new(context, new, now)
    corrections = {key: value for key, value in fields.items() if key not in _NO_CORRECTIONS and value not in (None, "", [], ())}
    if not outcome.existing_ids or not corrections:
        return outcome
    runs.correct_all(context, outcome.existing_ids, corrections, now)
    told = f"The fields given were applied to the runs that exist: {', '.join(sorted(corrections))}."
    return replace(outcome, warnings=(*outcome.warnings, told))
