"""The text of a Prometheus endpoint: lines as the format allows them, where one scrape ends, and when it was taken."""

import pytest

from app.domain.errors import ImportRefused
from app.formats.prometheus_histogram import Histogram, cumulative_counts
from app.formats.prometheus_text import Scrape, read_scrapes

INF = float("inf")


def only(text: str) -> Scrape:
    (scrape,) = read_scrapes(text, ("x:",))
    return scrape


@pytest.mark.parametrize(
    ("line", "labels", "value"),
    [
        ("x:a 1", (), 1.0),
        ("x:a{} 2.5e3", (), 2500.0),
        ("x:a\t+Inf", (), INF),
        ('x:a{b="c"} 1', (("b", "c"),), 1.0),
        ('x:a{ z = "1" , b="c", } 1 ', (("b", "c"), ("z", "1")), 1.0),
        ('x:a{b="},{ = "} 1', (("b", "},{ = "),), 1.0),
        (r'x:a{b="\"q\\\n"} 1', (("b", '"q\\\n'),), 1.0),
        ('x:a{b="c"} 1 # {trace="t"} 0.5 1e9', (("b", "c"),), 1.0),
        ('x:a {b="c"} 1', (("b", "c"),), 1.0),
    ],
)
def test_a_line_is_a_series_and_its_value(line: str, labels: tuple[tuple[str, str], ...], value: float) -> None:
    assert only(line).series == {"x:a": {labels: value}}


@pytest.mark.parametrize(
    "line",
    [
        "x:a",
        "x:a{",
        'x:a{b="c',
        'x:a{b="c"',
        'x:a{b="c"}',
        "x:a{b=c} 1",
        'x:a{b="c" d="e"} 1',
        'x:a{b="c",b="d"} 1',
        "x:a 1_0",
        "x:a one",
        "x:a 1 2 3",
    ],
)
def test_what_is_no_sample_is_named_with_its_line(line: str) -> None:
    with pytest.raises(ImportRefused, match=r"Line 2 is no Prometheus sample: “x:a"):
        read_scrapes(f"x:b 1\n{line}\n", ("x:",))


def test_other_series_are_not_looked_at() -> None:
    assert only("y:broken{\nx:a 1\n").series == {"x:a": {(): 1.0}}


@pytest.mark.parametrize(
    "again",
    ["x:a 2\n", "# HELP x:a About a.\nx:a 2\n", "# TYPE y:other counter\ny:other 1\nx:a 2\n", "HTTP/1.1 200 OK\nDate: nonsense\n\nx:a 2\n"],
)
def test_a_scrape_ends_where_the_next_begins(again: str) -> None:
    first = "# TYPE y:other counter\ny:other 1\n# HELP x:a About a.\n# TYPE x:a counter\nx:a 1\n"
    assert [scrape.series for scrape in read_scrapes(first + again, ("x:",))] == [{"x:a": {(): 1.0}}, {"x:a": {(): 2.0}}]


def test_the_moment_of_a_scrape() -> None:
    assert only("x:a 1").time_s is None
    dated = only("HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:01:40 GMT\r\n\r\nx:a 1")
    assert (dated.time_s, dated.whole_seconds) == (100.0, True)
    stamped = only("HTTP/1.1 200 OK\r\ndate: Thu, 01 Jan 1970 00:01:40 GMT\r\n\r\nx:a 1 99500\nx:b 2 99750")
    assert (stamped.time_s, stamped.whole_seconds) == (99.75, False)
    assert only("x:a 1 -5").time_s is None


def test_more_series_than_a_server_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.formats.prometheus_text.MOST_SERIES", 3)
    with pytest.raises(ImportRefused, match="more than 3 series"):
        read_scrapes("\n".join(f"x:a{number} 1" for number in range(4)), ("x:",))


def test_quantiles_of_an_evenly_filled_histogram() -> None:
    # 4 up to 1 s, 4 more up to 3 s, 2 beyond: the sum of an even spread is 4 x 0.5 + 4 x 2 + what is beyond.
    found = Histogram(10, 20.0, ((1.0, 4.0), (3.0, 8.0)))
    assert found.quantile(0.2) == pytest.approx(0.5)
    assert found.quantile(0.6) == pytest.approx(2.0)
    assert found.quantile(0.8) == pytest.approx(3.0)
    assert found.quantile(0.9) is None
    assert (found.saturated(0.8), found.saturated(0.81)) == (False, True)
    assert (found.bucket(0.5), found.bucket(0.9)) == ((1.0, 3.0), None)
    assert found.mean == 2.0


def test_a_sum_too_small_or_too_large_for_an_even_spread() -> None:
    # Ten values up to 1 s: evenly spread, the upper five sum to 2.5 to 5 s and the lower five to 0 to 2.5 s.
    for total, possible in ((2.4, False), (2.5, True), (5.0, True), (7.5, True), (7.6, False)):
        assert (Histogram(10, total, ((1.0, 10.0),)).quantile(0.5) is not None) is possible


def test_counts_that_cannot_be_give_no_quantile() -> None:
    assert cumulative_counts({1.0: 2.0, 2.0: 5.0, INF: 5.0}, 5.0) == ((1.0, 2.0), (2.0, 5.0))
    assert cumulative_counts({1.0: 3.0, 2.0: 2.0, INF: 5.0}, 5.0) == ()
    assert cumulative_counts({1.0: 2.0, INF: 4.0}, 5.0) == ()
    assert cumulative_counts({INF: 5.0}, 5.0) == ()
    assert Histogram(5, 1.0).quantile(0.5) is None
    assert not Histogram(5, 1.0).saturated(0.5)
    assert Histogram(0, 0.0).mean is None


def test_zeros_that_mean_no_value_are_taken_out() -> None:
    found = Histogram(10, 4.0, ((1.0, 10.0),)).without_zeros(2)
    assert (found.count, found.mean, found.cumulative) == (8, 0.5, ((1.0, 8.0),))
    assert found.without_zeros(0) is found
