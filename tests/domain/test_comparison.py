"""Two runs side by side, with figures worked out by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.attribution import attribute
from app.domain.comparison import Side, break_even, compare, moved_phase
from app.domain.run import Distribution, Flag, Rate, RequestCounts, Run, Workload


def run(
    ttft: float | None = 0.06, itl: float | None = 0.007, prompt: float = 1200, output: float = 300, n: int = 400, **changes: object
) -> Run:
    metrics: dict[str, object] = {}
    if ttft is not None:
        metrics["ttft_s"] = Distribution(mean=ttft, p50=ttft, p99=ttft * 1.2, n=n)
    if itl is not None:
        metrics["itl_s"] = Distribution(mean=itl, p50=itl, n=n * 299)
    base = Run(
        format="vllm_bench_serve",
        workload=Workload(prompt_tokens_mean=prompt, output_tokens_mean=output, concurrency=1),
        requests=RequestCounts(n, n, 0),
        metrics=metrics,  # type: ignore[arg-type]
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def side(number: int, measured: Run, **settings: str | int) -> Side:
    return Side(number, measured, {"model": "llama-3-1-8b", **settings})


def row(comparison: object, key: str, stat: str) -> object:
    return next(item for item in comparison.metrics if (item.key, item.stat) == (key, stat))  # type: ignore[attr-defined]


def test_prefill_slower_and_decode_faster_break_even_at_64_tokens() -> None:
    # (188 - 60.6) / (7.02 - 4.98) = 127.4 / 2.04 = 62.45, so 1 + 63 = 64 tokens.
    found = compare(side(1, run(0.0606, 0.00702)), side(2, run(0.188, 0.00498)))
    assert found.phase == "both"
    assert found.break_even_output_tokens == 64
    assert row(found, "ttft_s", "mean").verdict == "regressed"  # type: ignore[attr-defined]
    assert row(found, "itl_s", "mean").verdict == "improved"  # type: ignore[attr-defined]
    assert row(found, "itl_s", "mean").ratio == pytest.approx(0.00498 / 0.00702)  # type: ignore[attr-defined]


def test_the_parts_of_a_change_add_up() -> None:
    # Base 60.6 + 299 x 7.02 = 2159.58 ms; other 188 + 299 x 4.98 = 1677.02 ms; -482.56 = +127.4 - 609.96.
    found = attribute(run(0.0606, 0.00702), run(0.188, 0.00498))
    assert found is not None
    assert found.total_s == pytest.approx(-0.48256)
    assert [part.delta_s for part in found.halves] == pytest.approx([0.1274, -0.60996])
    assert found.remainder_s == pytest.approx(0, abs=1e-12)


def test_longer_outputs_are_workload_and_not_efficiency() -> None:
    # (399 - 299) gaps x 7 ms = 0.7 s more, all of it because the answers were longer.
    found = attribute(run(output=300), run(output=400))
    assert found is not None
    decode = found.halves[1]
    assert decode.workload_s == pytest.approx(0.7)
    assert decode.efficiency_s == pytest.approx(0)


def test_measured_end_to_end_leaves_a_remainder_that_is_shown() -> None:
    # 2.3 s measured against 0.06 + 299 x 0.007 = 2.153 s: 0.147 s nobody explains.
    slow = run()
    slow = replace(slow, metrics={**slow.metrics, "e2e_s": Distribution(mean=2.3)})
    found = attribute(run(), slow)
    assert found is not None
    assert found.remainder_s == pytest.approx(0.147)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (run(prompt=1400), "mean prompt length differs"),
        (run(output=200), "mean output length differs"),
        (run(workload=Workload(1200, 300, concurrency=8)), "number of clients differs"),
        (run(workload=Workload(1200, 300, concurrency=1, context_depth_tokens=4096)), "context already present differs"),
        (run(requests=RequestCounts(400, 0, 400)), "completed no request"),
    ],
)
def test_another_workload_is_not_comparable_and_says_why(other: Run, words: str) -> None:
    found = compare(side(1, run()), side(2, other))
    assert not found.comparable.ok
    assert words in " ".join(found.comparable.reasons)
    assert row(found, "ttft_s", "mean").verdict == "not comparable"  # type: ignore[attr-defined]


def test_another_model_is_not_comparable_but_another_precision_is_what_was_changed() -> None:
    assert not compare(side(1, run()), Side(2, run(), {"model": "qwen3-8b"})).comparable.ok
    found = compare(side(1, run(), weight_dtype="bf16"), side(2, run(), weight_dtype="int4"))
    assert found.comparable.ok
    assert [(item.key, item.base, item.other) for item in found.comparable.differing] == [("weight_dtype", "bf16", "int4")]


def test_within_three_percent_nothing_moved() -> None:
    found = compare(side(1, run(0.1, 0.01)), side(2, run(0.1029, 0.00971)))
    assert found.phase == "none"
    assert row(found, "ttft_s", "mean").verdict == "unchanged"  # type: ignore[attr-defined]


def test_a_tail_without_ten_samples_beyond_it_is_not_judged() -> None:
    found = compare(side(1, run(0.06)), side(2, run(0.12)))
    tail = row(found, "ttft_s", "p99")
    assert tail.verdict == "insufficient data"  # type: ignore[attr-defined]
    assert tail.note == "rests on 4 samples beyond it"  # type: ignore[attr-defined]
    wide = compare(side(1, run(0.06, n=2000)), side(2, run(0.12, n=2000)))
    assert row(wide, "ttft_s", "p99").verdict == "regressed"  # type: ignore[attr-defined]


def test_unlike_definitions_are_never_compared() -> None:
    base, other = run(), run()
    base = replace(base, metrics={"chunk_gap_s": Distribution(mean=0.007)})
    other = replace(other, metrics={"chunk_gap_s": Distribution(mean=0.02, definition="first gap is TTFT")})
    found = row(compare(side(1, base), side(2, other)), "chunk_gap_s", "mean")
    assert found.verdict == "not comparable"  # type: ignore[attr-defined]
    assert "first gap is TTFT" in found.note  # type: ignore[attr-defined]


def test_rates_of_another_scope_are_never_compared() -> None:
    base = replace(run(), metrics={"output_tokens_per_s": Rate(100, "aggregate")})
    other = replace(run(), metrics={"output_tokens_per_s": Rate(100, "device")})
    found = row(compare(side(1, base), side(2, other)), "output_tokens_per_s", "value")
    assert found.verdict == "not comparable"  # type: ignore[attr-defined]


def test_more_waiting_is_the_queue_and_not_prefill() -> None:
    def queued(ttft: float, queue: float) -> Run:
        measured = run(ttft)
        return replace(measured, metrics={**measured.metrics, "queue_s": Distribution(mean=queue)})

    # TTFT +200 ms, of which +190 ms were spent waiting.
    assert moved_phase(queued(0.1, 0.01), queued(0.3, 0.2)) == "queue"
    assert moved_phase(queued(0.1, 0.01), queued(0.3, 0.02)) == "prefill"


def test_one_phase_known_on_one_side_gives_no_numbers_and_no_error() -> None:
    found = compare(side(1, run(itl=None)), side(2, run(ttft=None)))
    assert found.attribution is None
    assert found.phase == "none"
    assert row(found, "ttft_s", "mean").verdict == "insufficient data"  # type: ignore[attr-defined]


times = st.floats(1e-4, 100)


@given(times, times, times, times, st.floats(1, 5000), st.floats(1, 5000))
def test_attribution_always_sums_to_the_change(t1: float, t2: float, i1: float, i2: float, o1: float, o2: float) -> None:
    found = attribute(run(t1, i1, output=o1), run(t2, i2, output=o2))
    assert found is not None
    assert sum(part.delta_s for part in found.halves) + found.remainder_s == pytest.approx(found.total_s, rel=1e-9, abs=1e-9)
    for part in found.halves:
        assert part.workload_s is not None
        assert part.efficiency_s is not None
        assert part.workload_s + part.efficiency_s == pytest.approx(part.delta_s, rel=1e-6, abs=1e-9)


@given(times, times, times, times)
def test_break_even_is_the_first_length_at_which_the_slow_starter_is_not_slower(t1: float, t2: float, i1: float, i2: float) -> None:
    base, other = run(t1, i1), run(t2, i2)
    n = break_even(base, other)
    if n is None:
        assert (t2 - t1) * (i2 - i1) >= 0
        return
    slow_starts_b = t2 > t1
    sign = 1 if slow_starts_b else -1
    behind = sign * ((t2 + (n - 1) * i2) - (t1 + (n - 1) * i1))
    assert behind <= 1e-6 * max(t1, t2)
    if n > 2:
        before = sign * ((t2 + (n - 2) * i2) - (t1 + (n - 2) * i1))
        assert before >= -1e-6 * max(t1, t2)


def test_a_withheld_figure_is_not_compared() -> None:
    doubtful = replace(run(0.2), flags=(Flag("cold_start_outliers", "…", ("ttft_s.mean",)),))
    found = compare(side(1, run(0.06)), side(2, doubtful))
    mean = row(found, "ttft_s", "mean")
    assert (mean.other, mean.ratio, mean.verdict) == (None, None, "insufficient data")  # type: ignore[attr-defined]
    assert mean.note == "withheld by a flag"  # type: ignore[attr-defined]
    assert row(found, "ttft_s", "p50").verdict == "regressed"  # type: ignore[attr-defined]


def test_percentiles_of_two_rules_are_not_compared_and_means_are() -> None:
    times = Distribution(mean=0.1, p50=0.1, p90=0.12, n=500)
    ours, theirs = (Run(format=name, measured_at="client", metrics={"ttft_s": times}) for name in ("vllm_bench_serve", "trtllm_bench"))
    rows = {row.stat: row for row in compare(Side(1, ours), Side(2, theirs)).metrics}
    assert rows["p90"].verdict == "not comparable"
    assert rows["p90"].note == "percentiles by linear between closest ranks against nearest rank"
    assert rows["mean"].verdict == "unchanged"
    sampled = replace(theirs, metrics={"ttft_s": replace(times, origin="samples")})
    assert {row.verdict for row in compare(Side(1, ours), Side(2, sampled)).metrics} == {"unchanged"}
