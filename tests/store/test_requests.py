"""Per-request samples: whole, by page, as histograms."""

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest

from app.domain.run import RequestSamples
from app.store import requests
from app.store import samples as codec
from app.store.database import Database
from app.store.records import NewRun, RequestRecord, SavedUpload

Store = Callable[..., SavedUpload]


def same(one: RequestSamples, other: RequestSamples) -> bool:
    """Equal in every column, times to a microsecond."""

    def equal(first: object, second: object) -> bool:
        if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
            return (
                first.dtype == second.dtype
                and first.shape == second.shape
                and np.allclose(first, second, rtol=0, atol=5.1e-7, equal_nan=True)
            )
        return first == second

    return all(equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(RequestSamples))


def _stored(store_file: Store, run: NewRun, samples: RequestSamples | None) -> int:
    (run_id,) = store_file([replace(run, run=replace(run.run, samples=samples))]).run_ids
    return run_id


def test_samples_come_back_to_the_microsecond(database: Database, store_file: Store, a_run: NewRun, samples: RequestSamples) -> None:
    run_id = _stored(store_file, a_run, samples)
    with database.read() as session:
        loaded = requests.load(session, run_id)
    assert loaded is not None
    assert same(loaded, samples)


def test_a_run_without_samples_has_none(database: Database, store_file: Store, a_run: NewRun) -> None:
    run_id = _stored(store_file, a_run, None)
    with database.read() as session:
        for missing in (run_id, run_id + 1, 0, 2**63, 10**40):
            assert requests.load(session, missing) is None
            assert requests.page(session, missing) is None
            assert requests.histograms(session, missing) == {}


def test_no_requests_at_all_are_kept_as_such(database: Database, store_file: Store, a_run: NewRun) -> None:
    empty = np.empty(0)
    run_id = _stored(store_file, a_run, RequestSamples(np.empty(0, dtype=np.bool_), empty, empty, empty, empty))
    with database.read() as session:
        loaded, page = requests.load(session, run_id), requests.page(session, run_id)
    assert loaded is not None
    assert loaded.size == 0
    assert loaded.ok.dtype == np.bool_
    assert page is not None
    assert (page.items, page.total, page.next) == ((), 0, None)


def test_a_page_says_each_request(database: Database, store_file: Store, a_run: NewRun, samples: RequestSamples) -> None:
    run_id = _stored(store_file, a_run, samples)
    with database.read() as session:
        first = requests.page(session, run_id, limit=3)
        rest = requests.page(session, run_id, start=3)
    assert first is not None
    assert rest is not None
    assert (first.total, first.next, rest.next) == (4, 3, None)
    assert first.items[0] == RequestRecord(0, True, 100.0, 11.0, 0.1, 1.1, 0.0, None, 2, None)
    assert first.items[2] == RequestRecord(2, False, 300.0, 0.0, None, None, 1.0, None, 1, "timeout")
    assert rest.items == (RequestRecord(3, True, 400.0, 1.0, 0.4, 0.4, 1.5, None, 1, None),)


def test_pages_cross_the_seams_of_the_stretches(
    database: Database, store_file: Store, a_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec, "STRETCH", 7)
    count = np.arange(50, dtype=np.float64)
    run_id = _stored(store_file, a_run, RequestSamples(count >= 0, count, count + 1, count / 100, count / 10))
    seen: list[float | None] = []
    with database.read() as session:
        start: int | None = 0
        while start is not None:
            page = requests.page(session, run_id, start, limit=9)
            assert page is not None
            seen += [record.ttft_s for record in page.items]
            assert [record.index for record in page.items] == list(range(start, start + len(page.items)))
            start = page.next
        beyond = requests.page(session, run_id, 50)
    assert seen == (count / 100).tolist()
    assert beyond is not None
    assert beyond.items == ()


def test_a_page_holds_at_most_500(database: Database, store_file: Store, a_run: NewRun) -> None:
    many = np.ones(600)
    run_id = _stored(store_file, a_run, RequestSamples(many > 0, many, many, many, many))
    with database.read() as session:
        page, least = requests.page(session, run_id, limit=10**9), requests.page(session, run_id, start=-5, limit=-5)
    assert page is not None
    assert least is not None
    assert (len(page.items), page.next, len(least.items)) == (500, 500, 1)


def test_metric_values_are_those_of_successful_requests(samples: RequestSamples) -> None:
    values = requests.metric_values(samples)
    assert values["ttft_s"].tolist() == [0.1, 0.2, 0.4]
    assert values["e2e_s"].tolist() == [1.1, 2.2, 0.4]
    # (1.1 - 0.1) / 10, (2.2 - 0.2) / 20; the request with one token has none.
    assert values["tpot_s"].tolist() == pytest.approx([0.1, 0.1])
    # The gap of 9 s belongs to the request that failed.
    assert values["chunk_gap_s"].tolist() == [0.01, 0.02, 0.03]
    assert "queue_s" not in values
    queued = replace(samples, queue_s=np.array([1.0, 2.0, 3.0, 4.0]), chunk_gap_counts=np.empty(0, dtype=np.int64))
    assert requests.metric_values(queued)["queue_s"].tolist() == [1.0, 2.0, 4.0]
    # Which request a gap belongs to is not known here, so all count.
    assert requests.metric_values(queued)["chunk_gap_s"].tolist() == [0.01, 0.02, 9.0, 0.03]


def test_histograms_are_stored_with_the_samples(database: Database, store_file: Store, a_run: NewRun, samples: RequestSamples) -> None:
    run_id = _stored(store_file, a_run, samples)
    with database.read() as session:
        found = requests.histograms(session, run_id)
    assert found.keys() == {"ttft_s", "e2e_s", "tpot_s", "chunk_gap_s"}
    assert found["ttft_s"].count == 3
    assert found["ttft_s"].percentile(50) == 0.2
    assert found["chunk_gap_s"].max == 0.03
