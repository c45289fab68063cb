"""The verdict on repeats, and what telemetry of a run gives."""

import numpy as np
import pytest

from app.domain.stability import spread, worst
from app.domain.telemetry import Telemetry


@pytest.mark.parametrize(
    ("values", "share", "verdict"),
    [
        # quartiles of five values are the second and the fourth
        ([1.0, 1.0, 1.0, 1.0, 50.0], 0.0, "stable"),
        ([0.9, 0.96, 1.0, 1.05, 1.1], 0.09, "stable"),
        ([0.8, 0.9, 1.0, 1.1, 1.2], 0.2, "noisy"),
        ([0.5, 0.8, 1.0, 1.2, 9.0], 0.4, "unusable"),
    ],
)
def test_the_verdict_is_the_distance_of_the_quartiles(values: list[float], share: float, verdict: str) -> None:
    found = spread(np.array([*values, np.nan]))
    assert found is not None
    assert (found.n, found.iqr_share, found.verdict) == (5, pytest.approx(share), verdict)


def test_two_values_tell_nothing_and_the_worse_verdict_counts() -> None:
    assert spread(np.array([1.0, 2.0])) is None
    assert worst(None, None) is None
    assert worst(spread(np.array([1.0, 1.0, 1.0])), None, spread(np.array([1.0, 2.0, 3.0]))) == "unusable"


def series(**channels: list[float]) -> Telemetry:
    return Telemetry(np.array([0.0, 1.0, 2.0, 3.0]), {key: np.array(values) for key, values in channels.items()})


def test_energy_is_the_counters_difference_else_power_over_time_else_not_known() -> None:
    assert series(energy_j=[5.0, 10.0, 20.0, 35.0], power_w=[1.0] * 4).energy_j == 30.0
    # 100 W for 3 s; a missing sample is bridged
    assert series(power_w=[100.0, 100.0, np.nan, 100.0]).energy_j == 300.0
    assert series(temperature_c=[50.0] * 4).energy_j is None


def test_a_window_counts_from_its_start_and_leaves_out_channels_without_samples() -> None:
    found = series(power_w=[1.0, 2.0, 3.0, 4.0], temperature_c=[50.0, np.nan, np.nan, 50.0]).between(1.0, 2.5)
    assert found is not None
    assert found.t_s.tolist() == [0.0, 1.0]
    assert list(found.channels) == ["power_w"]
    assert series(power_w=[1.0] * 4).between(8.0, 9.0) is None
    assert series(power_w=[1.0, 2.0, 3.0, 4.0]).thinned(2).channels["power_w"].tolist() == [1.0, 4.0]


def test_only_reasons_that_slow_a_device_count_as_throttling() -> None:
    # idle (0x1) and a set clock (0x2) slow nothing; heat (0x40) and the power limit (0x4) do
    found = series(throttle_reasons=[1.0, 2.0, 0x44, 0.0])
    assert found.throttled_share == 0.25
    assert found.throttle_words == ("power limit", "heat (hardware)")
    assert series(power_w=[1.0] * 4).throttled_share is None
