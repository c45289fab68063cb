"""A server's inside inferred from its times: planted values come back within their intervals, and what is not told is not told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.black_box import BlackBox, Memory, NotTold, Observed, infer

LENGTHS = (250.0, 1000.0, 4000.0, 8000.0)


def planted(
    front: float = 0.02, linear: float = 5e-5, square: float = 2e-9, step: float = 0.008, per_token: float = 1e-7, noise: float = 0.01,
    lengths: tuple[float, ...] = LENGTHS, requests: int = 20, seed: int = 1,
) -> list[Observed]:  # fmt: skip
    """Points of a server with these times, each request off by a normal share `noise`."""
    random = np.random.default_rng(seed)
    found = []
    for length in lengths:
        ttft = front + linear * length + square * length**2
        itl = step + per_token * (length + 50)
        spread = random.normal(1.0, noise, (2, requests))
        found.append(Observed(length, 100.0, ttft * spread[0], itl * spread[1]))
    return found


def holds(box: BlackBox, name: str, truth: float) -> bool:
    """Whether the truth is within the interval, or off by less than the interval's own width: 95 % is not always."""
    figure = box.figures[name]
    slack = figure.high - figure.low
    return figure.low - slack <= truth <= figure.high + slack


def test_a_server_by_hand() -> None:
    """Without noise: front-end 20 ms; 20,000 tokens/s; at 8,000 tokens attention is 0.128 of 0.4 + 0.128 s."""
    box = infer(planted(noise=0.0), Memory(16e9, 131_072.0))
    figures = {name: figure.value for name, figure in box.figures.items()}
    assert figures["front_end_s"] == pytest.approx(0.02, rel=1e-6)
    assert figures["prefill_tokens_per_s"] == pytest.approx(20_000.0, rel=1e-6)
    assert figures["attention_share"] == pytest.approx(0.128 / 0.528, rel=1e-6)
    assert figures["prefill_s"] == pytest.approx(0.528, rel=1e-6)
    assert figures["step_without_context_s"] == pytest.approx(0.008, rel=1e-6)
    assert figures["step_per_1000_tokens_s"] == pytest.approx(1e-4, rel=1e-6)
    middle = float(np.median([length + 50 for length in LENGTHS]))
    assert figures["step_s"] == pytest.approx(0.008 + 1e-7 * middle, rel=1e-6)
    assert figures["decode_bytes_per_s"] == pytest.approx((16e9 + 131_072 * middle) / (0.008 + 1e-7 * middle), rel=1e-6)
    assert box.untold == ()
    assert [(length, pytest.approx(fitted)) for length, _, fitted in box.curve] == [(length, measured) for length, measured, _ in box.curve]


@settings(max_examples=15, deadline=None)
@given(
    front=st.floats(0.001, 0.2),
    rate=st.floats(500.0, 100_000.0),
    share=st.floats(0.0, 0.6),
    step=st.floats(0.002, 0.1),
    growth=st.floats(0.0, 0.5),
    seed=st.integers(0, 1000),
)
def test_planted_values_come_back(front: float, rate: float, share: float, step: float, growth: float, seed: int) -> None:
    longest = LENGTHS[-1]
    linear = 1.0 / rate
    square = share / (1 - share) * linear / longest
    box = infer(planted(front, linear, square, step, growth * step / longest, noise=0.01, seed=seed))
    assert holds(box, "front_end_s", front)
    assert holds(box, "prefill_tokens_per_s", rate)
    assert holds(box, "attention_share", share)
    assert holds(box, "prefill_s", linear * longest + square * longest**2)
    assert holds(box, "step_without_context_s", step)
    assert all(figure.low <= figure.value <= figure.high for figure in box.figures.values())


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_no_term_is_negative_whatever_the_noise(seed: int) -> None:
    box = infer(planted(front=0.0, square=0.0, per_token=0.0, noise=0.2, requests=5, seed=seed))
    assert all(figure.low >= 0 for figure in box.figures.values())


def test_more_requests_narrow_the_interval() -> None:
    few, many = (infer(planted(requests=count, noise=0.05)).figures["prefill_s"] for count in (5, 500))
    assert many.high - many.low < 0.5 * (few.high - few.low)


def test_outliers_of_a_cold_start_move_nothing() -> None:
    points = planted(noise=0.005)
    cold = [Observed(one.prompt_tokens, one.output_tokens, np.append(one.ttft_s, 30.0), one.itl_s) for one in points]
    assert infer(cold).figures["prefill_s"].value == pytest.approx(infer(points).figures["prefill_s"].value, rel=0.02)


def test_two_lengths_tell_a_line_and_no_attention() -> None:
    box = infer(planted(square=0.0, noise=0.0, lengths=(500.0, 4000.0)))
    assert "attention_share" not in box.figures
    assert box.figures["prefill_tokens_per_s"].value == pytest.approx(20_000.0, rel=1e-6)
    assert any("third prompt length" in text for text in box.untold)


@pytest.mark.parametrize("lengths", [(1000.0,), (1000.0, 1200.0), ()])
def test_lengths_that_do_not_differ_tell_nothing(lengths: tuple[float, ...]) -> None:
    with pytest.raises(NotTold, match="--prompt"):
        infer(planted(lengths=lengths))


def test_without_further_tokens_and_model_prefill_alone_is_told() -> None:
    points = [Observed(one.prompt_tokens, 1.0, one.ttft_s, np.empty(0)) for one in planted()]
    box = infer(points)
    assert "step_s" not in box.figures
    assert len(box.untold) == 2
    assert box.steps == ()


def test_requests_of_one_length_are_pooled() -> None:
    points = planted(noise=0.01)
    halves = [
        Observed(one.prompt_tokens, one.output_tokens, part, one.itl_s) for one in points for part in (one.ttft_s[:10], one.ttft_s[10:])
    ]
    assert infer(halves).figures["prefill_s"].value == pytest.approx(infer(points).figures["prefill_s"].value, rel=1e-9)
