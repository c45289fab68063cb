"""Loading the sample runs, by one click or from the command line."""

from dataclasses import dataclass
from datetime import datetime

from app.services.context import Context
from app.services.importing import import_file, overrides_of
from app.services.samples import COMPARISON, sample_files


@dataclass(frozen=True)
class SampleRuns:
    """The stored sample runs, and the two whose comparison they show."""

    run_ids: tuple[int, ...]
    base: int
    other: int


def load_samples(context: Context, now: datetime) -> SampleRuns:
    """Store the sample files, once however often this is called."""
    by_label: dict[str, int] = {}
    for sample in sample_files():
        outcome = import_file(context, sample.name, sample.data, overrides_of(sample.overrides), now)
        by_label[str(sample.overrides["label"])] = outcome.run_ids[0]
    return SampleRuns(tuple(by_label.values()), by_label[COMPARISON[0]], by_label[COMPARISON[1]])
