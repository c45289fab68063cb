"""Runs with the same figures are found across files of a project, and only those."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.domain.run import Distribution, RequestCounts, Run
from app.store.database import Database
from app.store.records import NewRun, SavedUpload
from app.store.twins import twins_of

Store = Callable[..., SavedUpload]


def measured(duration_s: float | None = 61.25, completed: int | None = 999, **means: float) -> NewRun:
    metrics = {key: Distribution(mean=mean) for key, mean in means.items()}
    run = Run(format="vllm_bench_serve", duration_s=duration_s, requests=RequestCounts(completed=completed), metrics=metrics)
    return NewRun(run, None, None)


SERVED = measured(ttft_s=0.095, itl_s=0.0071, e2e_s=2.2179)


def twin(database: Database, store: Store, first: NewRun, second: NewRun, **where: str) -> bool:
    (old,) = store([first]).run_ids
    (new,) = store([second], **where).run_ids
    with database.read() as session:
        found = twins_of(session, (new, old))
    assert found in ({}, {new: old})
    return bool(found)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (SERVED, True),
        (measured(ttft_s=0.095, itl_s=0.0071 * (1 + 1e-9), e2e_s=2.2179), True),
        (measured(ttft_s=0.095, itl_s=0.0071), True),
        (measured(None, None, ttft_s=0.095, itl_s=0.0071), True),
        (measured(ttft_s=0.095), False),
        (measured(ttft_s=0.095, itl_s=0.0072, e2e_s=2.2179), False),
        (measured(ttft_s=0.095, itl_s=0.0071, e2e_s=2.2179, completed=998), False),
        (measured(61.3, ttft_s=0.095, itl_s=0.0071, e2e_s=2.2179), False),
        (measured(prefill_s=0.095, itl_s=0.0071), False),
    ],
)
def test_the_figures_decide(database: Database, store_file: Store, second: NewRun, expected: bool) -> None:
    assert twin(database, store_file, SERVED, second) is expected


def test_another_project_is_another_matter(database: Database, store_file: Store) -> None:
    assert not twin(database, store_file, SERVED, SERVED, project="other")


def test_runs_of_one_file_are_no_twins_and_the_oldest_counts(database: Database, store_file: Store) -> None:
    first = store_file([SERVED, SERVED]).run_ids
    store_file([SERVED])
    last = store_file([SERVED, replace(SERVED, notes="again")]).run_ids
    with database.read() as session:
        assert twins_of(session, first) == {}
        assert twins_of(session, last) == dict.fromkeys(last, first[0])
        assert twins_of(session, ()) == twins_of(session, (0, 2**63)) == {}
