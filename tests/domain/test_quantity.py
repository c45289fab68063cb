"""Numbers as people read them; every expected text worked out by hand."""

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain import quantity as q

S = q.NBSP


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0761905, f"76.2{S}ms"),
        (1.5043, f"1.50{S}s"),
        (3.8095e-5, f"38.1{S}µs"),
        (4.77612e-3, f"4.78{S}ms"),
        (0.79, f"790{S}ms"),
        (2.44, f"2.44{S}s"),
        (0.9996, f"1.00{S}s"),  # 999.6 ms rounds to 1,000 ms, which is 1.00 s
        (9.996e-4, f"1.00{S}ms"),
        (1e-3, f"1.00{S}ms"),
        (2.5e-8, f"25.0{S}ns"),
        (3661.0, f"3,660{S}s"),
        (0.0, f"0{S}s"),
        (-0.00401, f"−4.01{S}ms"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert q.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(6.5, f"6.50{S}s"), (48.0, f"48{S}s"), (648.0, f"10{S}min 48{S}s"), (7500.0, f"2{S}h 5{S}min"), (59.7, f"1{S}min 0{S}s")],
)
def test_durations(value: float, text: str) -> None:
    assert q.duration(value) == text


def test_sizes_and_rates() -> None:
    assert q.bytes_(1.6e10) == f"16.0{S}GB"
    assert q.bytes_(131072) == f"131{S}kB"
    assert q.bytes_(500) == f"500{S}B"
    assert q.bytes_(0) == f"0{S}B"
    assert q.byte_rate(3.35e12) == f"3.35{S}TB/s"
    assert q.flops(3.2e13) == f"32.0{S}TFLOP"
    assert q.flops(1.6e10) == f"16.0{S}GFLOP"
    assert q.flops_rate(4.2e14) == f"420{S}TFLOP/s"
    assert q.flops_rate(9.89e14) == f"989{S}TFLOP/s"
    assert q.flops_rate(9.996e14) == f"1.00{S}PFLOP/s"
    assert q.gib(80 * 2**30) == f"80.0{S}GiB"
    assert q.intensity(125.37) == f"125{S}FLOP/byte"
    assert q.intensity(2000) == f"2,000{S}FLOP/byte"


def test_a_rate_names_its_scope() -> None:
    assert q.tokens_rate(143.0, "request") == f"143{S}tokens/s per request"
    assert q.tokens_rate(6704.2, "aggregate") == f"6,700{S}tokens/s aggregate"
    assert q.tokens_rate(21052.6) == f"21,100{S}tokens/s"
    assert q.tokens_rate(None, "request") == "not known"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.683, f"68.3{S}%"), (0.949, f"94.9{S}%"), (1.0, f"100{S}%"), (0.9996, f"100{S}%"), (2.104, f"210{S}%"), (0.0, f"0.0{S}%")],
)
def test_percent(value: float, text: str) -> None:
    assert q.percent(value) == text


def test_a_small_share_does_not_read_as_nothing() -> None:
    assert q.percent(0.00031) == f"0.031{S}%"


def test_percent_without_decimals() -> None:
    assert q.percent(0.683, 0) == f"68{S}%"


@pytest.mark.parametrize(
    ("value", "text"), [(-0.223, f"−22.3{S}%"), (0.051, f"+5.1{S}%"), (2.1, f"+210{S}%"), (-0.999, f"−99.9{S}%"), (0.0, f"±0.0{S}%")]
)
def test_a_change_always_has_its_sign(value: float, text: str) -> None:
    assert q.change_percent(value) == text


def test_changes_of_other_kinds() -> None:
    assert q.change_points(-0.362) == f"−36.2{S}pt"
    assert q.change_seconds(0.127) == f"+127{S}ms"
    assert q.change_seconds(-2.04e-3) == f"−2.04{S}ms"
    assert q.change_seconds(0.0) == f"±0{S}s"


@pytest.mark.parametrize(("value", "text"), [(3.12, "3.1×"), (16.0, "16×"), (125.4, "125×"), (147.2, "147×"), (0.318, "0.32×")])
def test_factor(value: float, text: str) -> None:
    assert q.factor(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(2000, "2,000"), (298.7, "299"), (45.67, "45.7"), (45.0, "45"), (0, "0"), (1_234_567, "1,234,567"), (99.97, "100")]
)
def test_count(value: float, text: str) -> None:
    assert q.count(value) == text


def test_columns() -> None:
    assert q.in_unit(0.0952, "ms") == "95.2"
    assert q.in_unit(None, "ms") == "not known"
    # a column that adds up keeps one number of decimals: 1,428.1 + 232.5 = 1,660.6
    assert [q.fixed_seconds(x) for x in (1.4281, 0.2325, 1.6606)] == [f"1,428.1{S}ms", f"232.5{S}ms", f"1,660.6{S}ms"]
    assert q.number(6704.2) == "6,700"
    assert q.number(0.00123456) == "0.00123"


def test_units_of_the_registry() -> None:
    assert q.in_metric_unit(0.095, "s") == f"95.0{S}ms"
    assert q.in_metric_unit(0.4571, "requests/s") == f"0.457{S}requests/s"
    assert q.in_metric_unit(None, "requests/s") == "not known"
    assert q.in_metric_unit(1.395e9, "Hz") == f"1,395{S}MHz"
    assert q.in_metric_unit(None, "Hz") == "not known"


def test_moments_are_utc() -> None:
    assert q.moment(datetime(2026, 11, 28, 14, 2, tzinfo=UTC)) == f"28{S}Nov{S}2026, 14:02{S}UTC"
    assert q.moment(datetime(2026, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=1)))) == f"31{S}Dec{S}2025, 23:30{S}UTC"
    assert q.moment(None) == "not known"


FORMATTERS = [getattr(q, name) for name in q.FILTERS if name not in {"in_unit", "in_metric_unit", "moment"}]


@pytest.mark.parametrize("formatter", FORMATTERS)
@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_the_unknown_is_never_a_number(formatter, value) -> None:  # type: ignore[no-untyped-def]
    assert formatter(value) == "not known"


@given(st.floats(min_value=-1e12, max_value=1e12))
def test_three_significant_digits_are_within_half_a_percent(value: float) -> None:
    text = q.number(value).replace(",", "").replace(q.MINUS, "-")
    assert math.isclose(float(text), value, rel_tol=0.005, abs_tol=1e-300)


@given(st.floats(min_value=1e-7, max_value=1e9))
def test_a_time_keeps_its_value_through_the_unit(value: float) -> None:
    amount, unit = q.seconds(value).split(S)
    scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert math.isclose(float(amount.replace(",", "")) * scale, value, rel_tol=0.005)
    assert float(amount.replace(",", "")) < 1000 or unit == "s"
