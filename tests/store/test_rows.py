"""A Run to rows and back: equal for every number, and unknown where a database cannot hold it."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.run import Distribution, Flag, MetricValue, Rate, RequestCounts, Run, Workload
from app.store.records import NewRun, NewUpload
from app.store.rows import MetricRow, RunRows, clean_tags, fold, from_row, metrics_from_rows, search_text, to_rows
from app.store.tables import RunRow

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
UPLOAD = NewUpload("result.json", "vllm_bench_serve", NOON)
INT64 = 2**63 - 1

numbers = st.one_of(st.none(), st.floats())
integers = st.one_of(st.none(), st.integers(-(2**70), 2**70))
distributions = st.builds(
    Distribution,
    mean=numbers, p50=numbers, p90=numbers, p95=numbers, p99=numbers, std=numbers, min=numbers, max=numbers, n=integers,
    origin=st.sampled_from(("samples", "reported", "derived")),
    definition=st.sampled_from(("canonical", "per chunk")),
)  # fmt: skip
rates = st.builds(Rate, value=st.floats(), scope=st.sampled_from(("request", "aggregate", "device")))
runs = st.builds(
    Run,
    format=st.just("vllm_bench_serve"),
    devices=integers,
    tp=integers,
    workload=st.builds(
        Workload,
        prompt_tokens_total=integers, output_tokens_total=integers, concurrency=integers, rate_unlimited=st.booleans(),
    ),
    requests=st.builds(RequestCounts, sent=integers, completed=integers, failed=integers),
    metrics=st.dictionaries(st.sampled_from(("ttft_s", "itl_s", "output_tokens_per_s")), st.one_of(distributions, rates)),
)  # fmt: skip


def back(rows: RunRows) -> Run:
    """The run that the rows hold, as it would be read."""
    metrics = [MetricRow(run_id=1, **row) for row in rows.metrics]
    return from_row(RunRow(id=1, upload_id=1, **rows.columns), metrics)


def kept(value: float | None) -> float | None:
    """What remains of a number: nothing where it is not finite or, as an integer, beyond 64 bits."""
    if isinstance(value, int):
        return value if abs(value) <= INT64 else None
    return None if value is None or not math.isfinite(value) else value


def kept_metric(metric: MetricValue) -> MetricValue | None:
    if isinstance(metric, Rate):
        return metric if math.isfinite(metric.value) else None
    names = ("mean", "p50", "p90", "p95", "p99", "std", "min", "max")
    stats = {name: kept(getattr(metric, name)) for name in names}
    n = kept(metric.n)
    if n is None and all(value is None for value in stats.values()):
        return None
    return Distribution(**stats, n=n, origin=metric.origin, definition=metric.definition)  # type: ignore[arg-type]


def test_a_run_with_every_kind_of_field_comes_back_equal(a_run: NewRun) -> None:
    rows = to_rows(a_run, UPLOAD, 0)
    assert back(rows) == a_run.run
    assert rows.tags == ("h100", "nightly")


@given(runs)
def test_any_numbers_come_back_or_become_unknown(run: Run) -> None:
    rows = to_rows(NewRun(run), UPLOAD, 0)
    read = back(rows)
    for name in ("devices", "tp"):
        assert getattr(read, name) == kept(getattr(run, name))
    for name in ("prompt_tokens_total", "output_tokens_total", "concurrency"):
        assert getattr(read.workload, name) == kept(getattr(run.workload, name))
    for name in ("sent", "completed", "failed"):
        assert getattr(read.requests, name) == kept(getattr(run.requests, name))
    expected = {key: kept_metric(metric) for key, metric in run.metrics.items()}
    assert read.metrics == {key: metric for key, metric in expected.items() if metric is not None}
    stored = [value for row in rows.metrics for value in row.values() if isinstance(value, float)]
    assert all(math.isfinite(value) for value in stored)


def test_what_does_not_fit_is_said_in_a_warning() -> None:
    far = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))
    rows = to_rows(NewRun(Run("f", devices=2**64, started_at=far, warnings=("first",))), UPLOAD, 0)
    assert back(rows).devices is None
    assert rows.columns["happened_at"] == NOON
    assert rows.columns["warnings"] == [
        "first",
        "started_at lies outside the calendar and was not kept.",
        "devices is beyond 64 bits and was not kept.",
    ]


def test_a_run_happened_when_it_started_in_utc() -> None:
    in_berlin = datetime(2026, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert to_rows(NewRun(Run("f", started_at=in_berlin)), UPLOAD, 0).columns["happened_at"] == NOON
    assert to_rows(NewRun(Run("f", started_at=datetime(2026, 5, 1, 12))), UPLOAD, 0).columns["started_at"] == NOON  # noqa: DTZ001
    assert to_rows(NewRun(Run("f")), UPLOAD, 0).columns["happened_at"] == NOON


def test_the_sorted_columns_come_from_the_metrics(a_run: NewRun) -> None:
    columns = to_rows(a_run, UPLOAD, 0).columns
    assert (columns["ttft_p50_s"], columns["ttft_mean_s"], columns["tpot_mean_s"], columns["itl_mean_s"]) == (0.094, 0.095, 0.0071, None)
    assert (columns["output_tokens_per_s"], columns["mbu"], columns["prefill_share"]) == (4211.0, 0.68, 0.05)


def test_the_rate_of_one_request_is_not_the_servers() -> None:
    run = Run("f", metrics={"output_tokens_per_s": Rate(100.0, "request")})
    assert to_rows(NewRun(run), UPLOAD, 0).columns["output_tokens_per_s"] is None


def test_a_distribution_of_which_only_the_count_is_known_keeps_it() -> None:
    rows = to_rows(NewRun(Run("f", metrics={"ttft_s": Distribution(n=3), "itl_s": Distribution()})), UPLOAD, 0)
    assert back(rows).metrics == {"ttft_s": Distribution(n=3)}


def test_metrics_of_no_rows_are_none() -> None:
    assert metrics_from_rows([]) == {}


def test_flags_survive_with_what_they_withhold() -> None:
    run = Run("f", flags=(Flag("a", "why", ("x.mean", "y")), Flag("b", "")))
    assert back(to_rows(NewRun(run), UPLOAD, 0)).flags == run.flags


def test_tags_are_trimmed_sorted_and_single() -> None:
    assert clean_tags([" b ", "a", "b", "", "  ", "c\x00"]) == ("a", "b", "c")
    assert clean_tags(["x" * 300]) == ("x" * 200,)


@pytest.mark.parametrize(("text", "folded"), [("LLaMA", "llama"), ("Straße", "strasse"), ("ﬁle", "file"), ("ГПУ", "гпу")])
def test_a_search_ignores_case_in_any_language(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_a_search_looks_into_label_names_tags_and_file(a_run: NewRun) -> None:
    rows = to_rows(a_run, UPLOAD, 0)
    assert rows.columns["search"].split("\n") == [
        "nightly",
        "meta-llama/llama-3.1-8b-instruct",
        "llama-3-1-8b",
        "nvidia h100 80gb hbm3",
        "h100-sxm5-80gb",
        "vllm",
        "h100",
        "nightly",
        "result.json",
    ]
    assert search_text({}, (), "A.json") == "a.json"
