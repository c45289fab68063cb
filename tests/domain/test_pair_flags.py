"""Flags of two runs together, runs joined by what was measured, and counts of both ends of a connection."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.comparison import Side, compare
from app.domain.pair_flags import pair_flags
from app.domain.pairing import pair_runs, workload_key
from app.domain.reconciling import reconcile
from app.domain.run import Distribution, Flag, MetricValue, RequestCounts, Run, Workload


def one(prompt: float = 1000, output: float = 200, depth: int = 0, **means: float) -> Run:
    metrics: dict[str, MetricValue] = {key: Distribution(mean=value) for key, value in means.items()}
    workload = Workload(prompt_tokens_mean=prompt, output_tokens_mean=output, context_depth_tokens=depth)
    return Run(format="x", measured_at="client", workload=workload, metrics=metrics)


def flags(base: Run, other: Run) -> dict[str, Flag]:
    return {flag.flag: flag for flag in pair_flags(base, other)}


def test_the_same_work_raises_nothing() -> None:
    assert pair_flags(one(), one(1040, 208)) == ()
    assert pair_flags(Run(format="x"), Run(format="y")) == ()


def test_answers_of_another_length_are_other_work_and_ended_early() -> None:
    found = flags(one(), one(output=100))
    assert set(found) == {"not_comparable_workload", "short_outputs_eos"}
    assert found["not_comparable_workload"].figures == {"outputs_base": 200, "outputs_other": 100}
    assert found["short_outputs_eos"].figures == {"output_base": 200, "output_other": 100}


def test_other_prompts_or_another_depth_are_other_work() -> None:
    assert set(flags(one(), one(prompt=4000, output=100))) == {"not_comparable_workload"}
    assert flags(one(), one(depth=512))["not_comparable_workload"].figures == {"depth_base": 0, "depth_other": 512}


@pytest.mark.parametrize("swapped", [False, True])
def test_a_side_that_pauses_wakes_up(swapped: bool) -> None:
    sides = [one(ttft_s=0.05, itl_s=0.01, idle_before_s=0.0), one(ttft_s=0.12, itl_s=0.0101, idle_before_s=20.0)]
    flag = flags(*(sides[::-1] if swapped else sides))["idle_wakeup"]
    assert flag.figures == {"wakeup_s": pytest.approx(0.07), "pause_s": 20.0}


@pytest.mark.parametrize(
    "rested",
    [
        one(ttft_s=0.12, itl_s=0.02, idle_before_s=20.0),
        one(ttft_s=0.0505, itl_s=0.01, idle_before_s=20.0),
        one(ttft_s=0.12, itl_s=0.01, idle_before_s=0.1),
        one(ttft_s=0.12, itl_s=0.01),
    ],
    ids=["decode too", "no longer wait", "no pause", "pause not known"],
)
def test_a_longer_wait_alone_is_no_waking_up(rested: Run) -> None:
    assert "idle_wakeup" not in flags(one(ttft_s=0.05, itl_s=0.01, idle_before_s=0.0), rested)


def test_clocks_that_differ() -> None:
    flag = flags(one(sm_clock_hz=1.98e9, memory_clock_hz=2.6e9), one(sm_clock_hz=1.5e9, memory_clock_hz=2.6e9))["clock_throttle"]
    assert flag.figures == {"core_change": pytest.approx(1.5 / 1.98 - 1), "memory_change": 0}
    assert "clock_throttle" not in flags(one(sm_clock_hz=1.98e9), one(sm_clock_hz=1.97e9))


def test_a_comparison_carries_the_flags_of_the_pair() -> None:
    found = compare(Side(1, one(ttft_s=0.1, itl_s=0.01)), Side(2, one(output=100, ttft_s=0.2, itl_s=0.01)))
    assert [flag.flag for flag in found.flags] == ["not_comparable_workload", "short_outputs_eos"]
    ttft = next(row for row in found.metrics if row.key == "ttft_s")
    assert ttft.change == pytest.approx(1.0)


def test_a_client_and_its_server_are_reconciled() -> None:
    client = replace(one(), requests=RequestCounts(1000, 950, 50))
    server = replace(one(), measured_at="server", requests=RequestCounts(completed=1040))
    notes = compare(Side(1, client), Side(2, server)).notes
    assert "The server began 1,040 answers, the client can name 1,000 requests: 40 are known to one side only." in notes
    same = replace(server, requests=RequestCounts(completed=1000))
    assert any(note.endswith("none is missing.") for note in compare(Side(1, client), Side(2, same)).notes)
    assert len(compare(Side(1, client), Side(2, client)).notes) == 1


def test_counts_that_add_up() -> None:
    found = reconcile(served=520, completed=480, failed=20, warmup=15)
    assert (found.explained, found.difference) == (515, 5)


def test_runs_are_joined_by_model_and_load() -> None:
    before = [replace(one(), model=name) for name in ("a", "b", "c")]
    after = [replace(one(), model=name) for name in ("b", "a", "d")]
    found = pair_runs(before, after)
    assert [(base.model, other.model) for base, other in found.pairs] == [("a", "a"), ("b", "b")]
    assert [run.model for run in found.only_before] == ["c"]
    assert [run.model for run in found.only_after] == ["d"]


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_joining_does_not_depend_on_the_order(left: list[int], right: list[int]) -> None:
    runs = [replace(one(), model=f"m{number % 3}", workload=Workload(concurrency=number // 3)) for number in range(6)]
    found = pair_runs([runs[index] for index in left], [runs[index] for index in right])
    assert all(workload_key(base) == workload_key(other) for base, other in found.pairs)
    assert len(found.pairs) == 6
