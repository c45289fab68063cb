"""Lists of runs: every filter, every order, any depth, in two queries."""

import base64
import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event
from sqlmodel import Session

from app.domain.errors import InvalidRequest
from app.domain.run import Distribution, Flag, Rate, RequestCounts, Run, Workload
from app.store import run_list, runs
from app.store.database import Database
from app.store.records import NewRun, RunFilters, RunListItem, SavedUpload
from app.store.run_list import SORT_KEYS

Store = Callable[..., SavedUpload]
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def _labels(session: Session, filters: RunFilters | None = None, **options: object) -> list[str | None]:
    return [item.label for item in run_list.page(session, filters, **options).items]  # type: ignore[arg-type]


def _all(session: Session, sort: str, limit: int, filters: RunFilters | None = None) -> list[RunListItem]:
    found: list[RunListItem] = []
    cursor = None
    while True:
        page = run_list.page(session, filters, sort=sort, cursor=cursor, limit=limit)
        assert len(page.items) <= limit
        found += page.items
        cursor = page.next
        if cursor is None:
            return found


@pytest.fixture(scope="module")
def mixed(module_database: Database, storing_in: Callable[[Database], Store]) -> Database:
    """Five runs that differ in everything a filter looks at."""
    alpha = NewRun(
        Run("vllm_bench_serve", engine="vllm", model="meta-llama/Llama-3.1-8B", hardware="NVIDIA H100", label="Alpha", started_at=NOON),
        "llama-3-1-8b", "h100-sxm5-80gb", tags=("nightly", "Prod"), mbu=0.7,
    )  # fmt: skip
    beta = NewRun(
        Run("vllm_bench_serve", engine="VLLM", model="Qwen/Qwen3-8B", hardware="L40S", label="beta", started_at=NOON + timedelta(days=1)),
        "qwen3-8b", "l40s", tags=("nightly",), mbu=0.5,
    )  # fmt: skip
    gamma = NewRun(Run("llama_bench", engine="llama.cpp", model="llama 8B Q4_K", label="gamma 100%", started_at=NOON - timedelta(days=1)))
    delta = NewRun(Run("llama_bench", label="delta_x"), mbu=0.5)
    other = NewRun(Run("sglang_bench_serving", engine="sglang", label="Ωmega", started_at=NOON))
    store_file = storing_in(module_database)
    store_file([alpha, beta], name="sweep.json")
    store_file([gamma], name="bench.md")
    store_file([delta], name="Later.csv", received_at=NOON + timedelta(days=2))
    store_file([other], project="team")
    return module_database


@pytest.mark.parametrize(
    ("filters", "labels"),
    [
        (RunFilters(), ["delta_x", "beta", "Ωmega", "Alpha", "gamma 100%"]),
        (RunFilters(project="team"), ["Ωmega"]),
        (RunFilters(project="default", format="LLAMA_BENCH"), ["delta_x", "gamma 100%"]),
        (RunFilters(engine="vLLM"), ["beta", "Alpha"]),
        (RunFilters(model="llama-3-1-8b"), ["Alpha"]),
        (RunFilters(model="LLAMA 8b q4_k"), ["gamma 100%"]),
        (RunFilters(hardware="H100-SXM5-80GB"), ["Alpha"]),
        (RunFilters(hardware="nvidia h100"), ["Alpha"]),
        (RunFilters(tag="nightly"), ["beta", "Alpha"]),
        (RunFilters(tag="prod"), []),
        (RunFilters(tag=" Prod "), ["Alpha"]),
        (RunFilters(since=NOON), ["delta_x", "beta", "Ωmega", "Alpha"]),
        (RunFilters(until=NOON), ["gamma 100%"]),
        (RunFilters(since=NOON, until=NOON + timedelta(days=1)), ["Ωmega", "Alpha"]),
        (RunFilters(q="ALPHA"), ["Alpha"]),
        (RunFilters(q="ωMEGA"), ["Ωmega"]),
        (RunFilters(q="llama"), ["Alpha", "gamma 100%"]),
        (RunFilters(q="llama h100"), ["Alpha"]),
        (RunFilters(q="sweep"), ["beta", "Alpha"]),
        (RunFilters(q="later.CSV"), ["delta_x"]),
        (RunFilters(q="prod"), ["Alpha"]),
        (RunFilters(q="sglang"), ["Ωmega"]),
        (RunFilters(q="%"), ["gamma 100%"]),
        (RunFilters(q="a_x"), ["delta_x"]),
        (RunFilters(q="b_t"), []),
        (RunFilters(q="\\"), []),
        (RunFilters(q="' OR 1=1 --"), []),
        (RunFilters(q="  "), ["delta_x", "beta", "Ωmega", "Alpha", "gamma 100%"]),
        (RunFilters(q="\x00alpha"), ["Alpha"]),
        (RunFilters(q="\ud800", model="\ud800", tag="\x00", hardware="\x00", engine="\ud800", project="\ud800", format="\x00"), []),
        (RunFilters(tag="nightly", model="qwen3-8b", q="beta"), ["beta"]),
    ],
)
def test_filters(mixed: Database, filters: RunFilters, labels: list[str]) -> None:
    with mixed.read() as session:
        assert _labels(session, filters) == labels
        assert run_list.count(session, filters) == len(labels)
        assert len(run_list.ids(session, filters)) == len(labels)


