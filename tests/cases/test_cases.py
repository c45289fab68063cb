"""Every described case, a test named by its id: a small situation, the numbers that go in, and what a correct answer contains.

Cases of the kinds in JUDGED are judged by flags, messages, statuses, the phase of predictions, the values that a public result carries
(fields.toml), and by what a diagnosis says: phase, causes, levers, verdict. not_expressible.toml lists cases that do not pass yet, each
with the concept that is missing; one that starts to pass fails here until it is taken off the list.
"""

import json
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.applications import served_from
from tests.cases.adapters import Outcome, outcome

HERE = Path(__file__).parent
CASES = [json.loads(line) for line in (HERE / "cases.jsonl").read_text(encoding="utf-8").splitlines()]
JUDGED = ("metric_definition", "regression", "is_it_good", "predictor", "file", "artefact")
FIELDS = tomllib.loads((HERE / "fields.toml").read_text(encoding="utf-8"))
MISSING = tomllib.loads((HERE / "not_expressible.toml").read_text(encoding="utf-8"))
UNITS = {"ms": 1e3, "pct": 100.0, "mhz": 1e-6}
AT_MOST_MISSING = 0.05
# Figures by such names are misleading ones, which a product may leave out.
MISLEADING = ("naive_", "wrong_", "file_", "tool_")

EXPRESSIBLE = [case for case in CASES if case["kind"] in JUDGED and case["id"] not in MISSING]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with served_from(tmp_path_factory.mktemp("cases")) as started:
        yield started


@pytest.mark.parametrize("case", EXPRESSIBLE, ids=lambda case: case["id"])
def test_case(case: Mapping[str, Any], client: TestClient) -> None:
    judged(case, client)


def judged(case: Mapping[str, Any], client: TestClient) -> None:
    """Everything that the case expects; an AssertionError or KeyError says what is not so."""
    expected = case["expect"]
    assert expected.keys() <= JUDGES.keys()
    found = outcome(case, client)
    for key, wanted in expected.items():
        JUDGES[key](found, wanted)


def test_a_listed_case_does_not_pass_yet(client: TestClient) -> None:
    for case in CASES:
        if case["id"] in MISSING:
            with pytest.raises((AssertionError, LookupError)):
                judged(case, client)


def test_few_cases_are_not_expressible() -> None:
    ids = [case["id"] for case in CASES if case["kind"] in JUDGED]
    assert MISSING.keys() <= set(ids)
    assert len(MISSING) <= AT_MOST_MISSING * len(ids)
    assert all(concept["missing"] for concept in MISSING.values())
    assert all(name.startswith(MISLEADING) for name in FIELDS["not_shown"])


def values(found: Outcome, wanted: Mapping[str, Mapping[str, Any]]) -> None:
    for name, rule in wanted.items():
        if name in FIELDS["not_shown"]:
            continue
        value = looked_up(found, name, several=isinstance(rule.get("equals"), list))
        assert fulfils(value, rule), f"{name} is {value}, expected {rule}"


def not_values(found: Outcome, wanted: Mapping[str, float]) -> None:
    for name, wrong in wanted.items():
        places = [looked_up(found, f"{pair}.{name}") for pair in found.pairs] or [looked_up(found, name)]
        assert not any(value == pytest.approx(wrong, rel=1e-3) for value in places), name


def fulfils(value: Any, rule: Mapping[str, Any]) -> bool:
    if "equals" in rule:
        return bool(value == pytest.approx(rule["equals"], rel=1e-9))
    if "min" in rule or "max" in rule:
        return value is not None and rule.get("min", -math.inf) <= value <= rule.get("max", math.inf)
    if rule["value"] is None:
        return value is None
    return value is not None and bool(value == pytest.approx(rule["value"], rel=rule.get("rel", 0), abs=rule.get("abs", 0)))


def looked_up(found: Outcome, name: str, several: bool = False) -> Any:
    """The value that fields.toml finds for a case's name, in the case's unit; None where the result has none."""
    prefix, _, bare = name.rpartition(".")
    if found.predicted:
        place = FIELDS["predicted"][bare]
        return scaled(walk(by_name(found.predicted[place.get("of", prefix)]), place["path"]), place)
    if bare in FIELDS["diagnosis"] and (value := told_by_diagnosis(found, FIELDS["diagnosis"][bare])) is not None:
        return value
    place = FIELDS["per_run"].get(bare)
    if place is None and bare not in FIELDS["whole"]:
        assert bare in FIELDS["diagnosis"], bare
        return None
    if place is None:
        place = FIELDS["whole"][bare]
        root = {"comparison": by_name(found.pairs.get(prefix, found.comparison)), "swapped": by_name(found.swapped)}
        root |= {"answer": found.answer, "sides": found.runs}
        return scaled(walk(root, place["path"]), place)
    name_of_run = place.get("run", prefix)
    if "paths" in place:
        return [scaled(walk(chosen(found, name_of_run), path), place) for path in place["paths"]]
    if several:
        return [scaled(walk(by_name(run), place["path"]), place) for run in found.runs.values()]
    return scaled(walk(chosen(found, name_of_run, place["path"]), place["path"]), place)


