"""The sample runs: of our own making, the same each time, and what they claim to show."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from app.domain.run import Run
from app.formats import read_runs
from app.services import runs
from app.services.context import Context
from app.services.runs import views
from app.services.sample_runs import load_samples
from app.services.samples import NOTE, SampleFile, sample_files
from app.services.sentences import run_sentence
from app.store import run_list

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)


def runs_by_label() -> dict[str, Run]:
    return {str(sample.overrides["label"]): read_runs(sample.name, sample.data).runs[0] for sample in sample_files()}


def test_they_are_the_same_bytes_each_time() -> None:
    assert [sample.data for sample in sample_files()] == [sample.data for sample in sample_files()]


@pytest.mark.parametrize("sample", sample_files(), ids=lambda sample: str(sample.name))
def test_each_reads_without_a_contradiction(sample: SampleFile) -> None:
    parsed = read_runs(sample.name, sample.data)
    for run in parsed.runs:
        assert not [warning for warning in run.warnings if "contradict" in warning or "says" in warning]
        assert "impossible_above_roofline" not in {flag.flag for flag in run.flags}


def test_the_founding_request() -> None:
    run = runs_by_label()["founding request"]
    ttft, itl = run.distribution("ttft_s"), run.distribution("itl_s")
    assert ttft is not None
    assert itl is not None
    # 95 ms, 143 tokens a second, 2.186 s in all for 300 tokens.
    assert ttft.mean == pytest.approx(0.095, rel=1e-6)
    assert itl.mean == pytest.approx(1 / 143, rel=1e-6)
    e2e = run.distribution("e2e_s")
    assert e2e is not None
    assert e2e.mean == pytest.approx(2.186, abs=5e-4)
    assert (run.workload.prompt_tokens_mean, run.workload.output_tokens_mean) == (2000, 300)


def test_samples_of_served_runs_have_distributions_and_not_one_value() -> None:
    for sample in sample_files()[:-1]:
        document = json.loads(sample.data)
        assert len(set(document["ttfts"])) > 50
        assert np.std(np.concatenate(document["itls"])) > 0


def test_loading_stores_them_once_and_gives_the_pair_to_compare(context: Context) -> None:
    first = load_samples(context, NOON)
    assert load_samples(context, NOON) == first
    with context.database.read() as session:
        assert run_list.count(session) == len(sample_files()) == 6
        ids = run_list.ids(session)
    base, other = views(context, (first.base, first.other))
    assert (base.title, other.title) == ("bf16 weights", "int4 weights")
    for view in views(context, ids):
        assert view.stored.tags == ("sample",)
        assert view.stored.notes == NOTE
        assert view.assessment.prediction is not None
        assert not view.assessment.flags, f"{view.title} is faster than its floor"
        assert view.assessment.mbu is not None
        assert 0 < view.assessment.mbu < 1


def test_the_founding_run_has_the_founding_sentence(context: Context) -> None:
    load_samples(context, NOON)
    with context.database.read() as session:
        ids = run_list.ids(session)
    (founding,) = [view for view in views(context, ids) if view.title == "founding request"]
    assert (
        run_sentence(founding.stored.run, founding.assessment)
        .replace("\xa0", " ")
        .startswith("Decode runs at 68.3 % of the bandwidth floor")
    )


def test_a_sample_that_was_deleted_comes_back(context: Context) -> None:
    first = load_samples(context, NOON)
    runs.delete(context, first.base)
    again = load_samples(context, NOON)
    assert again.other == first.other
    assert again.base not in first.run_ids
    assert len(again.run_ids) == len(first.run_ids)
