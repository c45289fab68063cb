"""Every figure is one that plotly accepts, in both themes, with nothing of a user's words left to interpret."""

import base64
import copy
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from app.charts import CHARTS, figure, page_figure
from app.charts.decomposition import NamedDecomposition
from app.charts.distribution import MOST_POINTS, NamedSpread, decimated
from app.charts.theme import DARK, LIGHT
from app.charts.trend import Remark, TrendChart
from app.domain.attribution import Attribution, attribute
from app.domain.decomposition import decompose
from app.domain.distribution import Spread, spread_of
from app.domain.maps import heat_map
from app.domain.metrics import METRICS
from app.domain.operating_points import Ceilings, Roofline, RooflinePoint, roofline_of
from app.domain.point import Point
from app.domain.point_change import Pricing
from app.domain.prediction import Request
from app.domain.run import Distribution, Run
from app.domain.telemetry import Telemetry
from app.domain.trends import TrendPoint, trend
from tests.domain.subjects import LLAMA_8B
from tests.made_up import H100, measured_run, operator_prediction, request_samples, textbook_prediction

CEILINGS = Ceilings("Made-up H100", "bf16", 9.89e14, 3.35e12, 4.2e14, 3.35e12)
HOSTILE = '<a href="https://evil.example" target="_top">x</a><b style="color:red">%{x}</b>'
TTFT = np.random.default_rng(7).lognormal(-2.3, 0.1, 5000)


def spread(key: str = "ttft_s", samples: bool = True, **stats: float) -> Spread:
    metrics = {key: Distribution(**{"p50": 0.1, "p90": 0.12, "p99": 0.2, "min": 0.05, "max": 0.4, "n": 5000, **stats})}
    found = spread_of(Run(format="generic", metrics=metrics), key, request_samples(TTFT) if samples else None)
    assert found is not None
    return found


def attributed(by_model: bool) -> Attribution:
    """Twice the prompt and a slower step; the whole takes longer than its halves."""
    runs = (measured_run(), measured_run(ttft_s=Distribution(mean=0.4), e2e_s=Distribution(mean=9.0)))
    points = [Point(LLAMA_8B, H100, None, Request(prompt_tokens=prompt), 299.0) for prompt in (2000, 4000)]
    found = attribute(*runs, Pricing(*points) if by_model else None)
    assert found is not None
    return found


def trend_chart() -> TrendChart:
    """Two levels of ten runs, with a hostile name among them and a remark."""
    start = datetime(2026, 5, 1, tzinfo=UTC)
    noise = np.random.default_rng(1).normal(1, 0.01, 20)
    values = noise * np.r_[np.full(10, 0.01), np.full(10, 0.012)]
    points = [TrendPoint(number, HOSTILE, start + timedelta(days=number), float(value), 100) for number, value in enumerate(values, 1)]
    return TrendChart(HOSTILE, trend(METRICS["itl_s"], "mean", points), (Remark(start, HOSTILE),), 3)


