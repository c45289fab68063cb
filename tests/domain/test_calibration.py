"""Calibration: known scalars come back from runs made with them, noise does not carry it away, and too little is refused."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.calibration import LEAST_POINTS, CalibrationRefused, Fit, Point, calibrated, fit
from app.domain.engine import EngineProfile
from app.domain.errors import InvalidRequest
from app.domain.prediction import Request
from app.domain.scalars import NAMES, Scalars
from app.domain.serving import predict
from tests.domain.subjects import ENGINE, LLAMA_8B, SERVER

TRUTH = {"read": 0.8, "compute": 0.75, "layers": 1.4, "steps": 1.5, "interference": 0.75}
GRID = tuple(itertools.product((1, 4, 16, 64), (500, 4000), (1, 2)))


def runs(
    truth: dict[str, float],
    grid: tuple[tuple[int, int, int], ...] = GRID,
    noise: float = 0.0,
    engine: EngineProfile = ENGINE,
    seed: int = 0,
) -> list[Point]:
    """Points as this device would give them if its scalars were `truth`: clients, prompt tokens and tp of each."""
    random = np.random.default_rng(seed)
    made = replace(engine, scalars=Scalars(**truth))
    points = []
    for number, (clients, prompt, tp) in enumerate(grid):
        request = Request(prompt_tokens=prompt, output_tokens=200, concurrency=clients if clients > 1 else None, tp=tp)
        found = predict(LLAMA_8B, SERVER, request, engine=made)
        first, further = random.normal(1.0, noise, 2) if noise else (1.0, 1.0)
        points.append(Point(number + 1, LLAMA_8B, request, found.ttft_s * first, found.itl_s * further))
    return points


@pytest.fixture(scope="module")
def found() -> Fit:
    """The fit to sixteen points without noise."""
    return fit(runs(TRUTH), SERVER, ENGINE)


def test_known_scalars_are_found_again(found: Fit) -> None:
    for name, value in TRUTH.items():
        assert found.scalars[name] == pytest.approx(value, rel=0.1), name
    assert found.before["decode"].mean > 0.1
    assert found.after["decode"].mean < 0.01
    assert found.left_out["decode"].mean < 0.02
    assert (found.points, found.run_ids) == (16, tuple(range(1, 17)))
    assert found.untold == {}


def test_nothing_to_change_changes_nothing() -> None:
    found = fit(runs(dict.fromkeys(NAMES, 1.0)), SERVER, ENGINE)
    assert all(value == pytest.approx(1.0, abs=1e-3) for value in found.scalars.values())
    assert found.before["decode"].mean == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2])
def test_noise_moves_scalars_little_and_the_left_out_error_is_the_noise(seed: int) -> None:
    found = fit(runs(TRUTH, noise=0.03, seed=seed), SERVER, ENGINE)
    assert found.scalars["read"] == pytest.approx(TRUTH["read"], rel=0.1)
    assert found.scalars["compute"] == pytest.approx(TRUTH["compute"], rel=0.15)
    assert found.left_out["decode"].mean < 0.05 < found.before["decode"].mean
    low, high = found.band("decode") or (1.0, 1.0)
    assert (low, high) == (pytest.approx(1 / high), pytest.approx(1 + max(0.07, 2 * found.left_out["decode"].mean)))


def test_one_wild_run_does_not_carry_it_away() -> None:
    points = runs(TRUTH)
    points[5] = replace(points[5], step_s=(points[5].step_s or 0) * 5, first_token_s=(points[5].first_token_s or 0) * 5)
    assert fit(points, SERVER, ENGINE).scalars["read"] == pytest.approx(TRUTH["read"], rel=0.1)


def test_what_the_runs_do_not_tell_stays_and_is_said() -> None:
    # One client only, but for one point of two: nothing of interference.
    grid = tuple((clients, prompt, 1) for clients, prompt in [*itertools.product((1,), (200, 500, 900, 2000, 3000, 4000, 6000)), (2, 300)])
    found = fit(runs(TRUTH, grid), SERVER, ENGINE)
    assert "interference" in found.untold
    assert "many clients" in found.untold["interference"]
    assert found.scalars["interference"] == pytest.approx(1.0, abs=0.25)


def test_too_few_points_are_refused_with_what_to_measure() -> None:
    with pytest.raises(CalibrationRefused, match=f"needs {LEAST_POINTS} operating points and 7 are there: measure the lowest"):
        fit(runs(TRUTH, GRID[:7]), SERVER, ENGINE)
    # Repeats of one operating point are one point.
    with pytest.raises(CalibrationRefused, match="and 4 are there"):
        fit(runs(TRUTH, GRID[:4] * 5), SERVER, ENGINE)
    with pytest.raises(CalibrationRefused, match="0 are there"):
        fit([], SERVER, ENGINE)


@pytest.mark.parametrize(("clients", "words"), [(1, "a high one first"), (32, "the lowest one first")])
def test_a_single_concurrency_is_refused_with_what_it_cannot_tell(clients: int, words: str) -> None:
    grid = tuple((clients, prompt, 1) for prompt in range(500, 5000, 500))
    with pytest.raises(CalibrationRefused, match=words):
        fit(runs(TRUTH, grid), SERVER, ENGINE)


def test_runs_of_one_operating_point_stay_in_one_fold() -> None:
    """Every point doubled: were a twin in the training part, a wild pair would be predicted by its twin."""
    points = runs(TRUTH)
    wild = [replace(point, step_s=(point.step_s or 0) * (3.0 if place == 0 else 1.0)) for place, point in enumerate(points)]
    once, twice = fit(wild, SERVER, ENGINE), fit([*wild, *(replace(point, run_id=point.run_id + 100) for point in wild)], SERVER, ENGINE)
    assert twice.points == once.points == 16
    assert twice.left_out["decode"].n == 2 * once.left_out["decode"].n
    assert twice.left_out["decode"].median == pytest.approx(once.left_out["decode"].median, abs=0.02)


def test_repeats_whose_answers_spread_a_little_differently_are_one_operating_point() -> None:
    one, other = (
        Point(1, LLAMA_8B, Request(concurrency=8, shortest_length=shortest).with_mean_lengths(1000, 300), 0.1, 0.01)
        for shortest in (0.527, 0.531)
    )
    assert one.request.output_tokens != other.request.output_tokens
    assert one.group == other.group
    longer = replace(one, request=one.request.with_mean_lengths(1000, 310))
    assert longer.group != one.group


def test_a_calibrated_profile_predicts_what_was_measured_and_carries_its_band(found: Fit) -> None:
    profile = calibrated(ENGINE, found, "1")
    for point in runs(TRUTH):
        said = predict(LLAMA_8B, SERVER, replace(point.request, calibration="1"), engine=profile)
        assert said.itl_s == pytest.approx(point.step_s, rel=0.03)
        assert said.itl_range_s[1] == pytest.approx(said.itl_s * 1.07)
    assert calibrated(None, found, "1").name == "calibration 1"
    with pytest.raises(InvalidRequest, match="calibration 2 is not at hand"):
        predict(LLAMA_8B, SERVER, Request(calibration="2"), engine=profile)


@settings(max_examples=60, deadline=None)
@given(
    factors=st.fixed_dictionaries({name: st.floats(0.05, 20.0) for name in NAMES}),
    clients=st.sampled_from([None, 1, 8, 300]),
    prompt=st.integers(1, 20_000),
    tp=st.sampled_from([1, 4]),
)
def test_no_scalars_make_an_expected_time_beat_its_floor(factors: dict[str, float], clients: int | None, prompt: int, tp: int) -> None:
    request = Request(prompt_tokens=prompt, concurrency=clients, tp=tp)
    found = predict(LLAMA_8B, SERVER, request, engine=replace(ENGINE, scalars=Scalars(**factors)))
    for cost in (found.prefill, found.decode):
        assert cost.floor_s <= cost.attainable_s <= cost.time_s
    assert found.itl_s >= found.decode.floor_s


def test_scalars_of_one_change_no_rate() -> None:
    request = Request(concurrency=16)
    assert predict(LLAMA_8B, SERVER, request, engine=ENGINE) == predict(
        LLAMA_8B, SERVER, request, engine=replace(ENGINE, scalars=Scalars())
    )
