"""docs/diagnosis.md against the rules and thresholds it describes."""

import ast
import inspect
from pathlib import Path

from app.domain.diagnosis import RULES, thresholds
from app.domain.metrics import METRICS
from tests.test_docs import table

PAGE = "docs/diagnosis.md"


def shown(value: float | tuple[float, float]) -> str:
    return f"{value[0]:.3g} to {value[1]:.3g}" if isinstance(value, tuple) else f"{value:.4g}"


def test_every_rule_has_its_row_in_the_order_of_the_table() -> None:
    rows = table(PAGE, "rule", "says", "phase", "cause", "levers")
    assert rows == [
        [
            rule.id,
            rule.title,
            rule.phase,
            f"`{rule.cause}`" if rule.cause else "–",
            ", ".join(f"`{advice.lever}`" for advice in rule.levers) or "–",
        ]
        for rule in RULES
    ]


def test_every_threshold_has_its_row_with_its_value() -> None:
    names = [node.targets[0].id for node in ast.parse(inspect.getsource(thresholds)).body if isinstance(node, ast.Assign)]  # type: ignore[attr-defined]
    rows = table(PAGE, "threshold", "value", "what it is for")
    said = {name.strip(" `"): value.strip() for row in rows for name, value in zip(row[0].split(","), row[1].split(","), strict=True)}
    assert said == {name: shown(getattr(thresholds, name)) for name in names}


def test_the_metrics_it_names_exist() -> None:
    rows = table(PAGE, "metric", "how", "what it separates")
    assert {name.strip(" `") for row in rows for name in row[0].split(",")} <= set(METRICS)


def test_the_page_is_linked_from_the_readme() -> None:
    assert f"]({PAGE})" in (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
