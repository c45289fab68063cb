"""The table itself: its words, and that every sign of every rule counts."""

from dataclasses import replace
from math import inf

import pytest

from app.domain.diagnosis import RULES, Rule
from app.domain.diagnosis.judging import judge, undetermined
from app.domain.diagnosis.observables import Observed
from app.domain.diagnosis.rule import Sign, quantity
from app.domain.diagnosis.vocabulary import CAUSES, LEVERS

TABLE = {f"R{number:02}" for number in range(1, 31)}


def value(sign: Sign, holds: bool) -> float | None:
    """A value for the sign's observable with which it holds, or does not; None where the kind has none."""
    if sign.kind in ("flag", "no flag"):
        return None
    good, bad = {
        "rose": (1.0, 0.0),
        "fell": (-0.5, 0.0),
        "still": (0.0, 1.0),
        "no rise": (-0.5, 1.0),
        "above": (sign.low + 1, sign.low - 1),
        "below": (sign.high - 1, sign.high + 1),
        "within": ((sign.low + sign.high) / 2, sign.high + 1),
    }[sign.kind]
    return good if holds else bad


def situation(rule: Rule, but: Sign | None = None) -> Observed:
    """Everything that the rule asks for, but for one sign that does not hold; of two signs on one observable both must hold."""
    figures: dict[str, float] = {}
    for name in {sign.observable for sign in (*rule.pattern, *rule.separating)}:
        signs = [sign for sign in (*rule.pattern, *rule.separating) if sign.observable == name]
        wanted = next((sign for sign in signs if sign is but), signs[-1])
        found = value(wanted, wanted is not but)
        if found is not None:
            figures[name] = found
    flags = {sign.observable for sign in (*rule.pattern, *rule.separating) if sign.kind == ("no flag" if sign is but else "flag")}
    flags -= {sign.observable for sign in (but,) if sign is not None and sign.kind == "flag"}
    if but is not None and but.kind == "no flag":
        flags.add(but.observable)
    return Observed(figures, (), frozenset(flags))


def named(rule: Rule) -> str:
    return f"{rule.id} {rule.title}"


def test_every_line_of_the_table_has_a_rule() -> None:
    assert {rule.id for rule in RULES} == TABLE


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_rule_says_what_it_stands_for(rule: Rule) -> None:
    assert rule.pattern
    assert rule.title
    assert rule.refuted_by.endswith(".")
    assert "#" in rule.source
    assert rule.cause is None or rule.cause in CAUSES
    assert {advice.lever for advice in rule.levers} <= set(LEVERS)


@pytest.mark.parametrize("rule", RULES, ids=named)
def test_a_rule_is_offered_where_all_its_signs_are_there(rule: Rule) -> None:
    offered, out = judge(situation(rule), [rule])
    assert [found.rule for found in offered] == [rule]
    assert offered[0].decided
    assert out == ()


@pytest.mark.parametrize(
    ("rule", "sign"), [(rule, sign) for rule in RULES for sign in rule.pattern], ids=lambda item: getattr(item, "observable", "")
)
def test_without_a_sign_of_its_pattern_a_rule_says_nothing(rule: Rule, sign: Sign) -> None:
    assert judge(situation(rule, but=sign), [rule]) == ((), ())


@pytest.mark.parametrize(
    ("rule", "sign"), [(rule, sign) for rule in RULES for sign in rule.separating], ids=lambda item: getattr(item, "observable", "")
)
def test_a_separating_sign_rules_a_cause_out_and_its_absence_is_asked_for(rule: Rule, sign: Sign) -> None:
    offered, out = judge(situation(rule, but=sign), [rule])
    assert [found.rule for found in (out if sign.rules_out else offered)] == [rule]
    assert (out if sign.rules_out else offered)[0].doubted
    if sign.kind == "no flag":
        return
    whole = situation(rule)
    unknown = replace(whole, figures={name: known for name, known in whole.figures.items() if name != sign.observable})
    offered, out = judge(unknown, [rule])
    assert out == ()
    assert offered[0].missing
    assert not offered[0].decided


def test_a_cause_that_is_doubted_comes_behind_the_others() -> None:
    fewer, more = (next(rule for rule in RULES if rule.cause == cause) for cause in ("power_cap", "prefill_kernel"))
    seen = {"first_itself_change": 1.0, "step_itself_change": 0.0, "sm_clock_change": -0.5, "software_changed": 0.0}
    ranked = [found.rule.cause for found in judge(Observed({**seen, "sm_clock_change": 0.0}), [more])[0]]
    assert ranked == ["prefill_kernel"]
    doubtful = replace(more, separating=tuple(sign for sign in more.separating if sign.observable == "software_changed"))
    offered, _ = judge(Observed(seen), [doubtful, fewer])
    assert [(found.rule.cause, found.doubted) for found in offered] == [("power_cap", False), ("prefill_kernel", True)]


def test_more_signs_rank_first() -> None:
    fewer, more = (next(rule for rule in RULES if rule.cause == cause) for cause in ("scheduling_or_admission", "prefill_kernel"))
    seen = Observed(
        {"ttft_change": 1.0, "first_itself_change": 1.0, "step_itself_change": 0.0, "idle_added_s": 0.0, "sm_clock_change": 0.0}
    )
    offered, _ = judge(seen, [fewer, more])
    assert [(found.rule.cause, found.rank) for found in offered] == [("prefill_kernel", 1), ("scheduling_or_admission", 2)]
    assert [each.run for each in undetermined(offered, seen)] == [{"concurrency": [1]}]


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("ttft_change", 0.25, "+25 %"),
        ("itl_change", -0.125, "−12.5 %"),
        ("itl_added_s", 0.0021, "+2.1 ms"),
        ("ttft_base_s", 0.25, "250 ms"),
        ("floor_s_base", 0.0012, "1.2 ms"),
        ("step_bytes", 1.6e10, "16 GB"),
        ("decode_flops_per_s", 4.2e12, "4.2 TFLOP/s"),
        ("plateau_output_tokens_per_s", 520.0, "520 tokens/s"),
        ("chunks_other", 3.0, "3"),
        ("share_of_floor", 0.19, "19 %"),
        ("excess_bytes_ratio", 64.5, "64.5"),
    ],
)
def test_quantities_are_written_in_the_unit_of_their_name(name: str, given: float, words: str) -> None:
    assert quantity(name, given) == words


def test_an_infinite_budget_is_no_observable() -> None:
    assert inf not in situation(RULES[0]).figures.values()
