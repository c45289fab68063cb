"""Which runs belong together, and one word for a run beside its baseline."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.against_baseline import against_baseline
from app.domain.comparison import Side, compare
from app.domain.run import Distribution, Flag, RequestCounts, Run, Workload
from app.domain.series import Series, missing_identity, series_of

SERIES = Series("default", "llama", "h100", "vllm", "closed", "client", 32, 0, None, 2000.0, 300.0)


@pytest.mark.parametrize(
    ("change", "held"),
    [
        ({}, True),
        ({"prompt_tokens": 2100.0}, True),
        ({"prompt_tokens": 2101.0}, False),
        ({"output_tokens": 285.0}, True),
        ({"output_tokens": 284.0}, False),
        ({"output_tokens": None}, False),
        ({"model": "other"}, False),
        ({"hardware": "other"}, False),
        ({"engine": "sglang"}, False),
        ({"project": "other"}, False),
        ({"concurrency": 16}, False),
        ({"concurrency": None}, False),
        ({"load_mode": "open"}, False),
        ({"measured_at": "server"}, False),
        ({"context_depth_tokens": 512}, False),
        ({"request_rate_per_s": 1.0}, False),
    ],
)
def test_a_series_holds_what_answers_the_same_question(change: dict[str, Any], held: bool) -> None:
    assert SERIES.holds(replace(SERIES, **change)) is held


def test_a_run_without_model_hardware_or_engine_is_in_no_series() -> None:
    workload = Workload(prompt_tokens_mean=2000.0)
    assert series_of("default", ("llama", "h100", "vllm"), None, None, workload) is not None
    for place in range(3):
        identity = tuple(None if index == place else word for index, word in enumerate(("llama", "h100", "vllm")))
        assert series_of("default", identity, None, None, workload) is None  # type: ignore[arg-type]
    assert missing_identity("llama", None, "") == ("hardware", "engine")


def run_of(ttft_ms: float | None, itl_ms: float | None, prompt: float = 2000.0) -> Run:
    times = {"ttft_s": ttft_ms, "itl_s": itl_ms}
    metrics = {key: Distribution(mean=value / 1e3, n=1000) for key, value in times.items() if value is not None}
    return Run("generic", workload=Workload(prompt_tokens_mean=prompt), metrics=metrics, requests=RequestCounts(completed=1000))


@pytest.mark.parametrize(
    ("other", "verdict", "phase"),
    [
        (run_of(100, 10), "unchanged", ""),
        (run_of(110, 10), "regressed", "prefill"),
        (run_of(100, 11), "regressed", "decode"),
        (run_of(110, 11), "regressed", ""),
        (run_of(90, 10), "improved", "prefill"),
        (run_of(100, 9), "improved", "decode"),
        (run_of(90, 9), "improved", ""),
        # what got worse is not made good by the other phase
        (run_of(110, 9), "regressed", "prefill"),
        (run_of(None, 11), "regressed", "decode"),
        (run_of(100, None), "unchanged", ""),
        (run_of(None, None), "insufficient data", ""),
        (run_of(200, 20, prompt=4000.0), "not comparable", ""),
    ],
)
def test_one_word_for_a_run_beside_its_baseline(other: Run, verdict: str, phase: str) -> None:
    found = against_baseline(compare(Side(1, run_of(100, 10)), Side(2, other)))
    assert (found.verdict, found.phase) == (verdict, phase)


def test_a_withheld_figure_speaks_for_no_phase() -> None:
    flagged = replace(run_of(500, 10), flags=(Flag("first_chunk_role_only", "", ("ttft_s",)),))
    found = against_baseline(compare(Side(1, run_of(100, 10)), Side(2, flagged)))
    assert found.verdict == "unchanged"
    assert found.regressed == ()


def test_a_change_within_the_spread_of_repeats_does_not_count() -> None:
    base, other = Side(1, run_of(100, 10)), Side(2, run_of(110, 10))
    assert against_baseline(compare(base, other, {("ttft_s", "mean"): 0.06})).verdict == "unchanged"
    found = compare(base, other, {("ttft_s", "mean"): 0.04})
    assert against_baseline(found).verdict == "regressed"
    assert (found.phase, found.notes[0][:20]) == ("prefill", "A change counts from")
    assert [row.noise for row in found.metrics] == [0.08, 0.03]


@given(st.floats(0.01, 10), st.floats(0.01, 10))
def test_swapping_the_runs_turns_the_verdict_round(first: float, second: float) -> None:
    """Outside the band where 3 % of one side is not 3 % of the other."""
    ratio = max(first, second) / min(first, second)
    if 1.02 < ratio < 1.04:
        return
    there, back = (
        against_baseline(compare(Side(1, a), Side(2, b)))
        for a, b in ((run_of(1, first), run_of(1, second)), (run_of(1, second), run_of(1, first)))
    )
    assert {"improved": "regressed", "regressed": "improved"}.get(there.verdict, there.verdict) == back.verdict