def told_by_diagnosis(found: Outcome, place: Mapping[str, Any]) -> Any:
    """An observable of a diagnosis (of the numbered one where there are several), or of one of its levels; None where it has none."""
    diagnosis = said(found)[place.get("of", 0)]
    if not diagnosis:
        return None
    if "paths" in place:
        found_values = [diagnosis["observables"].get(path) for path in place["paths"]]
        return None if None in found_values else found_values
    if "at" in place:
        level = next(each for each in diagnosis["levels"] if each["at"] == place["at"])
        return scaled(level.get(place["path"]), place)
    return scaled(diagnosis["observables"].get(place["path"], diagnosis.get(place["path"])), place)


def chosen(found: Outcome, name: str, path: str = "") -> Any:
    """The run that a prefix names; without one the first run that has anything at the path."""
    if name:
        return by_name(found.runs[name])
    runs = [by_name(run) for run in found.runs.values()]
    return next((run for run in runs if path and walk(run, path) is not None), runs[0])


def by_name(found: Mapping[str, Any]) -> Any:
    """Flags, and the rows of a comparison, by their names instead of in lists."""
    named = dict(found)
    named["flags"] = {flag["flag"]: flag for flag in reversed(found.get("flags", []))}
    if isinstance(found.get("metrics"), list):
        rows: dict[str, dict[str, Any]] = {}
        for row in found["metrics"]:
            rows.setdefault(row["key"], {})[row["stat"]] = row
        named["metrics"] = rows
    return named


def walk(root: Any, path: str) -> Any:
    for step in path.split("."):
        root = root.get(step) if isinstance(root, Mapping) else None
    return root


def scaled(value: Any, place: Mapping[str, Any]) -> Any:
    return value * UNITS[place["unit"]] if "unit" in place and value is not None else value


def flags(found: Outcome, wanted: list[str]) -> None:
    assert set(wanted) <= found.flags


def not_flags(found: Outcome, wanted: list[str]) -> None:
    assert not set(wanted) & found.flags


def http_status(found: Outcome, wanted: list[int]) -> None:
    assert found.status in wanted, found.text


def message_must_mention(found: Outcome, wanted: list[str]) -> None:
    for word in wanted:
        assert word.lower() in found.text.lower()


def said(found: Outcome) -> list[Mapping[str, Any]]:
    """The diagnoses of the case: those of single deployments, else that of the difference."""
    return [*found.diagnoses] or [found.comparison]


def offered(found: Outcome, key: str) -> set[Any]:
    findings = [finding for each in said(found) for finding in each["findings"]]
    return (
        {lever["lever"] for finding in findings for lever in finding["levers"]}
        if key == "lever"
        else {finding[key] for finding in findings}
    )


def phase(found: Outcome, wanted: str) -> None:
    """Where the time of predictions is, else that of the diagnosis."""
    assert (found.phases or {each["phase"] for each in said(found)}) == {wanted}


def verdict(found: Outcome, wanted: str) -> None:
    assert {each["verdict"] for each in said(found)} == {wanted}


def causes(found: Outcome, wanted: list[str]) -> None:
    assert set(wanted) <= offered(found, "cause")


def not_causes(found: Outcome, wanted: list[str]) -> None:
    assert not set(wanted) & offered(found, "cause")


def levers(found: Outcome, wanted: list[str]) -> None:
    assert set(wanted) <= offered(found, "lever")


def not_levers(found: Outcome, wanted: list[str]) -> None:
    assert not set(wanted) & offered(found, "lever")


JUDGES: dict[str, Callable[[Outcome, Any], None]] = {
    "values": values,
    "not_values": not_values,
    "flags": flags,
    "not_flags": not_flags,
    "phase": phase,
    "verdict": verdict,
    "causes": causes,
    "not_causes": not_causes,
    "levers": levers,
    "not_levers": not_levers,
    "http_status": http_status,
    "message_must_mention": message_must_mention,
}
