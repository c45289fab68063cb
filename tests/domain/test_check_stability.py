"""Flags of runs that were not one situation: drift, two modes, repeats apart, clocks, pauses; and the splits they rest on."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.checks import Evidence
from app.domain.checks.stability import trend, two_modes
from app.domain.run import Distribution, Floats, RequestSamples, Run
from tests.domain.checked import SOUND, many, raised, with_samples


def steady(tpot: Floats) -> Run:
    """Requests of 11 tokens one after another with these TPOTs."""
    ttft = np.full(tpot.size, 0.1)
    return with_samples(many(ttft, ttft + 10 * tpot, np.full(tpot.size, 11.0), start=list(range(tpot.size))))


def test_a_rate_that_falls_block_by_block() -> None:
    flags = raised(SOUND, Evidence(rate_blocks=(700.0, 720.0, 715.0, 690.0, 660.0, 640.0, 630.0, 629.0)))
    assert flags["drift_within_run"].figures["change"] == pytest.approx(629 / 720 - 1)
    assert "clock_throttle" in flags


@pytest.mark.parametrize("blocks", [(700.0, 705.0, 698.0, 702.0), (700.0, 600.0, 705.0, 640.0, 701.0), (700.0, 650.0), ()])
def test_rates_that_wander_or_stay_do_not_drift(blocks: tuple[float, ...]) -> None:
    assert not {"drift_within_run", "clock_throttle"} & raised(SOUND, Evidence(rate_blocks=blocks)).keys()


def test_tpot_that_grows_with_the_run() -> None:
    flag = raised(steady(np.linspace(0.010, 0.013, 102)))["drift_within_run"]
    assert flag.figures["change"] == pytest.approx(0.27, abs=0.02)
    level = np.random.default_rng(7).normal(0.010, 0.0003, 102)
    assert "drift_within_run" not in raised(steady(level))
    assert "drift_within_run" not in raised(steady(np.linspace(0.010, 0.013, 30)))


def test_a_core_clock_that_fell() -> None:
    fell = {**SOUND.metrics, "sm_clock_hz": Distribution(mean=1.6e9, min=1.4e9, max=1.98e9)}
    flag = raised(replace(SOUND, metrics=fell))["clock_throttle"]
    assert flag.figures["change"] == pytest.approx(1.4 / 1.98 - 1)
    held = {**SOUND.metrics, "sm_clock_hz": Distribution(mean=1.97e9, min=1.95e9, max=1.98e9)}
    assert "clock_throttle" not in raised(replace(SOUND, metrics=held))


def gaps_of(values: Floats) -> RequestSamples:
    size = values.size // 10
    return many(np.full(size, 0.1), np.full(size, 9.0), np.full(size, 11.0), gaps=[list(row) for row in values.reshape(size, 10)])


def test_stalls_among_steps() -> None:
    rng = np.random.default_rng(3)
    usual = rng.normal(0.020, 0.001, 480)
    values = np.concatenate([usual, np.full(20, 0.8)])
    flag = raised(with_samples(gaps_of(values)))["bimodal_itl"]
    assert flag.figures["usual_s"] == pytest.approx(0.02, rel=0.02)
    assert flag.figures["other_s"] == pytest.approx(0.8, rel=0.01)
    assert flag.figures["other_share"] == pytest.approx(0.04)
    # 20 x 0.8 s beside 480 x 20 ms
    assert flag.figures["other_time_share"] == pytest.approx(16 / (16 + 9.6), rel=0.02)


@pytest.mark.parametrize("spread", [0.01, 0.2, 0.8])
def test_one_kind_of_gap_is_not_two(spread: float) -> None:
    rng = np.random.default_rng(5)
    assert "bimodal_itl" not in raised(with_samples(gaps_of(0.02 * np.exp(rng.normal(0, spread, 500)))))
    assert two_modes(0.02 + rng.exponential(0.02, 2000)) is None
    assert two_modes(rng.uniform(0.01, 0.2, 2000)) is None


@given(st.floats(2e-3, 0.5), st.floats(4, 50), st.integers(5, 95))
def test_two_spikes_are_found_whatever_their_place_and_share(low: float, ratio: float, percent: int) -> None:
    values = np.concatenate([np.full(10 * (100 - percent), low), np.full(10 * percent, low * ratio)])
    modes = two_modes(values)
    assert modes is not None
    assert (modes.low, modes.high, modes.share) == (pytest.approx(low), pytest.approx(low * ratio), pytest.approx(percent / 100))


def test_too_few_gaps_have_no_modes() -> None:
    assert two_modes(np.array([0.01] * 40 + [0.5] * 40)) is None
    assert two_modes(np.empty(0)) is None


def test_a_repeat_that_stands_apart() -> None:
    flag = raised(SOUND, Evidence(repeats=(97.0, 98.0, 97.5, 61.0, 98.2, 97.9)))["bimodal_runs"]
    assert flag.figures == {"median": pytest.approx(97.7), "outliers": 1, "outlier_index": 3}


@pytest.mark.parametrize("repeats", [(97.0, 98.0, 97.5, 96.0, 98.2), (50.0, 100.0, 60.0, 120.0, 80.0), (1.0, 1.0, 5.0), ()])
def test_repeats_alike_scattered_or_few_are_one_group(repeats: tuple[float, ...]) -> None:
    assert "bimodal_runs" not in raised(SOUND, Evidence(repeats=repeats))


def paused(woken: float, decode: float = 0.2) -> Run:
    """Ten requests one after another: every other one follows a pause of 5 s and has a TTFT of `woken`, decode of `decode`."""
    ttft = np.array([0.03, woken] * 5)
    e2e = ttft + np.array([0.2, decode] * 5)
    starts = np.cumsum(np.concatenate([[0.0], e2e[:-1] + np.array([5.0, 0.0] * 4 + [5.0])]))
    return with_samples(many(np.append(ttft, 0.03), np.append(e2e, 0.23), np.full(11, 21.0), start=[*starts, float(starts[-1] + e2e[-1])]))


def test_a_device_that_has_to_wake_up() -> None:
    flag = raised(paused(0.11))["idle_wakeup"]
    assert flag.figures["wakeup_s"] == pytest.approx(0.08)
    assert "of 5 s" in flag.evidence


def test_no_waking_up_where_nothing_waits_or_decode_changes_too() -> None:
    assert "idle_wakeup" not in raised(paused(0.032))
    assert "idle_wakeup" not in raised(paused(0.11, decode=0.4))


def test_a_trend_needs_three_known_blocks() -> None:
    assert trend([1.0, 2.0]) is None
    assert trend([1.0, float("nan"), 2.0]) is None
    assert trend([1.0, 0.0, 2.0]) is None
    level = trend([2.0, 2.0, 2.0])
    assert level is not None
    assert (level.order, level.change) == (0.0, 0.0)


@given(st.lists(st.floats(0.1, 1e6), min_size=3, max_size=30))
def test_a_trend_and_its_mirror(blocks: list[float]) -> None:
    found, mirrored = trend(blocks), trend(blocks[::-1])
    assert found is not None
    assert mirrored is not None
    assert (found.first, found.last, found.best) == (mirrored.last, mirrored.first, mirrored.best)
    assert found.change <= 0
    assert -1.0000001 <= found.order <= 1.0000001
