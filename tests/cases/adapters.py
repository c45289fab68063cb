"""One adapter for each shape of a case's input: it builds domain objects or files, calls the product, and hands back what that said.

An adapter renames and converts units. It holds no formula, no threshold and no expected answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from fastapi.testclient import TestClient

from app.catalog import load
from app.domain.comparison import Comparison, Side, compare
from app.domain.diagnosis import Subject, diagnose
from app.domain.pairing import pair_runs
from app.domain.reconciling import reconcile
from app.domain.run import Run
from app.services.assessment import assess
from app.services.comparison_json import comparison_json
from app.services.diagnosing import Explained
from app.services.diagnosis_json import diagnosis_json
from app.services.summary import run_summary
from tests.answers import API
from tests.cases.asking import asked
from tests.cases.building import Given, shown
from tests.cases.outcome import Outcome
from tests.cases.predicting import PREDICTING


def outcome(case: Mapping[str, Any], client: TestClient) -> Outcome:
    """Send a case through the first adapter that knows its shape."""
    given = case["input"]
    if case["kind"] in ASKED_KINDS:
        return told_apart(given)
    for knows, adapter in PREDICTING if case["kind"] == "predictor" else ADAPTERS:
        if knows(given):
            found = adapter(given, client)
            for run in (*found.runs.values(), *found.predicted.values(), found.comparison, found.swapped):
                found.flags |= {flag["flag"] for flag in run.get("flags", ())}
            return found
    raise AssertionError(f"no adapter knows the input of {case['id']}: {sorted(given)}")


def told_apart(given: Given) -> Outcome:
    """The diagnosis of one deployment or of two, with the summary of each one's runs."""
    question = asked(given)
    found = Outcome(diagnoses=[diagnosis_json(Explained(each)) for each in question.diagnoses])
    for name, subject in question.subjects.items():
        for index, run in enumerate(subject.runs):
            found.runs[name if len(subject.runs) == 1 else f"{name}.{index}"] = run_summary(run)
    if question.compared is not None:
        found.comparison = as_json(question.compared)
    for each in (*found.diagnoses, found.comparison):
        found.flags |= {flag["flag"] for flag in each.get("flags", ())}
    return found


def uploaded(given: Given, client: TestClient) -> Outcome:
    """Files as they are, one request each; two are compared, the first is the base."""
    found = Outcome()
    ids = []
    for file in given.get("files") or [given["file"]]:
        answer = client.post(f"{API}/runs", files={"file": (file["name"], file["text"].encode())})
        found.status, found.text = answer.status_code, answer.text
        body = answer.json()
        for refusal in body.get("refused", ()):
            found.flags |= {flag["flag"] for flag in refusal.get("flags", ())}
        stem = file["name"].partition(".")[0]
        runs = body.get("runs", [])
        for index, run in enumerate(runs):
            found.runs[stem if len(runs) == 1 else f"{stem}.{index}"] = run
            ids.append(run["id"])
    found.answer = {"count": len(found.runs)}
    if given.get("files") and len(ids) == 2:
        found.comparison = client.get(f"{API}/compare", params={"base": ids[0], "other": ids[1]}).json()
    return found


def compared(names: tuple[str, str]) -> Callable[[Given, TestClient], Outcome]:
    """Two named sides, each with numbers of its own."""

    def adapter(given: Given, client: TestClient) -> Outcome:
        return two_sides({name: shown(given[name]) for name in names})

    return adapter


def two_sides(runs: Mapping[str, Run]) -> Outcome:
    base, other = (Side(number, run) for number, run in enumerate(runs.values(), 1))
    return Outcome(
        runs={name: run_summary(run) for name, run in runs.items()},
        comparison=as_json(compare(base, other)),
        swapped=as_json(compare(other, base)),
    )


def as_json(comparison: Comparison) -> dict[str, Any]:
    return comparison_json([comparison])


