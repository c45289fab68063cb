"""What holds of reading any file whatever: it is refused in a sentence, or every run of it can be stored and shown."""

import time
from collections.abc import Callable

import numpy as np

from app.domain.errors import ImportRefused
from app.domain.run import STATS, Distribution, Run
from app.formats import read_runs
from app.formats.record import LARGEST_INTEGER

LONGEST_S = 10.0
# A file that nobody reads is told what is read, which grows with every importer.
_LONGEST_REASON = 1500


def check(data: bytes) -> None:
    """Read a file. Fails when anything but ImportRefused is raised, when it takes too long, or when a run of it is not sound."""
    refused: ImportRefused | None = None
    runs: tuple[Run, ...] = ()
    started = time.perf_counter()
    try:
        runs = read_runs("fuzzed", data).runs
    except ImportRefused as refusal:
        refused = refusal
    assert time.perf_counter() - started < LONGEST_S, "reading took too long"
    assert runs or (refused is not None and 0 < len(refused.reason) < _LONGEST_REASON), "neither runs nor a sentence"
    for run in runs:
        check_run(run)


def check_run(run: Run) -> None:
    """Finite figures, words that UTF-8 can carry, counts that a store can hold, columns of one length."""
    for value in run.metrics.values():
        numbers = [value.stat(name) for name in STATS] if isinstance(value, Distribution) else [value.value]
        assert all(number is None or (np.isfinite(number) and number >= 0) for number in numbers), "a figure that is none"
    work, requests = run.workload, run.requests
    counts = (work.prompt_tokens_total, work.output_tokens_total, work.concurrency, requests.sent, requests.completed, requests.failed)
    for count in (*counts, run.devices, run.tp, run.pp, run.ep):
        assert count is None or 0 <= count <= LARGEST_INTEGER, "a count that no store can hold"
    for figure in (run.duration_s, work.prompt_tokens_mean, work.output_tokens_mean, work.request_rate_per_s):
        assert figure is None or (np.isfinite(figure) and figure >= 0), "a figure of the workload that is none"
    for word in (run.model, run.hardware, run.engine_version, run.label, *run.labels.values(), *run.labels, *run.warnings):
        (word or "").encode("utf-8")
    if run.samples is not None:
        columns = (run.samples.prompt_tokens, run.samples.output_tokens, run.samples.ttft_s, run.samples.e2e_s)
        assert {column.size for column in columns} == {run.samples.size}, "columns of unlike lengths"
        assert run.samples.chunk_gap_counts.sum() == run.samples.chunk_gaps_s.size, "gaps that belong to no request"


def shrunk(data: bytes, fails: Callable[[bytes], bool], most_tries: int = 2000) -> bytes:
    """The smallest part of `data` found that still fails: ever shorter stretches are taken out while it does."""
    size, tries = max(1, len(data) // 2), 0
    while size and tries < most_tries:
        start, before = 0, len(data)
        while start < len(data) and tries < most_tries:
            tries += 1
            shorter = data[:start] + data[start + size :]
            if fails(shorter):
                data = shorter
            else:
                start += size
        size = size // 2 if len(data) == before else min(size, max(1, len(data) // 2))
    return data
