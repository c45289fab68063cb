"""Runs of a file found again after it was read anew, and what changed in each."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.rereading import Change, OperatingPoint, changes, match, operating_point
from app.domain.run import Distribution, Flag, Rate, RequestCounts, Run, Workload

BEFORE = Run(
    "f",
    model="m",
    duration_s=10.0,
    workload=Workload(prompt_tokens_mean=100.0, concurrency=4),
    requests=RequestCounts(completed=5),
    metrics={"ttft_s": Distribution(mean=0.1, p50=0.09, n=5), "output_tokens_per_s": Rate(50.0, "aggregate")},
    flags=(Flag("few_requests", "5 requests"),),
    labels={"commit": "a"},
    warnings=("odd",),
)


def point(clients: int, tokens: int = 100, label: str = "a") -> OperatingPoint:
    return operating_point(Run("f", workload=Workload(prompt_tokens_mean=float(tokens), concurrency=clients)), {"label": label})


def test_nothing_differs_from_itself() -> None:
    assert changes(BEFORE, BEFORE) == ()
    almost = replace(BEFORE, metrics={**BEFORE.metrics, "ttft_s": Distribution(mean=0.1 * (1 + 1e-12), p50=0.09, n=5)})
    assert changes(BEFORE, almost) == ()


def test_every_part_is_compared_key_by_key() -> None:
    now = replace(
        BEFORE,
        model="other",
        duration_s=None,
        workload=Workload(prompt_tokens_mean=101.0, concurrency=4),
        requests=RequestCounts(completed=5, failed=1),
        metrics={"ttft_s": Distribution(mean=0.2, n=5, origin="samples"), "itl_s": Distribution(mean=0.01)},
        flags=(Flag("cold_start_outliers", "first", ("ttft_s.mean",)),),
        labels={"commit": "b"},
        warnings=("odd", "new"),
    )
    assert set(changes(BEFORE, now)) == {
        Change("word", "model", "m", "other"),
        Change("fact", "duration_s", 10.0, None),
        Change("workload", "prompt_tokens_mean", 100.0, 101.0),
        Change("requests", "failed", None, 1),
        Change("metric", "ttft_s.mean", 0.1, 0.2),
        Change("metric", "ttft_s.p50", 0.09, None),
        Change("metric", "ttft_s.from", "reported", "samples"),
        Change("metric", "itl_s.mean", None, 0.01),
        Change("metric", "itl_s.from", None, "reported"),
        Change("metric", "itl_s.definition", None, "canonical"),
        Change("metric", "output_tokens_per_s.value", 50.0, None),
        Change("metric", "output_tokens_per_s.scope", "aggregate", None),
        Change("metric", "output_tokens_per_s.from", "reported", None),
        Change("metric", "output_tokens_per_s.definition", "canonical", None),
        Change("flag", "few_requests", "5 requests", None),
        Change("flag", "cold_start_outliers", None, "first Withheld: ttft_s.mean."),
        Change("label", "commit", "a", "b"),
        Change("warning", "new", None, "new"),
    }


@pytest.mark.parametrize(("old", "new", "kind"), [(None, 1, "added"), (1, None, "gone"), (1, 2, "changed"), (0, 1, "changed")])
def test_a_change_has_a_kind(old: int | None, new: int | None, kind: str) -> None:
    assert Change("metric", "k", old, new).kind == kind


def test_a_point_survives_being_kept() -> None:
    assert OperatingPoint.from_data(point(3).as_data()) == point(3)
    with pytest.raises(ValueError, match="unpack"):
        OperatingPoint.from_data([])


@pytest.mark.parametrize(
    ("before", "now", "pairs", "gone", "added"),
    [
        ([point(1), point(2)], [point(1), point(2)], [(0, 0), (1, 1)], [], []),
        # A warm-up at the head is read no longer: the others keep their numbers.
        ([point(1), point(2), point(4)], [point(2), point(4)], [(1, 0), (2, 1)], [0], []),
        ([point(2)], [point(1), point(2)], [(0, 1)], [], [0]),
        # Repeats of one point are told apart by their order.
        ([point(1), point(1)], [point(1), point(1)], [(0, 0), (1, 1)], [], []),
        ([point(1), point(1), point(1)], [point(1)], [(0, 0)], [1, 2], []),
        # Another label, another count of tokens: the load still tells.
        ([point(1), point(2)], [point(1, label="b"), point(2, tokens=90)], [(0, 0), (1, 1)], [], []),
        # Nothing agrees, but there are as many.
        ([point(1), point(2)], [point(3), point(4)], [(0, 0), (1, 1)], [], []),
        ([point(1), point(2)], [point(3)], [], [0, 1], [0]),
        ([], [], [], [], []),
    ],
)
def test_runs_are_found_again_by_what_they_measured(
    before: list[OperatingPoint], now: list[OperatingPoint], pairs: list[tuple[int, int]], gone: list[int], added: list[int]
) -> None:
    found = match(before, now)
    assert (list(found.pairs), list(found.gone), list(found.added)) == (pairs, gone, added)


points = st.lists(st.builds(point, st.integers(1, 3), st.sampled_from([100, 200]), st.sampled_from("ab")), max_size=6)


@given(points, points)
def test_each_run_is_in_one_place(before: list[OperatingPoint], now: list[OperatingPoint]) -> None:
    found = match(before, now)
    assert sorted([*(old for old, _ in found.pairs), *found.gone]) == list(range(len(before)))
    assert sorted([*(new for _, new in found.pairs), *found.added]) == list(range(len(now)))
    assert match(before, before).pairs == tuple((each, each) for each in range(len(before)))