def rows(given: Given, client: TestClient) -> Outcome:
    """A table of one row a situation, the first is the base."""
    return two_sides({str(index): shown(row) for index, row in enumerate(given["rows"])})


def direct(given: Given, client: TestClient) -> Outcome:
    """The case's own run beside the same question asked without what stands between."""
    beside = {"output_tokens": given["output_tokens"], **given["direct"]}
    return Outcome(runs={"": run_summary(shown(given)), "direct": run_summary(shown(beside))}, diagnoses=[diagnosed(shown(given))])


def several(key: str, name: str) -> Callable[[Given, TestClient], Outcome]:
    """A list of runs that share what stands beside the list."""

    def adapter(given: Given, client: TestClient) -> Outcome:
        shared = {other: value for other, value in given.items() if other != key}
        return Outcome(runs={str(each[name]): run_summary(shown({**shared, **each})) for each in given[key]})

    return adapter


def each_request(given: Given, client: TestClient) -> Outcome:
    """Requests seen together and one by one."""
    single = {f"r{index}": run_summary(shown(each)) for index, each in enumerate(given["requests"])}
    found = Outcome(runs={"": run_summary(shown(given)), **single})
    if len(single) == 2:
        found.comparison = two_sides({name: shown(each) for name, each in zip(single, given["requests"], strict=True)}).comparison
    return found


def on_hardware(given: Given, client: TestClient) -> Outcome:
    """A run beside the prediction for a device and a model that the case gives by figures alone."""
    catalog = load()
    model = replace(catalog.models["textbook-8b"].architecture, declared_parameters=given["params"])
    device = replace(catalog.hardware["textbook-h100"], peak_flops_per_s={"bf16": given["hardware"]["peak_flops"]})
    run = replace(shown(given), model="textbook-8b", hardware="textbook-h100")
    return Outcome(runs={"": run_summary(run, assess(run, model, device))})


def counted(given: Given, client: TestClient) -> Outcome:
    found = reconcile(given["server_ttft_count"], given["client_success"], given["client_failed"], given["warmup"])
    return Outcome(answer={"explained": found.explained, "difference": found.difference})


def joined(given: Given, client: TestClient) -> Outcome:
    """Two lists of runs in no common order."""
    lists = [[replace(shown(row), model=row["model"]) for row in given[name]] for name in ("before", "after")]
    pairs = pair_runs(*lists).pairs
    return Outcome(
        pairs={str(base.model): as_json(compare(Side(1, base), Side(2, other))) for base, other in pairs},
    )


def alone(given: Given, client: TestClient) -> Outcome:
    return Outcome(runs={"": run_summary(shown(given))}, diagnoses=[diagnosed(shown(given))])


def diagnosed(run: Run) -> dict[str, Any]:
    return diagnosis_json(Explained(diagnose(Subject((run,)))))


def has(*keys: str) -> Callable[[Given], bool]:
    return lambda given: all(key in given for key in keys)


def lists(*keys: str) -> Callable[[Given], bool]:
    return lambda given: all(isinstance(given.get(key), list) for key in keys)


def sides(*keys: str) -> Callable[[Given], bool]:
    return lambda given: all(isinstance(given.get(key), dict) for key in keys)


ASKED_KINDS = ("regression", "is_it_good")

ADAPTERS: tuple[tuple[Callable[[Given], bool], Callable[[Given, TestClient], Outcome]], ...] = (
    (lambda given: "file" in given or "files" in given, uploaded),
    (lists("before", "after"), joined),
    (sides("before", "after"), compared(("before", "after"))),
    (sides("a", "b"), compared(("a", "b"))),
    (has("rows"), rows),
    (has("direct"), direct),
    (has("levels"), several("levels", "c")),
    (has("runs"), several("runs", "requests")),
    (has("params", "hardware"), on_hardware),
    (has("server_ttft_count"), counted),
    (lists("requests"), each_request),
    (lambda given: True, alone),
)
