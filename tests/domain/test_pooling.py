"""Repeats as one run, and the noise that follows from them, with figures worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.comparison import Comparison, MetricDelta, Side, compare
from app.domain.pooling import pooled, spreads_of
from app.domain.run import Distribution, Flag, Rate, RequestCounts, Run, Workload


def run(ttft: float = 0.1, itl: float = 0.01, n: int = 100, **changes: object) -> Run:
    base = Run(
        format="generic",
        workload=Workload(1000.0, 300.0, 100_000, 30_000, concurrency=4),
        requests=RequestCounts(n, n, 0),
        metrics={
            "ttft_s": Distribution(mean=ttft, p50=ttft, p99=2 * ttft, std=0.01, min=ttft / 2, max=3 * ttft, n=n),
            "itl_s": Distribution(mean=itl, p50=itl, n=299 * n),
            "output_tokens_per_s": Rate(1 / itl, "aggregate"),
        },
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def compared(base: Sequence[Run], other: Sequence[Run]) -> Comparison:
    """Repeats against repeats, by the larger spread of both."""
    sides = [
        Side(1, pooled(base), repeats=(1, *range(100, 99 + len(base)))),
        Side(2, pooled(other), repeats=(2, *range(200, 199 + len(other)))),
    ]
    a, b = spreads_of(base), spreads_of(other)
    return compare(*sides, {at: max(a.get(at, 0.0), b.get(at, 0.0)) for at in {*a, *b}})


def row(found: Comparison, key: str, stat: str) -> MetricDelta:
    return next(each for each in found.metrics if (each.key, each.stat) == (key, stat))


def test_means_of_means_and_sums_of_counts() -> None:
    found = pooled([run(0.1, n=100), run(0.2, n=300)])
    ttft = found.distribution("ttft_s")
    assert ttft == Distribution(
        mean=pytest.approx(0.15), p50=pytest.approx(0.15), p99=pytest.approx(0.3), min=0.05, max=pytest.approx(0.6), n=400
    )  # type: ignore[arg-type]
    assert (found.requests, found.workload.prompt_tokens_total) == (RequestCounts(400, 400, 0), 200_000)
    assert found.workload.output_tokens_mean == 300.0


def test_what_one_repeat_lacks_or_means_otherwise_is_not_pooled() -> None:
    odd = run(metrics={**run().metrics, "itl_s": Distribution(mean=0.01, definition="per chunk"), "queue_s": Distribution(mean=0.1)})
    found = pooled([run(), odd])
    assert "itl_s" not in found.metrics
    assert "queue_s" not in found.metrics
    assert pooled([run(), run(metrics={"output_tokens_per_s": Rate(100.0, "device")})]).metrics == {}


def test_what_one_repeat_withholds_is_withheld() -> None:
    found = pooled([run(), run(flags=(Flag("cold_start_outliers", "…", ("ttft_s.mean",)),)), run()])
    assert found.withheld == {"ttft_s.mean"}
    assert row(compared([found], [run(0.4)]), "ttft_s", "mean").verdict == "insufficient data"


def test_a_change_within_twice_the_spread_between_repeats_does_not_count() -> None:
    # TTFT 90, 100, 110 ms: standard deviation 10 ms, spread 10 %, so a change counts from 20 %. ITL does not vary: 3 %.
    base = (run(0.09), run(0.10), run(0.11))
    assert spreads_of(base)["ttft_s", "mean"] == pytest.approx(0.1)
    within, beyond = compared(base, [run(0.118, 0.011)]), compared(base, [run(0.121, 0.011)])
    assert row(within, "ttft_s", "mean").noise == pytest.approx(0.2)
    assert row(within, "ttft_s", "mean").verdict == "unchanged"
    assert row(beyond, "ttft_s", "mean").verdict == "regressed"
    assert (row(within, "itl_s", "mean").noise, row(within, "itl_s", "mean").verdict) == (0.03, "regressed")
    assert (within.phase, beyond.phase) == ("decode", "both")


def test_the_noisier_side_sets_the_threshold() -> None:
    steady, wild = (run(0.1), run(0.1), run(0.1)), (run(0.09), run(0.10), run(0.11))
    for base, other in ((steady, wild), (wild, steady)):
        found = compared(base, other)
        assert row(found, "ttft_s", "mean").noise == pytest.approx(0.2)
        assert row(found, "itl_s", "mean").noise == 0.03


def test_fewer_than_three_repeats_have_no_spread_and_say_so() -> None:
    pair = (run(0.05), run(0.2))
    assert spreads_of(pair) == {}
    assert compared(pair, pair).notes[0] == "2 repeats and 2 repeats: too few for a spread, so a change counts from 3 %."
    assert compared((run(),) * 3, (run(),)).notes[0].startswith("3 repeats and a single run: a change counts from 3 %, or from twice the")
    assert compared((run(),), (run(),)).notes[0].startswith("Single runs on both sides")


def test_a_tail_never_decides_the_phase() -> None:
    slow_tail = run(metrics={**run().metrics, "ttft_s": Distribution(mean=0.1, p50=0.1, p99=9.0, n=100_000)})
    assert compared([run(n=100_000)], [slow_tail]).phase == "none"


TIMES = st.floats(1e-3, 10)


@given(st.lists(TIMES, min_size=3, max_size=6), st.sampled_from([1 / 64, 1 / 4, 4.0, 64.0]))
def test_the_spread_does_not_depend_on_the_scale(values: list[float], scale: float) -> None:
    here, there = (spreads_of([run(value * by) for value in values])["ttft_s", "mean"] for by in (1.0, scale))
    assert here == pytest.approx(there)


@given(st.lists(TIMES, min_size=3, max_size=6), st.randoms(use_true_random=False))
def test_the_order_of_repeats_does_not_matter(values: list[float], random: "object") -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    here, there = (spreads_of([run(value) for value in each])["ttft_s", "mean"] for each in (values, shuffled))
    assert here == pytest.approx(there)


@given(TIMES, TIMES, st.integers(2, 5))
def test_equal_repeats_compare_as_one_run_does(a: float, b: float, repeats: int) -> None:
    many = compared([run(a)] * repeats, [run(b)] * repeats)
    once = compared([run(a)], [run(b)])
    assert many.phase == once.phase
    assert many.attribution is not None
    assert once.attribution is not None
    assert many.attribution.total_s == pytest.approx(once.attribution.total_s)
    assert [each.verdict for each in many.metrics if each.stat == "mean"] == [each.verdict for each in once.metrics if each.stat == "mean"]


@pytest.mark.parametrize(
    ("name", "texts", "pooled_text"),
    [
        ("preemptions", ["2", "3", "4"], "3"),
        ("preemptions", ["2", "2", "4"], "3"),
        ("kv_cache_usage_max", ["0.9", "0.96"], "0.93"),
        ("max_num_seqs", ["64", "64"], "64"),
        ("max_num_seqs", ["64", "128"], None),
        ("preemptions", ["2", None], None),
        ("preemptions", ["2", "many"], None),
    ],
)
def test_repeats_keep_a_setting_that_is_the_same_and_the_mean_of_what_was_counted(
    name: str, texts: list[str | None], pooled_text: str | None
) -> None:
    runs = [Run("generic", labels={} if text is None else {name: text}) for text in texts]
    assert pooled(runs).labels.get(name) == pooled_text
