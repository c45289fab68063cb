"""The runs that benchmarks are measured on: complete, priced, and different from each other."""

from pathlib import Path

import numpy as np
import pytest

from app.services import runs
from app.services.context import Context, make_context
from app.services.startup import prepare
from app.store import run_list
from benchmarks.seed import CLIENTS, OUTPUT_TOKENS, fill
from benchmarks.server import settings_in


@pytest.fixture
def empty(tmp_path: Path) -> Context:
    """An installation without runs."""
    context = make_context(settings_in(tmp_path))
    prepare(context)
    return context


def test_every_run_has_samples_statistics_and_a_prediction(empty: Context) -> None:
    ids = fill(empty, 2)
    assert len(ids) == 2
    for run_id, clients in zip(ids, CLIENTS, strict=False):
        view = runs.view(empty, run_id)
        samples = runs.samples(empty, run_id)
        assert view.assessment.prediction is not None
        assert view.stored.run.workload.concurrency == clients
        assert samples is not None
        assert samples.size == 100
        assert samples.chunk_gaps_s.size == 100 * (OUTPUT_TOKENS - 1)
        # Statistics and samples tell the same story, to the microsecond that samples are stored with.
        ttft = view.stored.run.distribution("ttft_s")
        assert ttft is not None
        assert ttft.mean == pytest.approx(float(np.mean(samples.ttft_s)), abs=1e-6)


def test_only_the_first_keep_their_samples_and_lists_have_something_to_sort(empty: Context) -> None:
    assert len(fill(empty, 40, sampled=1)) == 40
    with empty.database.read() as session:
        items = run_list.page(session, limit=50).items
        facets = run_list.facets(session)
    sampled = [item.id for item in items if runs.view(empty, item.id).stored.has_samples]
    assert len(sampled) == len(CLIENTS)  # the first file, whole
    assert len({item.mbu for item in items}) == 40
    assert len({item.happened_at for item in items}) == 40
    assert len(facets.models) == 5
    assert len(facets.hardware) == 4
