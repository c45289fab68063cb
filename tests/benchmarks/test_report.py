"""The shape all benchmarks share: the contract's three keys, percentiles, targets that are shown and never decide."""

import json
import math

import pytest

from benchmarks.report import Report, Target, as_json, as_text, machine, percentile

REPORT = Report(
    figures={"page_p95_s": 0.0412, "predictions_per_s": 2_588_294.0, "rss_bytes": 131_571_712, "lost": math.nan},
    groups=[{"by": {"page": "/"}, "n": 300, "p95_s": 0.0412}],
    conditions={"cores": 2, "busy": True, "versions": {"numpy": "2.4.6"}},
)


def test_json_is_the_contracts_object_and_an_unknown_figure_is_null() -> None:
    shown = json.loads(as_json(REPORT))
    assert list(shown) == ["figures", "groups", "conditions"]
    assert shown["figures"] == {"page_p95_s": 0.0412, "predictions_per_s": 2_588_294.0, "rss_bytes": 131_571_712, "lost": None}
    assert shown["groups"] == [{"by": {"page": "/"}, "n": 300, "p95_s": 0.0412}]
    assert shown["conditions"]["versions"] == {"numpy": "2.4.6"}


def test_text_says_for_each_target_whether_it_is_reached() -> None:
    targets = {"page_p95_s": Target(0.05), "predictions_per_s": Target(3e6, "at least"), "rss_bytes": Target(200e6)}
    lines = as_text(REPORT, targets).splitlines()
    assert lines[0].split() == ["page_p95_s", "0.0412", "reached:", "at", "most", "0.05"]
    assert lines[1].split() == ["predictions_per_s", "2,588,294", "MISSED:", "at", "least", "3,000,000"]
    assert lines[2].split()[:3] == ["rss_bytes", "131,571,712", "reached:"]
    assert lines[3].split() == ["lost", "nan"]
    assert "  page /: n 300, p95_s 0.0412" in lines
    assert "busy: yes" in lines


@pytest.mark.parametrize(
    ("side", "below", "same", "above"), [("at most", True, True, False), ("at least", False, True, True), ("exactly", False, True, False)]
)
def test_a_target_has_a_side(side: str, below: bool, same: bool, above: bool) -> None:
    target = Target(3.0, side)  # type: ignore[arg-type]
    assert (target.reached(2.9), target.reached(3.0), target.reached(3.1)) == (below, same, above)


def test_a_figure_that_is_not_known_reaches_nothing() -> None:
    assert not any(Target(1.0, side).reached(math.nan) for side in ("at most", "at least", "exactly"))


# Of 20 values the 19th covers 95 %; of 10 the 10th, since 9 are 90 %; of one that one.
@pytest.mark.parametrize(("n", "expected"), [(20, 19), (10, 10), (1, 1), (100, 95)])
def test_percentile_is_the_smallest_value_that_covers_the_share(n: int, expected: int) -> None:
    values = [float(value) for value in range(n, 0, -1)]
    assert percentile(values, 0.95) == expected


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="nothing"):
        percentile([], 0.95)


def test_conditions_say_what_a_figure_depends_on() -> None:
    conditions = machine()
    assert conditions["cores"] >= 1
    assert conditions["load_average_1m"] >= 0
    assert conditions["versions"]["numpy"]
    assert conditions["yardstick_s"] > 0
    assert {"python", "processor", "system", "sqlite", "phaseline", "busy"} <= set(conditions)