@pytest.mark.parametrize(
    ("sort", "labels"),
    [
        ("label", ["Alpha", "beta", "delta_x", "gamma 100%", "Ωmega"]),
        ("-label", ["Ωmega", "gamma 100%", "delta_x", "beta", "Alpha"]),
        ("mbu", ["beta", "delta_x", "Alpha", "gamma 100%", "Ωmega"]),
        ("-mbu", ["Alpha", "delta_x", "beta", "Ωmega", "gamma 100%"]),
        ("started_at", ["gamma 100%", "Alpha", "Ωmega", "beta", "delta_x"]),
        ("-id", ["Ωmega", "delta_x", "gamma 100%", "beta", "Alpha"]),
        ("model", ["gamma 100%", "Alpha", "beta", "delta_x", "Ωmega"]),
    ],
)
def test_orders_ignore_case_and_put_unknown_last(mixed: Database, sort: str, labels: list[str]) -> None:
    with mixed.read() as session:
        assert _labels(session, sort=sort) == labels


@pytest.mark.parametrize("sort", [*SORT_KEYS, *(f"-{key}" for key in SORT_KEYS)])
def test_pages_of_any_order_put_together_are_the_whole_list(ordered: Database, sort: str) -> None:
    with ordered.read() as session:
        whole = run_list.page(session, sort=sort, limit=500)
        assert whole.next is None
        assert len(whole.items) == 12
        assert _all(session, sort, 5) == list(whole.items)
        key = sort.removeprefix("-")
        values = [getattr(item, key) for item in whole.items if hasattr(item, key)]
        known = [value.lower() if isinstance(value, str) else value for value in values if value is not None]
        assert known == sorted(known, reverse=sort.startswith("-"))
        assert all(value is None for value in values[len(known) :])


@pytest.fixture(scope="module")
def ordered(another_module_database: Database, storing_in: Callable[[Database], Store]) -> Database:
    """Twelve runs with repeated and with unknown values in every column."""
    store_file = storing_in(another_module_database)
    for number in range(12):
        value = None if number % 4 == 3 else float(number % 3) + 0.1
        word = None if number % 4 == 1 else "aBc"[number % 3] * 2
        count = None if number % 4 == 2 else number % 3
        run = Run(
            f"format{number % 2}", engine=word, model=word, hardware=word, devices=count, tp=count, label=word, weight_dtype=word,
            started_at=None if count is None else NOON + timedelta(microseconds=count), duration_s=value,
            workload=Workload(prompt_tokens_mean=value, output_tokens_mean=value, concurrency=count, request_rate_per_s=value),
            requests=RequestCounts(completed=count, failed=count),
            metrics={key: Distribution(mean=value, p50=value, n=1) for key in ("ttft_s", "prefill_s", "itl_s", "tpot_s", "e2e_s")}
            | ({} if value is None else {"output_tokens_per_s": Rate(value, "aggregate")}),
        )  # fmt: skip
        store_file([NewRun(run, mbu=value, mfu=value, prefill_share=value)], received_at=NOON + timedelta(hours=number % 2))
    return another_module_database


