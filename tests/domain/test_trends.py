"""Trends: levels, their noise and where they change; which settings changed with them."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.metrics import METRICS
from app.domain.trends import TrendPoint, setting_changes, telling, trend

START = datetime(2026, 5, 1, tzinfo=UTC)


def points(values: list[float | None]) -> list[TrendPoint]:
    return [TrendPoint(number, f"run {number}", START + timedelta(days=number), value, 100) for number, value in enumerate(values, 1)]


def shifted(factor: float, seed: int = 1) -> list[float | None]:
    """Twelve runs around 10 and twelve around 10 times the factor, within 1 %."""
    noise = np.random.default_rng(seed).normal(1, 0.01, 24)
    return [float(value) for value in noise * np.r_[np.full(12, 10.0), np.full(12, 10.0 * factor)]]


@pytest.mark.parametrize(
    ("key", "factor", "verdict"),
    [("itl_s", 1.1, "regressed"), ("itl_s", 0.9, "improved"), ("output_tokens_per_s", 1.1, "improved"), ("sm_clock_hz", 0.9, "moved")],
)
def test_a_change_of_level_has_a_place_a_size_and_a_direction(key: str, factor: float, verdict: str) -> None:
    found = trend(METRICS[key], "mean", points(shifted(factor)))
    (change,) = found.changes
    assert (change.before_run_id, change.run_id, change.verdict) == (12, 13, verdict)
    assert change.change == pytest.approx(factor - 1, abs=0.01)
    assert [len(level.runs) for level in found.levels] == [12, 12]
    assert (found.levels[1].first, found.levels[1].last) == (START + timedelta(days=13), START + timedelta(days=24))


def test_the_noise_around_a_level() -> None:
    quiet = trend(METRICS["itl_s"], "mean", points([10.0, 10.01, 9.99, 10.0])).levels[0]
    assert (quiet.noise, quiet.low, quiet.high) == (0.03, pytest.approx(9.7), pytest.approx(10.3))
    loud = trend(METRICS["itl_s"], "mean", points([10.0, 11.0, 9.0])).levels[0]
    # differences 1 and -2: sqrt(5 / 4) / 10, twice that is the noise
    assert loud.noise == pytest.approx(2 * 1.25**0.5 / 10)
    assert trend(METRICS["itl_s"], "mean", points([10.0, 10.0])).levels[0].spread is None


def test_a_change_below_3_percent_is_no_other_level_however_sure_it_is() -> None:
    assert trend(METRICS["itl_s"], "mean", points(shifted(1.025))).changes == ()


def test_points_without_a_figure_stay_and_count_for_nothing() -> None:
    values = shifted(1.1)
    values[3:3] = [None, None]
    found = trend(METRICS["itl_s"], "mean", points(values))
    assert len(found.points) == 26
    assert len(found.known) == 24
    assert [change.run_id for change in found.changes] == [15]
    assert trend(METRICS["itl_s"], "mean", points([None])).levels == ()
    assert trend(METRICS["itl_s"], "mean", []).points == ()


@given(st.lists(st.one_of(st.none(), st.floats(1e-6, 1e6)), max_size=40))
def test_every_known_run_is_in_one_level(values: list[float | None]) -> None:
    found = trend(METRICS["itl_s"], "mean", points(values))
    assert [run for level in found.levels for run in level.runs] == [point.run_id for point in found.known]
    assert len(found.changes) == max(0, len(found.levels) - 1)
    assert all(abs(change.change) > 0.03 for change in found.changes)
    assert all(level.low <= level.centre <= level.high for level in found.levels)


def test_changed_settings_are_told_between_one_run_and_the_next() -> None:
    runs = [
        (1, START, {"engine_version": "0.9.1", "tp": 1}),
        (2, START, {"engine_version": "0.9.1", "tp": 1}),
        (3, START, {"engine_version": "0.9.2", "tp": 1}),
        (4, START, {"engine_version": "0.9.2"}),
    ]
    assert [(each.run_id, each.key, each.before, each.after) for each in setting_changes(runs)] == [
        (3, "engine_version", "0.9.1", "0.9.2"),
        (4, "tp", 1, None),
    ]
    assert setting_changes([]) == ()


def test_a_label_that_repeats_a_setting_is_told_once_and_one_of_every_run_never() -> None:
    versions = ("0.9.1", "0.9.1", "0.9.2")
    runs = [
        (
            number,
            START,
            {"engine_version": version, "label: vllm_version": version, "label: commit": f"c{number}", "label: eager": str(number > 1)},
        )
        for number, version in enumerate(versions)
    ]
    assert [(each.run_id, each.key) for each in setting_changes(runs)] == [(2, "engine_version"), (2, "label: eager")]
    assert "label: commit" not in telling([settings for _, _, settings in runs])
