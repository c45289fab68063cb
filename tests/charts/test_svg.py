"""Bars drawn by the server: to scale, adding up, with words only where they fit."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.charts import svg
from app.domain.decomposition import decompose
from app.domain.observed import RequestTimes, predicted_times
from app.domain.run import Distribution
from tests.made_up import H100, measured_run, operator_prediction, textbook_prediction

FOUNDING = RequestTimes(0.095, 1 / 143, 299.0)
UNKNOWN = RequestTimes(0.095, None, 299.0)


def widths(bars: svg.Bars, *css: str) -> list[float]:
    return [rect.width for rect in bars.rects if rect.css in css]


def test_a_phase_line_is_to_scale() -> None:
    """0.095 s of 2.1859 s: 4.35 % amber, 95.65 % blue (founding claim 8)."""
    bars = svg.phase_line(FOUNDING)
    assert widths(bars, "f-p") == pytest.approx([4.346], abs=1e-3)
    assert sum(widths(bars, "f-p", "f-d")) == pytest.approx(100)
    assert bars.label.replace("\u00a0", " ") == "prefill 4.3 %, decode 95.7 % of the request"


def test_two_phase_lines_share_one_scale() -> None:
    shorter = svg.phase_line(FOUNDING, longest_s=2 * 2.18591)
    assert sum(widths(shorter, "f-p", "f-d")) == pytest.approx(50, abs=1e-3)


def test_a_predicted_request_is_dashed() -> None:
    assert [rect.css for rect in svg.phase_line(predicted_times(textbook_prediction()), height=12).rects] == ["e-p", "e-d"]


def test_an_unknown_half_draws_nothing_and_says_so() -> None:
    for bars in (svg.phase_line(UNKNOWN), svg.split_bar(UNKNOWN), svg.scale_pair(FOUNDING, UNKNOWN)):
        assert bars.rects == ()
        assert "not known" in bars.label
    assert svg.waterfall(FOUNDING, (), UNKNOWN) == ()


def test_the_founding_split_in_words() -> None:
    bars = svg.split_bar(predicted_times(textbook_prediction()))
    said = [word.text.replace("\u00a0", " ") for word in bars.words]
    assert said == ["prefill 5.1 %", "decode 94.9 %, 299 tokens one after another", "1.50 s"]
    prefill, decode, _ = bars.words
    assert (prefill.y, decode.y) == (56, 23)  # too narrow for its word, wide enough
    assert bars.label.replace("\u00a0", " ") == "predicted: prefill 5.1 %, decode 94.9 % of 1.50 s"


def test_in_an_inverted_request_the_words_change_places() -> None:
    bars = svg.split_bar(RequestTimes(3.81, 0.0048, 49.0))
    prefill, decode, _ = bars.words
    assert (prefill.y, decode.y) == (23, 56)


def test_a_half_shows_what_was_measured_above_what_explains_it() -> None:
    half = decompose(textbook_prediction(), measured_run()).prefill
    bars = svg.half_bars(half)
    assert [rect.css for rect in bars.rects] == ["f-p", "e-p", "hatched"]
    # 76.19 of 95.2 ms predicted, 19.01 not explained
    assert widths(bars, "e-p") == pytest.approx([100 * 76.1905 / 95.2 - 0.3], abs=1e-2)
    assert widths(bars, "hatched") == pytest.approx([100 * 19.0095 / 95.2 - 0.3], abs=1e-2)
    assert "not explained 19.0" in bars.label


def test_an_overshoot_is_hatched_between_measured_and_predicted() -> None:
    half = decompose(textbook_prediction(), measured_run(ttft_s=Distribution(mean=0.060))).prefill
    bars = svg.half_bars(half)
    hatched = next(rect for rect in bars.rects if rect.hatched)
    # measured 60.0 of 76.19 ms predicted: the lower bar fills the width, the hatch covers the last 16.19 ms of it
    assert hatched.x == pytest.approx(100 * 60 / 76.1905 + 0.15, abs=1e-2)
    assert hatched.x + hatched.width == pytest.approx(99.85, abs=1e-2)
    assert any(word.text.startswith("over-predicted by") for word in bars.words) or "over-predicted" in bars.label


def test_without_a_measurement_there_is_one_bar() -> None:
    bars = svg.half_bars(decompose(operator_prediction()).decode)
    assert not any(rect.css.startswith("f-") for rect in bars.rects)
    assert not any(rect.hatched for rect in bars.rects)


def test_numbers_without_a_unit_are_in_the_unit_of_the_half() -> None:
    """A lost millisecond share of 0.73 ms in a step of 7 ms reads 0.730, never 730 (µs)."""
    half = decompose(operator_prediction(), measured_run(), H100).decode
    bare = [word.text for word in svg.half_bars(half).words if " " not in word.text and "\u00a0" not in word.text]
    assert bare
    assert all(float(text) < 7 for text in bare)


def test_a_share_is_clamped_to_its_track() -> None:
    assert widths(svg.share_bar(0.68, "decode"), "f-d") == pytest.approx([68])
    assert widths(svg.share_bar(1.7, "decode"), "f-d") == [100]
    assert widths(svg.share_bar(None, "decode"), "f-d") == []


def test_before_and_after_share_one_scale() -> None:
    """1.5043 s and 1.5805 s: the ghost is 1.5043 ÷ 1.5805 = 95.2 % as long."""
    before, after = RequestTimes(0.0761905, 0.00477612, 299.0, True), RequestTimes(0.152381, 0.00477612, 299.0, True)
    bars = svg.scale_pair(before, after)
    ghost, bar = sum(widths(bars, "g-p", "g-d")) + 0.6, sum(widths(bars, "e-p", "e-d")) + 0.6
    assert ghost / bar == pytest.approx(1.504250 / 1.580441, abs=1e-3)


def test_times_come_from_whatever_a_page_has() -> None:
    prediction = textbook_prediction()
    found = decompose(prediction)
    for source in (prediction, found, found.blocks, predicted_times(prediction)):
        times = svg.times_of(source)
        assert times.predicted
        assert times.total_s == pytest.approx(prediction.total_s, rel=1e-9)
    measured = svg.times_of(decompose(prediction, measured_run()).blocks)
    assert not measured.predicted
    assert measured.total_s == pytest.approx(0.0952 + 299 * 0.00699, rel=1e-9)


def test_a_waterfall_leads_from_one_total_to_the_other() -> None:
    base, other = RequestTimes(0.0606, 0.00702, 299.0), RequestTimes(0.188, 0.00498, 299.0)
    assert base.total_s is not None
    assert other.total_s is not None
    gap = other.total_s - base.total_s
    steps = (svg.Step("Prefill", "", 0.1274, "prefill"), svg.Step("Decode", "", gap - 0.1274, "decode", "predicted"))
    rows = svg.waterfall(base, steps, other)
    assert [row.step for row in rows] == [None, *steps, None]
    assert rows[2].total_s == pytest.approx(other.total_s)
    # each row starts where the one above ended
    for above, below in pairwise(rows):
        assert above.bars.lines[-1].x == pytest.approx(below.bars.lines[0].x)


SPANS = st.floats(min_value=1e-6, max_value=1e3)


@given(SPANS, SPANS, st.integers(0, 100_000), st.booleans())
def test_no_drawing_leaves_its_box(first: float, step: float, steps: int, predicted: bool) -> None:
    times = RequestTimes(first, step, float(steps), predicted)
    for bars in (svg.phase_line(times), svg.split_bar(times), svg.scale_pair(times, FOUNDING)):
        for rect in bars.rects:
            assert rect.width >= 0
            assert rect.x >= 0
            assert rect.x + rect.width <= 100.4
            assert rect.y + rect.height <= bars.height


@given(st.floats(min_value=1e-4, max_value=1), st.floats(min_value=1e-5, max_value=0.1))
def test_no_half_leaves_its_box(ttft: float, itl: float) -> None:
    run = measured_run(ttft_s=Distribution(mean=ttft), itl_s=Distribution(mean=itl))
    found = decompose(operator_prediction(), run, H100)
    for half in (found.prefill, found.decode):
        bars = svg.half_bars(half)
        for rect in bars.rects:
            assert rect.width >= 0
            assert rect.x >= 0
            assert rect.x + rect.width <= 100.01
        for word in bars.words:
            assert 0 <= word.x <= 100