def test_an_item_shows_what_is_stored(database: Database, store_file: Store, a_run: NewRun) -> None:
    saved = store_file([a_run], name="a.json")
    with database.read() as session:
        (item,) = run_list.page(session).items
        stored = runs.get(session, saved.run_ids[0])
    assert stored is not None
    for name in RunListItem.__dataclass_fields__:
        holder = next((part for part in (stored, stored.run, stored.run.workload) if hasattr(part, name)), None)
        if holder is not None and name != "flags":
            assert getattr(item, name) == getattr(holder, name), name
    assert (item.file_name, item.flags, item.requests_completed, item.ttft_p50_s) == ("a.json", ("cold_start_outliers",), 999, 0.094)


def test_runs_that_arrive_meanwhile_move_nothing(database: Database, store_file: Store) -> None:
    store_file([NewRun(Run("f", label=str(number), started_at=NOON + timedelta(minutes=number))) for number in range(4)])
    with database.read() as session:
        first = run_list.page(session, limit=2)
    store_file([NewRun(Run("f", label="new", started_at=NOON + timedelta(days=1)))])
    with database.read() as session:
        second = run_list.page(session, cursor=first.next, limit=2)
    assert [item.label for item in (*first.items, *second.items)] == ["3", "2", "1", "0"]
    assert second.next is None


def test_facets_count_what_a_filter_may_offer(mixed: Database) -> None:
    with mixed.read() as session:
        everything, team = run_list.facets(session), run_list.facets(session, "team")
    assert everything.projects == {"default": 4, "team": 1}
    assert everything.models == {"llama 8B Q4_K": 1, "llama-3-1-8b": 1, "qwen3-8b": 1}
    assert everything.hardware == {"h100-sxm5-80gb": 1, "l40s": 1}
    assert everything.formats == {"llama_bench": 2, "vllm_bench_serve": 2, "sglang_bench_serving": 1}
    assert list(everything.tags.items()) == [("nightly", 2), ("Prod", 1)]
    assert (team.projects, team.engines, team.tags) == ({"team": 1}, {"sglang": 1}, {})


def test_a_list_takes_two_queries_however_long(database: Database, store_file: Store, a_run: NewRun) -> None:
    def queries(limit: int) -> int:
        seen: list[str] = []

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            seen.append(statement)

        with database.read() as session:
            # This database's own statements: an application of other tests may keep house in the same process.
            engine = session.connection().engine
            event.listen(engine, "before_cursor_execute", note)
            page = run_list.page(session, RunFilters(q="nightly"), limit=limit)
            event.remove(engine, "before_cursor_execute", note)
        assert len(page.items) == limit
        return len(seen)

    store_file([a_run] * 60)
    assert queries(1) == queries(60) == 2


@pytest.mark.parametrize("limit", [-1, 0, 10**9])
def test_a_limit_is_kept_between_1_and_500(database: Database, store_file: Store, limit: int) -> None:
    store_file([NewRun(Run("f"))] * 501)
    with database.read() as session:
        page = run_list.page(session, limit=limit)
    assert len(page.items) == (500 if limit > 0 else 1)
    assert page.next is not None