TREND = trend_chart()
TEXTBOOK, FULL = textbook_prediction(), operator_prediction()
WATCHED = Telemetry(
    np.arange(6.0),
    {
        "sm_clock_hz": np.array([1.98e9, 1.98e9, np.nan, 1.7e9, 1.7e9, 1.98e9]),
        "power_w": np.full(6, 400.0),
        "temperature_c": np.arange(60.0, 66.0),
        "busy": np.full(6, 0.95),
        "throttle_reasons": np.array([0.0, 1.0, 0.0, 4.0, 4.0, 0.0]),
    },
)
INPUTS: dict[str, tuple[str, Any]] = {
    "founding roofline": ("roofline", roofline_of(TEXTBOOK, CEILINGS)),
    "roofline with operators": ("roofline", roofline_of(FULL, CEILINGS)),
    "roofline from TTFT": ("roofline", roofline_of(FULL, CEILINGS, measured_run())),
    "roofline timed": ("roofline", roofline_of(FULL, CEILINGS, measured_run(prefill_s=Distribution(mean=0.08, n=3)))),
    "roofline of a device alone": ("roofline", Roofline(CEILINGS, ())),
    "roofline of a small device": ("roofline", roofline_of(TEXTBOOK, Ceilings("CPU", "fp32", 4e11, 5e10, 3e11, 4e10))),
    "trend": ("trend", TREND),
    "decomposition predicted": ("decomposition", decompose(FULL)),
    "decomposition measured": ("decomposition", decompose(FULL, measured_run(), H100)),
    "decomposition over-predicted": ("decomposition", decompose(FULL, measured_run(ttft_s=Distribution(mean=0.02)))),
    "decompositions": (
        "decompositions",
        (NamedDecomposition("A", decompose(FULL)), NamedDecomposition(HOSTILE, decompose(FULL, measured_run()))),
    ),
    "distribution of samples": ("distribution", spread()),
    "distribution as reported": ("distribution", spread(samples=False)),
    "distribution with a tail": ("distribution", spread(samples=False, max=40.0)),
    "distribution of equal samples": ("distribution", spread("e2e_s", samples=False, min=0.1, max=0.1, p90=0.1, p99=0.1)),
    "two distributions": ("distributions", (NamedSpread("A", spread()), NamedSpread(HOSTILE, spread(samples=False)))),
    "map with a boundary": ("heatmap", heat_map(LLAMA_8B, H100, Request(prompt_tokens=1000, output_tokens=50), None, "context", "decode")),
    "map that no cell of fits": ("heatmap", heat_map(LLAMA_8B, replace(H100, memory_bytes=1e9), Request(), None, "prompt", "throughput")),
    "telemetry of a GPU that was slowed": ("telemetry", WATCHED),
    "telemetry of a processor": ("telemetry", replace(WATCHED, channels={"cpu_busy_cores": np.full(6, 1.5)})),
    "telemetry without a drawn channel": ("telemetry", replace(WATCHED, channels={"other_processes": np.zeros(6)})),
    "waterfall by the model": ("waterfall", attributed(True)),
    "waterfall per token": ("waterfall", attributed(False)),
    "seven distributions": ("distributions", tuple(NamedSpread(f"run {index}", spread()) for index in range(7))),
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_plotly_accepts_every_figure(name: str, theme: Any) -> None:
    chart, value = INPUTS[name]
    go.Figure(figure(chart, value, theme))


def test_every_chart_is_among_these() -> None:
    assert {chart for chart, _ in INPUTS.values()} == set(CHARTS)


@pytest.mark.parametrize("name", INPUTS)
def test_a_figure_is_strict_json(name: str) -> None:
    chart, value = INPUTS[name]
    json.dumps(page_figure(chart, value), allow_nan=False)


@pytest.mark.parametrize("name", INPUTS)
def test_the_page_s_figure_holds_both_themes(name: str) -> None:
    chart, value = INPUTS[name]
    both = copy.deepcopy(page_figure(chart, value))
    differences = both.pop("dark")
    assert both == figure(chart, value, LIGHT)
    assert differences
    for path, other in differences:
        *way, last = path
        part: Any = both
        for step in way:
            part = part[step]
        part[last] = other
    assert both == figure(chart, value, DARK)


def words(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for item in value.values():
            yield from words(item)
    elif isinstance(value, list):
        for item in value:
            yield from words(item)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("name", [name for name, (chart, _) in INPUTS.items() if chart.endswith("s")])
def test_hostile_names_are_plain_text_in_every_figure(name: str) -> None:
    chart, value = INPUTS[name]
    for text in words(figure(chart, value)):
        assert "<a" not in text
        assert "<b " not in text
        assert "%{x}" not in text


def test_a_template_never_holds_a_user_s_words() -> None:
    chart, value = INPUTS["two distributions"]
    templates = [trace.get("hovertemplate", "") for trace in figure(chart, value)["data"]]
    assert not any("evil" in template for template in templates)


def test_no_text_has_a_tag_that_sets_a_style() -> None:
    """plotly draws <b>, <i>, <span>, <sub>, <a> with a style attribute, which the policy forbids; <br> and <extra> it does not."""
    for chart, value in INPUTS.values():
        for text in words(figure(chart, value)):
            rest = text.replace("<br>", "").replace("<extra></extra>", "")
            assert "<" not in rest, text


def traces(name: str) -> dict[str, dict[str, Any]]:
    chart, value = INPUTS[name]
    return {trace["name"]: trace for trace in figure(chart, value)["data"]}


def test_the_founding_roofline_has_its_numbers() -> None:
    """Ridge 125.4 FLOP/byte; roof 420 and specification 989 TFLOP/s; prefill at (2,000, 420), decode at (1, 3.35)."""
    found = traces("founding roofline")
    assert found["ridge"]["x"][0] == pytest.approx(125.37, abs=0.01)
    assert found["compute roof, achieved"]["y"] == pytest.approx([420, 420])
    assert max(found["specification"]["y"]) == pytest.approx(989)
    assert (found["prefill, predicted"]["x"], found["prefill, predicted"]["y"]) == ([2000.0], pytest.approx([420.0]))
    assert (found["decode, predicted"]["x"], found["decode, predicted"]["y"]) == ([1.0], pytest.approx([3.35]))
    assert "prefill operators" not in found


def test_predicted_is_open_and_measured_is_filled() -> None:
    found = traces("roofline timed")
    assert found["prefill, predicted"]["marker"]["symbol"] == "circle-open"
    assert "symbol" not in found["prefill, measured"]["marker"]
    assert "symbol" not in found["decode, measured"]["marker"]


def test_a_prefill_known_from_ttft_is_hollow_with_an_open_upper_end() -> None:
    found = traces("roofline from TTFT")
    mark, end = found["prefill, bounded"], found["open upper end"]
    assert mark["marker"]["symbol"] == "circle-open"
    assert end["y"][0] == mark["y"][0]
    assert end["y"][1] == pytest.approx(420)
    assert "from TTFT (includes front-end)" in mark["text"][0]
    assert any("from TTFT" in word["text"] for word in figure(*INPUTS["roofline from TTFT"])["layout"]["annotations"])


def test_operators_tell_name_work_time_and_limit() -> None:
    hover = [text.replace("\u00a0", " ") for text in traces("roofline with operators")["prefill operators"]["text"]]
    assert hover[0] == "gate up, prefill<br>778 TFLOP/s at 7,000 FLOP/byte<br>14.0 TFLOP, 2.00 GB<br>18.0 ms, compute-bound<br>predicted"


@pytest.mark.parametrize("name", [name for name, (chart, _) in INPUTS.items() if chart == "roofline"])
def test_the_window_holds_every_point(name: str) -> None:
    chart, value = INPUTS[name]
    drawn = figure(chart, value)
    for axis in ("x", "y"):
        low, high = drawn["layout"][f"{axis}axis"]["range"]
        for trace in drawn["data"]:
            if trace["mode"] == "markers":
                assert all(low < math.log10(at) < high for at in trace[axis])


def test_operators_alone_are_escaped() -> None:
    point = RooflinePoint(HOSTILE, "prefill", "operator", 1e12, 1e9, 0.01, "predicted", "compute")
    chart = roofline_of(FULL, CEILINGS)
    drawn = figure("roofline", type(chart)(CEILINGS, (*chart.points, point)))
    assert not any("<a" in text or "%{x}" in text for text in words(drawn))


def decoded(array: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(array["bdata"]), dtype="<f4")


def test_the_curve_is_decimated_and_keeps_both_ends() -> None:
    curve = figure(*INPUTS["distribution of samples"])["data"][0]
    x, y = decoded(curve["x"]), decoded(curve["y"])
    assert x.size == y.size <= MOST_POINTS
    assert x[0] == pytest.approx(TTFT.min() * 1e3)
    assert x[-1] == pytest.approx(TTFT.max() * 1e3)
    assert (y[0], y[-1]) == (0, 100)
    assert np.all(np.diff(x) >= 0)
    assert np.all(np.diff(y) > 0)


def test_the_curve_of_a_few_samples_has_them_all() -> None:
    """Three samples: a third of them at or below the smallest, all at or below the largest."""
    values, shares = decimated(np.array([1.0, 2.0, 4.0]))
    assert values.tolist() == [1.0, 1.0, 2.0, 4.0]
    assert shares.tolist() == pytest.approx([0, 100 / 3, 200 / 3, 100])


def test_between_reported_percentiles_the_line_is_dotted() -> None:
    line, marks = figure(*INPUTS["distribution as reported"])["data"]
    assert line["line"]["dash"] == "2px,3px"
    assert marks["x"] == pytest.approx([100, 120, 200])
    assert marks["y"] == [50, 90, 99]


def test_a_percentile_that_rests_on_too_little_is_grey() -> None:
    _, marks = figure("distribution", spread(samples=False, n=320))["data"]
    assert marks["marker"]["color"] == [LIGHT.prefill, LIGHT.prefill, LIGHT.ink_3]
    assert "rests on fewer than ten samples" in marks["text"][2]
    assert "n 320" in marks["text"][0]


def test_a_long_tail_gets_a_logarithmic_axis() -> None:
    assert figure(*INPUTS["distribution with a tail"])["layout"]["xaxis"]["type"] == "log"
    assert figure(*INPUTS["distribution as reported"])["layout"]["xaxis"]["type"] == "linear"


@pytest.mark.parametrize("name", [name for name in INPUTS if name.startswith("decomposition ")])
def test_bars_stand_end_to_end_and_add_up(name: str) -> None:
    """The lower bar starts at 0, each block begins where the last ended, and decode begins where the first token came."""
    chart, value = INPUTS[name]
    drawn = figure(chart, value)
    row = drawn["layout"]["yaxis"]["categoryarray"][0]
    bars = [trace for trace in drawn["data"] if trace["y"] == [row]]
    scale = 1.0 if value.total_s >= 1 else 1e-3
    at = 0.0
    for index, bar in enumerate(bars):
        if index == len(value.prefill.blocks):
            assert at * scale == pytest.approx(value.prefill.seconds, rel=1e-9)
        assert bar["base"][0] == pytest.approx(at, abs=1e-9)
        at += bar["x"][0]
    assert at * scale == pytest.approx(value.total_s, rel=1e-9)


def test_what_is_not_explained_is_hatched_and_never_hidden() -> None:
    drawn = traces("decomposition measured")
    assert drawn["Not explained"]["marker"]["pattern"]["shape"] == "/"
    over = traces("decomposition over-predicted")["Over-predicted"]
    assert over["x"][0] < 0
    assert "over-predicted by" in over["hovertext"][0]


def test_a_stretch_in_which_the_device_was_slowed_is_shaded_behind_every_strip() -> None:
    drawn = figure("telemetry", WATCHED)
    # the power limit (4) from the fourth sample on; being idle (1) slows nothing
    assert [(shape["x0"], shape["x1"]) for shape in drawn["layout"]["shapes"]] == [(3.0, 5.0)]
    assert [trace["name"] for trace in drawn["data"]] == ["Core clock", "Power", "Temperature", "Busy, as the driver reports it"]
    assert drawn["layout"]["yaxis"]["domain"][0] > drawn["layout"]["yaxis2"]["domain"][1]


@pytest.mark.parametrize(
    ("apart", "ticks", "title"),
    [
        (timedelta(days=200), "%b %Y", "measured"),
        (timedelta(days=4), "%-d %b", "measured"),
        (timedelta(hours=9), "%-d %b, %H:%M", "measured"),
        (timedelta(minutes=20), "%H:%M", "measured, 1 May 2026"),
        (timedelta(seconds=20), "%H:%M:%S", "measured, 1 May 2026"),
    ],
)
def test_ticks_of_a_trend_tell_its_runs_apart(apart: timedelta, ticks: str, title: str) -> None:
    start = datetime(2026, 5, 1, 12, tzinfo=UTC)
    points = [TrendPoint(number, "a", start + number * apart, 0.01, 100) for number in range(4)]
    drawn = figure("trend", TrendChart("ITL", trend(METRICS["itl_s"], "mean", points)), LIGHT)
    assert drawn["layout"]["xaxis"]["tickformat"] == ticks
    assert title in {note["text"] for note in drawn["layout"]["annotations"]}
