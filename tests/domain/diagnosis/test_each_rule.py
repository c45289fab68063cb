"""A row for each rule: runs made by hand that show its pattern, with numbers of its own, and the same with one sign of it gone.

The rows stand in the order of the table of rules; a rule without a row, or a row without a rule, fails.
"""

import pytest

from app.domain.diagnosis import RULES, Diagnosis, diagnose, diagnose_pair
from tests.domain.diagnosis.pattern_rows import Sides
from tests.domain.diagnosis.pattern_rows_of_prompts import BATCH, FIRST_TOKEN
from tests.domain.diagnosis.pattern_rows_of_steps import STEP, WHOLE

ROWS = (*FIRST_TOKEN, *BATCH, *STEP, *WHOLE)


def diagnosed(sides: Sides) -> Diagnosis:
    return diagnose(sides[0]) if len(sides) == 1 else diagnose_pair(*sides)


def test_every_rule_has_a_row_of_its_own() -> None:
    assert [(row.id, row.title) for row in ROWS] == [(rule.id, rule.title) for rule in RULES]


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda number: f"{ROWS[number].id} {ROWS[number].title}")
def test_a_rule_is_offered_where_its_pattern_is_and_not_where_a_sign_of_it_is_gone(number: int) -> None:
    rule, row = RULES[number], ROWS[number]
    assert rule in [found.rule for found in diagnosed(row.shows).findings]
    assert rule not in [found.rule for found in diagnosed(row.lacks).findings]
