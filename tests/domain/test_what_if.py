"""The levers on the founding case, where each halves one phase and leaves the other alone; figures worked out by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.errors import InvalidRequest
from app.domain.prediction import Prediction, Request
from app.domain.quantity import NBSP
from app.domain.serving import predict
from app.domain.what_if import RANGES, Change, Lever, changed, scaled, smaller_weights, unmoved
from tests.domain.subjects import TEXTBOOK_8B, TEXTBOOK_H100

FOUNDING = Request(calibration="textbook")


def words(text: str | None) -> str | None:
    """Without the no-break spaces before units."""
    return text.replace(NBSP, " ") if text else text


def after(change: Change, request: Request = FOUNDING) -> Prediction:
    hardware, asked = changed(TEXTBOOK_H100, request, change)
    return predict(TEXTBOOK_8B, hardware, asked)


# Lever -> TTFT and ITL of the founding case after one move: 76.2 ms is 3.2e13 / 4.2e14, 4.78 ms is 1.6e10 / 3.35e12.
MOVES: dict[str, tuple[Change, float, float]] = {
    "bandwidth": (Change(bandwidth=1), 0.0761905, 0.00238806),
    "flops": (Change(flops=1), 0.0380952, 0.00477612),
    "weight_bytes": (Change(weight_bytes=-1), 0.0761905, 0.00238806),
    "batch": (Change(batch=1), 0.152381, 0.00477612),
    "tp": (Change(tp=1), 0.0380952, 0.00238806),
}


@pytest.mark.parametrize("lever", MOVES)
def test_each_lever_moves_the_half_that_waits_for_it(lever: str) -> None:
    change, ttft, itl = MOVES[lever]
    found = after(change)
    assert found.ttft_s == pytest.approx(ttft, rel=1e-5)
    assert found.itl_s == pytest.approx(itl, rel=1e-5)
    assert change.moved == (lever,)


def test_a_change_at_rest_changes_nothing() -> None:
    assert changed(TEXTBOOK_H100, FOUNDING, Change()) == (TEXTBOOK_H100, FOUNDING)


def test_a_served_load_gets_more_clients_not_a_larger_batch() -> None:
    _, asked = changed(TEXTBOOK_H100, replace(FOUNDING, concurrency=4), Change(batch=2))
    assert (asked.batch, asked.concurrency) == (1, 16)


def test_every_rate_of_a_device_is_scaled_and_nothing_else() -> None:
    fast = scaled(replace(TEXTBOOK_H100, memory_bytes=8e10, link_bytes_per_s=9e11), bandwidth=2, flops=4)
    assert fast.bandwidth_bytes_per_s == fast.achieved_bandwidth_bytes_per_s == 6.7e12
    assert (fast.peak_flops_per_s, fast.achieved_flops_per_s) == ({"bf16": 4 * 9.89e14}, {"bf16": 4 * 4.2e14})
    assert (fast.memory_bytes, fast.link_bytes_per_s) == (8e10, 9e11)
    assert scaled(replace(TEXTBOOK_H100, achieved_bandwidth_bytes_per_s=None)).achieved_bandwidth_bytes_per_s is None


@pytest.mark.parametrize(
    ("dtype", "power", "found"),
    [("bf16", -1, "int8"), ("bf16", -2, "int4"), ("bf16", 1, "fp32"), ("fp8", 1, "bf16"), ("awq", 1, "int8"), ("nvfp4", 0, "nvfp4")],
)
def test_weights_go_down_and_up_the_ladder(dtype: str, power: float, found: str) -> None:
    assert smaller_weights(dtype, power) == found


@pytest.mark.parametrize(("dtype", "power"), [("fp32", 1), ("int4", -1), ("q6_k", -1)])
def test_a_step_off_the_ladder_is_refused_with_what_there_is(dtype: str, power: float) -> None:
    with pytest.raises(InvalidRequest, match=r"there are 4 \(fp32\), 2 \(bf16\), 1 \(int8\), 0.5 \(int4\)") as refused:
        smaller_weights(dtype, power)
    assert refused.value.field == "weight_bytes_log2"


@pytest.mark.parametrize("values", [{"bandwidth": 3.0}, {"flops": 0.1}, {"batch": 0.5}, {"batch": -1.0}, {"tp": float("nan")}])
def test_a_lever_beyond_its_range_is_refused_by_its_key(values: dict[str, float]) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Change(**values)
    assert refused.value.field == f"{next(iter(values))}_log2"


def test_what_does_not_move_says_what_it_waits_for() -> None:
    before = after(Change())
    more_flops = after(Change(flops=1))
    assert words(unmoved(before.decode, more_flops.itl_s, before.itl_s)) == "it waits for its reads, 4.78 ms (its arithmetic 38.1 µs)"
    assert unmoved(before.prefill, more_flops.ttft_s, before.ttft_s) is None


@given(st.sampled_from(sorted(RANGES)), st.integers(0, 16))
def test_a_faster_device_never_makes_a_request_slower(lever: Lever, step: int) -> None:
    span = RANGES[lever]
    if lever not in ("bandwidth", "flops"):
        return
    slow = span.low + min(step, 15) * span.step
    one, other = after(Change(**{lever: slow})), after(Change(**{lever: slow + span.step}))
    assert other.ttft_s <= one.ttft_s
    assert other.itl_s <= one.itl_s


def test_a_first_token_that_waits_for_others_says_so() -> None:
    """76.2 ms of arithmetic behind 340 ms of other requests: the wait is named first."""
    said = words(unmoved(after(Change()).prefill, 0.416, 0.416, waiting_s=0.34))
    assert said == "it waits for requests ahead of it, 340 ms (its arithmetic 76.2 ms, its reads 4.78 ms)"
