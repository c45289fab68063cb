"""Gates: the grammar with its errors by place, and the judgement of each clause; figures worked out by hand."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.comparison import Comparison, Side, compare
from app.domain.errors import InvalidRequest
from app.domain.gates import JUDGED_STATS, NAMES, Clause, Gate, is_unjudged, judge, judge_alone, parse_spec
from app.domain.metrics import METRICS
from app.domain.run import Distribution, Flag, Rate, RequestCounts, Run, Workload


def run_of(itl_ms: float = 10.0, ttft_ms: float = 100.0, rate: float = 90.0, n: int = 1000, prompt: float = 2000.0) -> Run:
    """A run of one client; every statistic of a time is the same."""
    times = {
        "itl_s": Distribution(mean=itl_ms / 1e3, p50=itl_ms / 1e3, p95=itl_ms / 1e3, n=n),
        "ttft_s": Distribution(mean=ttft_ms / 1e3, p50=ttft_ms / 1e3, p95=ttft_ms / 1e3, n=n),
    }
    workload = Workload(prompt_tokens_mean=prompt, output_tokens_mean=300.0, concurrency=1)
    metrics = {**times, "output_tokens_per_s": Rate(rate, "aggregate")}
    return Run("generic", workload=workload, metrics=metrics, requests=RequestCounts(completed=n))


def pair(base: Run, other: Run) -> Comparison:
    return compare(Side(1, base), Side(2, other))


def gate(spec: str, base: Run, other: Run, allow_missing: bool = False) -> Gate:
    return judge(parse_spec([spec]), pair(base, other), allow_missing)


def outcomes(found: Gate) -> list[tuple[str, bool]]:
    return [(result.outcome, result.broken) for result in found.results]


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("itl.p50>+5%", ("itl_s", "p50", ">", 0.05, True)),
        ("itl_s.p50>5%", ("itl_s", "p50", ">", 0.05, True)),
        # a plus that a query string turned into a space
        ("itl.p50> 5%", ("itl_s", "p50", ">", 0.05, True)),
        ("ttft.p95>500ms", ("ttft_s", "p95", ">", 0.5, False)),
        ("ttft.p95 > 0.5 s", ("ttft_s", "p95", ">", 0.5, False)),
        ("itl.mean>250us", ("itl_s", "mean", ">", 2.5e-4, False)),
        ("output_tokens_per_s<-5%", ("output_tokens_per_s", "value", "<", -0.05, True)),
        ("output_tokens<−5 %", ("output_tokens_per_s", "value", "<", -0.05, True)),
        ("requests.value<3", ("requests_per_s", "value", "<", 3.0, False)),
        ("requests<3.5requests/s", ("requests_per_s", "value", "<", 3.5, False)),
        ("sm_clock.mean<1.4e9Hz", ("sm_clock_hz", "mean", "<", 1.4e9, False)),
        ("prefill.p90>1min", ("prefill_s", "p90", ">", 60.0, False)),
    ],
)
def test_a_clause_is_read(text: str, clause: tuple[str, str, str, float, bool]) -> None:
    (found,) = parse_spec([text])
    key, stat, operator, bound, relative = clause
    assert (found.key, found.stat, found.operator, found.bound, found.relative) == (key, stat, operator, pytest.approx(bound), relative)


def test_clauses_are_joined_by_commas_and_specs_add_up() -> None:
    assert [clause.text for clause in parse_spec(["itl.p50>+5%, ttft.p95>500ms", "requests<3"])] == [
        "itl.p50>+5%",
        "ttft.p95>500ms",
        "requests<3",
    ]
    assert parse_spec([]) == ()


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("", 1, "no clause"),
        ("itl.p50>5%,", 12, "no clause"),
        ("latency.p50>5%", 1, "no metric of this name"),
        ("itl.p50>5%,latency.p50>5%", 12, "no metric of this name"),
        ("itl>5%", 4, "say which statistic"),
        ("itl.>5%", 5, "say which statistic"),
        ("itl.p42>5%", 5, "say which statistic"),
        ("itl.std>5%", 5, "say which statistic"),
        ("itl.p99>5%", 5, "p99 is shown and never decides"),
        ("requests.p50>5%", 10, "has no statistics"),
        ("itl.p50", 8, "a metric, > or <, and a bound"),
        ("itl.p50=5%", 8, "a metric, > or <, and a bound"),
        ("itl.p50>", 9, "a number with %"),
        ("itl.p50>>5%", 9, "a number with %"),
        ("itl.p50>five%", 9, "a number with %"),
        ("itl.p50>5", 10, "is a time"),
        ("itl.p50>5tokens", 10, "is a time"),
        ("itl.p50>+5ms", 11, "a bound with a sign"),
        ("requests<3ms", 11, "is in requests/s"),
        ("itl.p50>1e999s", 9, "too large"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_place(text: str, place: int, words: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse_spec([text])
    assert refused.value.field == "spec"
    assert f"at character {place}: " in str(refused.value)
    assert words in str(refused.value)


def test_a_spec_has_an_end() -> None:
    with pytest.raises(InvalidRequest, match="51 clauses"):
        parse_spec([",".join(["itl.p50>5%"] * 51)])


@given(st.text(max_size=60) | st.text(alphabet="itl.p50_s<>+-%, msue9", max_size=20))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_spec([text])
    except InvalidRequest:
        return
    assert all(clause.key in METRICS for clause in found)


def test_names_leave_the_unit_out_and_never_name_two() -> None:
    assert NAMES["itl"] == NAMES["itl_s"] == "itl_s"
    assert NAMES["decode"] == "decode_s"
    assert NAMES["decode_tokens"] == "decode_tokens_per_s"
    assert set(NAMES.values()) == set(METRICS)
    # A metric without a unit in its key has that one name; every other has two, and no two share one.
    with_unit = {key for key, metric in METRICS.items() if key.endswith(("_s", "_hz", "_flops_per_byte"))}
    assert len(NAMES) == len(METRICS) + len(with_unit)


@given(
    st.sampled_from(sorted(NAMES)),
    st.sampled_from(JUDGED_STATS),
    st.sampled_from("<>"),
    st.floats(-500, 500, allow_nan=False).map("{:+.3f}".format),
)
def test_what_is_written_by_the_grammar_is_read_back(name: str, stat: str, operator: str, percent: str) -> None:
    metric = METRICS[NAMES[name]]
    text = f"{name}{'' if metric.kind == 'rate' else '.' + stat}{operator}{percent}%"
    wanted = Clause(
        text, metric.key, "value" if metric.kind == "rate" else stat, ">" if operator == ">" else "<", float(percent) / 100, True
    )
    assert parse_spec([text]) == (wanted,)


@pytest.mark.parametrize(
    ("spec", "itl_ms", "outcome"),
    [
        ("itl.p50>+5%", 10.4, "holds"),
        ("itl.p50>+5%", 10.6, "broken"),
        ("itl.p50>+5%", 9.0, "holds"),
        ("itl.p50<-5%", 9.0, "broken"),
        # 2 % is past a bound of 1 %, and within the 3 % that single runs may differ by
        ("itl.p50>+1%", 10.2, "within noise"),
        ("itl.p50>+1%", 10.4, "broken"),
        ("itl.p50>10.5ms", 10.6, "broken"),
        ("itl.p50>10.6ms", 10.6, "holds"),
        ("itl.p50<10ms", 9.99, "broken"),
    ],
)
def test_a_clause_is_judged(spec: str, itl_ms: float, outcome: str) -> None:
    assert outcomes(gate(spec, run_of(), run_of(itl_ms=itl_ms))) == [(outcome, outcome == "broken")]


def test_numbers_come_with_the_judgement() -> None:
    (found,) = gate("itl.p50>+5%", run_of(), run_of(itl_ms=12)).results
    assert (found.base, found.value) == (0.01, 0.012)
    assert (found.change, found.noise, found.n) == (pytest.approx(0.2), 0.03, (1000, 1000))


def without(run: Run, key: str) -> Run:
    return replace(run, metrics={name: value for name, value in run.metrics.items() if name != key})


@pytest.mark.parametrize(
    ("spec", "base", "other", "outcome", "note"),
    [
        ("itl.p50>+5%", run_of(), without(run_of(), "itl_s"), "missing", "the run does not have it"),
        ("itl.p50>+5%", without(run_of(), "itl_s"), run_of(), "missing", "the base does not have it"),
        ("prefill.p50>+5%", run_of(), run_of(), "missing", "neither run has it"),
        ("itl.p90>+5%", run_of(), run_of(), "missing", "neither run has it; it has itl_s.mean and itl_s.p50 and itl_s.p95"),
        ("prefill.p50>5ms", run_of(), run_of(), "missing", "the run does not have it"),
        ("itl.p95>+5%", run_of(), run_of(n=100), "insufficient data", "rests on 5 samples beyond it"),
        ("itl.p95>5ms", run_of(), run_of(n=100), "insufficient data", "rests on 5 samples beyond it"),
        ("itl.p50>+5%", run_of(), run_of(prompt=3000.0), "not comparable", "The mean prompt length differs"),
        ("itl.p50>+5%", run_of(itl_ms=0.0), run_of(), "insufficient data", "the base is 0"),
    ],
)
def test_what_cannot_be_judged_breaks_the_clause_unless_that_is_allowed(spec: str, base: Run, other: Run, outcome: str, note: str) -> None:
    (found,) = gate(spec, base, other).results
    assert (found.outcome, found.broken) == (outcome, True)
    assert note in found.note
    assert outcomes(gate(spec, base, other, allow_missing=True)) == [(outcome, False)]


@pytest.mark.parametrize("withheld", ["itl_s", "itl_s.p50"])
@pytest.mark.parametrize("side", ["base", "other"])
def test_a_withheld_figure_is_not_judged(withheld: str, side: str) -> None:
    flagged = replace(run_of(itl_ms=1.0), flags=(Flag("unit_mismatch", "1 ms", (withheld,)),))
    base, other = (flagged, run_of()) if side == "base" else (run_of(), flagged)
    assert outcomes(gate("itl.p50>+5%", base, other)) == [("withheld", True)]
    # An absolute clause asks nothing of the base.
    assert outcomes(gate("itl.p50>20ms", base, other)) == [("holds", False) if side == "base" else ("withheld", True)]


def test_an_absolute_clause_holds_whatever_the_base_is() -> None:
    assert outcomes(gate("itl.p50>20ms", run_of(prompt=99.0), run_of())) == [("holds", False)]


def test_a_tool_that_means_something_else_is_not_judged() -> None:
    other = run_of()
    odd = replace(other, metrics={**other.metrics, "itl_s": Distribution(p50=0.01, definition="per chunk")})
    assert outcomes(gate("itl.p50>20ms", run_of(), odd)) == [("not comparable", True)]
    assert outcomes(gate("itl.p50>+5%", run_of(), odd)) == [("not comparable", True)]


def test_one_broken_clause_breaks_the_gate() -> None:
    found = gate("ttft.p50>+5%,itl.p50>+5%,output_tokens_per_s<-10%", run_of(), run_of(itl_ms=11.0, rate=85.0))
    assert outcomes(found) == [("holds", False), ("broken", True), ("holds", False)]
    assert not found.passed
    assert (found.base_id, found.run_id) == (1, 2)


def test_without_a_base_relative_clauses_are_missing() -> None:
    clauses = parse_spec(["itl.p50>+5%,itl.p50>20ms"])
    found = judge_alone(clauses, Side(2, run_of()), "it has no baseline")
    assert outcomes(found) == [("missing", True), ("holds", False)]
    assert found.base_id is None
    assert outcomes(judge_alone(clauses, Side(2, run_of()), "", allow_missing=True)) == [("missing", False), ("holds", False)]


@given(st.floats(0.1, 1000), st.floats(0.1, 1000), st.floats(-90, 400))
def test_a_worse_run_never_passes_where_a_better_one_fails(base: float, other: float, percent: float) -> None:
    """A higher time never unbreaks `>`, and what breaks `>` at a bound does not break `<` at the same one."""
    spec = f"itl.p50>{percent:+.2f}%"
    found, worse = (gate(spec, run_of(itl_ms=base), run_of(itl_ms=value)).results[0] for value in (other, other * 2 + 1))
    if found.broken and (found.change or 0) > 0:
        assert worse.broken
    mirrored = gate(spec.replace(">", "<"), run_of(itl_ms=base), run_of(itl_ms=other)).results[0]
    assert not (found.broken and mirrored.broken)
    assert not is_unjudged(found.outcome)