def _cursor(*content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


@pytest.mark.parametrize(
    ("sort", "cursor"),
    [
        ("-happened_at", ""),
        ("-happened_at", "%%%"),
        ("-happened_at", "Zm9v"),
        ("-happened_at", "é"),
        ("-happened_at", _cursor("-mbu", 1.0, 1)),
        ("-happened_at", _cursor("-happened_at", 5, 1)),
        ("-happened_at", _cursor("-happened_at", "2026-05-01T12:00:00", 1)),
        ("-happened_at", _cursor("-happened_at", NOON.isoformat(), 2**63)),
        ("-happened_at", _cursor("-happened_at", NOON.isoformat(), 0)),
        ("-happened_at", _cursor("-happened_at", NOON.isoformat(), "1")),
        ("-happened_at", _cursor("-happened_at", NOON.isoformat())),
        ("mbu", _cursor("mbu", "x", 1)),
        ("mbu", _cursor("mbu", True, 1)),
        ("mbu", _cursor("mbu", float("inf"), 1)),
        ("mbu", _cursor("mbu", float("nan"), 1)),
        ("devices", _cursor("devices", 2**80, 1)),
        ("devices", _cursor("devices", 10**400, 1)),
        ("label", _cursor("label", ["x"], 1)),
        ("label", base64.b64encode(b"[" * 100_000).decode()),
    ],
)
def test_a_cursor_that_is_none_of_ours_is_refused(ordered: Database, sort: str, cursor: str) -> None:
    with ordered.read() as session, pytest.raises(InvalidRequest, match="start again without it") as refused:
        run_list.page(session, sort=sort, cursor=cursor)
    assert refused.value.field == "cursor"


def test_a_cursor_may_be_written_by_hand(database: Database, store_file: Store) -> None:
    store_file([NewRun(Run("f", label="x"))])
    with database.read() as session:
        assert _labels(session, sort="label", cursor=_cursor("label", "\x00a\ud800", 5)) == ["x"]
        assert _labels(session, sort="devices", cursor=_cursor("devices", 1.5, 5)) == ["x"]


@pytest.mark.parametrize("sort", ["", "-", "nonsense", "--id", "search", "id; DROP TABLE run"])
def test_an_order_that_is_not_offered_is_refused_with_those_that_are(ordered: Database, sort: str) -> None:
    with ordered.read() as session, pytest.raises(InvalidRequest, match="use one of happened_at, ") as refused:
        run_list.page(session, sort=sort)
    assert refused.value.field == "sort"


@pytest.mark.parametrize("query", ["x" * 201, "a " * 13])
def test_a_search_too_long_is_refused(ordered: Database, query: str) -> None:
    with ordered.read() as session, pytest.raises(InvalidRequest, match="at most 12 words and 200 characters"):
        run_list.page(session, RunFilters(q=query))


def test_flags_are_shown_by_name(database: Database, store_file: Store) -> None:
    store_file([NewRun(Run("f", flags=(Flag("a", "x"), Flag("b", "y"))))])
    with database.read() as session:
        (item,) = run_list.page(session).items
    assert item.flags == ("a", "b")


@pytest.mark.soak
def test_ten_thousand_runs_are_listed_in_well_under_100_ms(
    sqlite_database: Database, a_run: NewRun, storing_in: Callable[[Database], Store]
) -> None:
    store = storing_in(sqlite_database)
    for start in range(0, 10_000, 500):
        store(
            [
                NewRun(
                    replace(a_run.run, label=f"run {number}", started_at=NOON + timedelta(minutes=number)),
                    "llama-3-1-8b", "h100-sxm5-80gb", tags=("nightly",), mbu=(number * 7919 % 10007) / 10007,
                )
                for number in range(start, start + 500)
            ]
        )  # fmt: skip
    times: list[float] = []
    for _ in range(10):
        for sort, query in (("-happened_at", None), ("-mbu", None), ("model", "llama nightly"), ("ttft_p50_s", "nothing of the kind")):
            # Time of this thread alone: what else the machine does meanwhile is not the list's doing.
            began = time.thread_time()
            with sqlite_database.read() as session:
                run_list.page(session, RunFilters(project="default", q=query), sort=sort)
                run_list.facets(session, "default")
            times.append(time.thread_time() - began)
    assert sorted(times)[int(len(times) * 0.95)] < 0.1
