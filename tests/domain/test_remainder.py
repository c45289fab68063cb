"""What a calibration's factors leave, carried from measured points: by hand, at its edges, and through a whole prediction."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.plain import from_plain, to_plain
from app.domain.prediction import Prediction, Request
from app.domain.remainder import OTHER_MODEL, SPREAD, Remainder, place_of, weights
from app.domain.request_rules import Load
from app.domain.serving import predict, predict_grid
from tests.domain.subjects import ENGINE, LLAMA_8B, SERVER

LOG = float(np.log(1.5))


def at(clients: int = 8, prompt: int = 1024, answer: int = 128) -> Load:
    return Load.of(Request(concurrency=clients, prompt_tokens=prompt, output_tokens=answer))


def one_point(noise: float, model: str = "a") -> Remainder:
    """Measured half as long again as predicted, both phases."""
    place = tuple(float(size) for size in place_of(at()))
    first, further = (float(weights([model], [place], np.array([LOG]), np.array([noise]), phase)[0]) for phase in ("prefill", "decode"))
    return Remainder((model,), (place,), (first,), (further,))


def test_places_are_doublings() -> None:
    request = Request(concurrency=8, prompt_tokens=1024, output_tokens=128, cached_prefix_tokens=1000, tp=2, dp=2, pp=2)
    assert place_of(Load.of(request)) == pytest.approx((3.0, 10.0, 7.0, 1.0, 2.0, 1.0, 0.0))
    assert place_of(Load.of(Request(batch=4)))[0] == pytest.approx(2.0)


def test_one_point_is_met_nearly_and_fades_with_distance() -> None:
    # Student's weight is near 1 at so small an error: w = r/(S² + N²), and at the point itself f = w·S².
    found = one_point(noise=0.01)
    first, further = found.factors("a", at())
    assert float(first) == float(further) == pytest.approx(1.5, rel=1e-3)
    # Two doublings of clients away (1 + d)·exp(-d) of it is left, d = √3·2/D, of another model M times that: of a first token, whose D is
    # longer, more than of a further one.
    for phase, place in (("prefill", 0), ("decode", 1)):
        far = np.sqrt(3.0) * 2.0 / {"prefill": 9.0, "decode": 4.0}[phase]
        share = (1.0 + far) * np.exp(-far)
        assert np.log(float(found.factors("a", at(32))[place])) == pytest.approx(LOG * share, rel=1e-3)
        assert np.log(float(found.factors("b", at(32))[place])) == pytest.approx(LOG * share * OTHER_MODEL, rel=1e-3)


def test_between_two_points_that_agree_no_corner_and_no_sag() -> None:
    # Measured at 8 and at 32 clients, asked at 16: a straight line would say 1.5, and so does a curve that bends little.
    places = [tuple(float(size) for size in place_of(at(clients))) for clients in (8, 32)]
    found = weights(["a", "a"], places, np.array([LOG, LOG]), np.full(2, 0.001), "prefill")
    carried = Remainder(("a", "a"), tuple(places), tuple(found), tuple(found))
    assert float(carried.factors("a", at(16))[0]) == pytest.approx(1.5, rel=0.01)


def test_each_point_has_a_noise_of_its_own() -> None:
    # Two runs of one question, one timed without a queue: the quieter is believed, all but the other's share of 1/(1 + (0.3/0.03)²).
    place = tuple(float(size) for size in place_of(at()))
    found = weights(["a", "a"], [place, place], np.array([0.1, 0.11]), np.array([0.03, 0.3]), "prefill")
    carried = Remainder(("a", "a"), (place, place), tuple(found), (0.0, 0.0))
    assert np.log(float(carried.factors("a", at())[0])) == pytest.approx(0.1, rel=0.01)


def test_noise_is_not_followed() -> None:
    # As much noise as spread: half of the error is believed, and all the less of a wild one.
    near = np.log(float(one_point(noise=SPREAD).factors("a", at())[0]))
    assert 0.5 * LOG > near > 0.4 * LOG


def test_a_wild_run_among_its_like_pulls_little() -> None:
    places = [tuple(float(size) for size in place_of(at(clients))) for clients in (1, 2, 4, 8, 16, 32, 64)]
    logs = np.full(7, 0.1)
    logs[3] = np.log(10.0)
    found = weights(["a"] * 7, places, logs, np.full(7, 0.033), "decode")
    carried = Remainder(("a",) * 7, tuple(places), tuple(found), tuple(found))
    assert float(carried.factors("a", at(8))[0]) == pytest.approx(np.exp(0.1), rel=0.25)


def test_what_was_not_measured_carries_nothing() -> None:
    place = tuple(float(size) for size in place_of(at()))
    assert weights(["a", "a"], [place, place], np.array([np.nan, 0.2]), np.full(2, 0.03), "decode")[0] == 0.0
    assert weights(["a"], [place], np.array([np.nan]), np.full(1, 0.03), "decode").tolist() == [0.0]


def test_a_prediction_keeps_its_parts_and_its_grid() -> None:
    place = tuple(float(size) for size in place_of(Load.of(Request(concurrency=8))))
    moved = replace(ENGINE, remainder=Remainder((LLAMA_8B.name,), (place,), (1.0,), (0.5,)))
    plain, found = (
        predict(LLAMA_8B, SERVER, Request(concurrency=8), engine=ENGINE),
        predict(LLAMA_8B, SERVER, Request(concurrency=8), engine=moved),
    )
    first, further = np.exp(SPREAD**2), np.exp(0.5 * SPREAD**2)
    assert found.ttft_s == pytest.approx(plain.ttft_s * first)
    assert found.itl_s == pytest.approx(plain.itl_s * further)
    assert found.ttft_s == pytest.approx(found.front_end_s + found.queue_s + found.prefill.time_s)
    assert found.first_step_s == pytest.approx(plain.first_step_s * further)
    assert sum(term.time_s for term in found.decode.terms) == pytest.approx(found.decode.time_s)
    grid = predict_grid(LLAMA_8B, SERVER, Request(), axes={"concurrency": (1, 8)}, engine=moved)
    assert grid.columns["ttft_s"][1] == pytest.approx(found.ttft_s)


def test_a_prediction_says_that_it_carries_a_remainder_and_pools_carry_none() -> None:
    remainder = Remainder((LLAMA_8B.name,), (tuple(float(size) for size in place_of(at())),), (1.0,), (1.0,))
    plain = replace(ENGINE, calibration="1")
    moved = replace(plain, remainder=remainder)
    request = Request(concurrency=8, calibration="1")
    words = "What its factors leave at its runs"
    assert words in " ".join(predict(LLAMA_8B, SERVER, request, engine=moved).assumptions)
    assert words not in " ".join(predict(LLAMA_8B, SERVER, request, engine=plain).assumptions)
    pools = replace(request, prefill_replicas=1)
    assert words not in " ".join(predict(LLAMA_8B, SERVER, pools, engine=moved).assumptions)
    assert predict(LLAMA_8B, SERVER, pools, engine=moved).ttft_s == predict(LLAMA_8B, SERVER, pools, engine=plain).ttft_s


def test_what_is_measured_below_the_attainable_time_is_said_and_below_the_floor_is_not() -> None:
    request = Request(concurrency=8)
    place = tuple(float(size) for size in place_of(Load.of(request)))

    def shortened(log: float) -> Prediction:
        return predict(LLAMA_8B, SERVER, request, engine=replace(ENGINE, remainder=Remainder((LLAMA_8B.name,), (place,), (log,), (log,))))

    plain = predict(LLAMA_8B, SERVER, request, engine=ENGINE).prefill
    share = (plain.floor_s / plain.attainable_s + 1.0) / 2.0
    found = shortened(float(np.log(share * plain.attainable_s / plain.time_s)) / SPREAD**2).prefill
    assert plain.floor_s < found.time_s == pytest.approx(share * plain.attainable_s)
    assert found.attainable_s == pytest.approx(found.time_s)
    assert found.compute_s == pytest.approx(plain.compute_s * share)
    assert shortened(-30.0).prefill.time_s == pytest.approx(plain.floor_s)


@given(first=st.floats(-30.0, 30.0), further=st.floats(-30.0, 30.0), clients=st.sampled_from([1, 8, 300]))
def test_no_remainder_makes_an_expected_time_beat_its_floor(first: float, further: float, clients: int) -> None:
    place = tuple(float(size) for size in place_of(Load.of(Request(concurrency=clients))))
    moved = replace(ENGINE, remainder=Remainder((LLAMA_8B.name,), (place,), (first,), (further,)))
    found = predict(LLAMA_8B, SERVER, Request(concurrency=clients), engine=moved)
    for cost in (found.prefill, found.decode):
        assert cost.floor_s <= cost.attainable_s <= cost.time_s * (1 + 1e-12)


def test_it_is_stored_and_read_again() -> None:
    found = one_point(noise=0.03)
    assert from_plain(Remainder, json.loads(json.dumps(to_plain(found)))) == found
