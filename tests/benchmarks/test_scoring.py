"""Scores on a few made points, worked out by hand: errors of times, populations, exclusions, groups."""

from dataclasses import replace

import pytest

from app.catalog import load
from app.catalog.measured import measurements
from app.domain.measurement import REJECTED, SPECULATIVE
from benchmarks.asked import Asked, ask
from benchmarks.scoring import POPULATIONS, Point, exclusions, groups, points_of, statistics


def row(kind: str, phase: str) -> Asked:
    """The first built-in row of a kind that measures this phase."""
    found = next(one for one in measurements() if one.kind == kind and (one.tpot_s if phase == "decode" else one.first_token_s))
    asked = ask(found, load(), lambda name: None)
    assert isinstance(asked, Asked)
    return asked


SERVED, STREAM = row("served", "decode"), row("stream", "decode")


def point(measured: float, predicted: float, asked: Asked = SERVED, floor: float = 0.001) -> Point:
    return Point(asked, "decode", measured, predicted, 0.8 * predicted, 1.25 * predicted, floor)


def test_errors_bias_and_shares() -> None:
    # errors 0.1, 0.5 and 0.2; ratios 1.1, 0.5 and 1.2; 0.02 lies above 0.01 x 1.25
    found = statistics([point(0.010, 0.011), point(0.020, 0.010), point(0.010, 0.012)])
    assert found["n"] == 3
    assert found["median_ape"] == pytest.approx(0.2)
    assert found["mean_ape"] == pytest.approx(0.8 / 3)
    assert found["bias"] == pytest.approx(0.1)
    assert found["within_20"] == pytest.approx(2 / 3)
    assert found["covered"] == pytest.approx(2 / 3)


def test_only_three_reasons_exclude_a_point() -> None:
    speculative = replace(SERVED, measurement=replace(SERVED.measurement, flags=(SPECULATIVE,)))
    rejected = replace(SERVED, measurement=replace(SERVED.measurement, flags=(REJECTED,)))
    made = [point(0.01, 5.0), point(0.01, 0.01, speculative), point(0.01, 0.01, rejected), point(0.01, 0.01, floor=0.02)]
    assert [one.excluded is None for one in made] == [True, False, False, False]
    assert sorted(group["n"] for group in exclusions(made)) == [1, 1, 1]


def test_a_point_belongs_to_one_population() -> None:
    for made in (point(0.01, 0.01), point(0.01, 0.01, STREAM)):
        assert len([name for name, belongs in POPULATIONS.items() if belongs(made)]) == 1
    batch = replace(STREAM, measurement=replace(STREAM.measurement, sequences=8.0))
    assert not any(belongs(point(0.01, 0.01, batch)) for belongs in POPULATIONS.values())


def test_groups_count_every_point_once_per_grouping() -> None:
    found = groups([point(0.01, 0.01), point(0.01, 0.02), point(0.01, 0.02, STREAM)])
    engines = [group for group in found if "engine" in group["by"]]
    assert sum(group["n"] for group in engines) == 3
    assert {group["by"]["phase"] for group in found} == {"decode"}


def test_a_row_gives_a_point_for_each_phase_it_measures() -> None:
    made = points_of(SERVED)
    assert {one.phase for one in made} == {"decode", "prefill"}
    for one in made:
        assert one.floor_s <= one.predicted_s
        assert one.low_s < one.predicted_s < one.high_s
