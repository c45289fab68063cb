"""Importers that have improved since a file was read: the same file gives something else under a higher version."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from app import formats
from app.domain.errors import ImportRefused
from app.domain.run import Run
from app.formats.document import Document

Rewrite = Callable[[list[Run]], Sequence[Run]]


def improve(monkeypatch: pytest.MonkeyPatch, rewrite: Rewrite, format_id: str = "vllm_bench_serve") -> int:
    """From now on the importer of this format gives what `rewrite` makes of its runs; its new version."""
    importers = list(formats.IMPORTERS)
    position = next(index for index, importer in enumerate(importers) if importer.id == format_id)
    before = importers[position]

    def parse(document: Document) -> list[Run]:
        return list(rewrite(before.parse(document)))

    importers[position] = replace(before, parse=parse, version=before.version + 1)
    monkeypatch.setattr(formats, "IMPORTERS", tuple(importers))
    return importers[position].reading_version


def refuse(runs: list[Run]) -> list[Run]:
    """A file that is read no longer."""
    raise ImportRefused("it is no longer read.")


def slower(runs: list[Run]) -> list[Run]:
    """Every TTFT twice as long, and a warning."""
    changed = []
    for run in runs:
        ttft = run.distribution("ttft_s")
        assert ttft is not None
        assert ttft.mean is not None
        changed.append(replace(run, metrics={**run.metrics, "ttft_s": replace(ttft, mean=2 * ttft.mean)}, warnings=("read better",)))
    return changed
