"""Baselines over HTTP: set, moved, found by what was measured, gated against; noise from repeats."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.baselines import BaselineList, BaselineShape
from tests.answers import API, ok, problem
from tests.result_files import data_of, served

BASELINES = f"{API}/baselines"
GATE = f"{API}/gate"
DEVICE = "h100-sxm5-80gb"


@pytest.fixture
def project(request: pytest.FixtureRequest) -> str:
    """A project of its own for each test, so that none shares a series with another."""
    return str(request.node.name)[:100]


def stored(api: TestClient, project: str, day: int, itl_ms: float = 10.0, fields: dict[str, str] | None = None, **changes: Any) -> int:
    """A run of one client on a day of May, at this time a token."""
    times = {"mean_tpot_ms": itl_ms, "median_tpot_ms": itl_ms, "mean_itl_ms": itl_ms, "mean_e2el_ms": 50 + 50 * itl_ms}
    data = data_of(served(date=f"202605{day:02d}-120000", **times, **changes))
    sent = api.post(f"{API}/runs", files={"file": ("a.json", data)}, data={"hardware": DEVICE, "project": project, **(fields or {})})
    number: int = ok(sent, 201)["runs"][0]["id"]
    return number


def test_a_baseline_from_first_to_last(api: TestClient, project: str) -> None:
    run = stored(api, project, 1)
    made = ok(api.post(BASELINES, json={"run": run, "name": "release 1"}), 201)
    BaselineShape.model_validate(made)
    assert (made["run"], made["name"], made["url"]) == (run, "release 1", f"/runs/{run}")
    assert made["series"]["hardware"] == DEVICE
    assert (made["series"]["concurrency"], made["series"]["prompt_tokens"]) == (1, 100.0)
    assert ok(api.get(f"{BASELINES}/{made['id']}")) == made
    listed = ok(api.get(BASELINES))
    BaselineList.model_validate(listed)
    assert made in listed["items"]
    assert ok(api.get(BASELINES, params={"project": "nobody's"}))["items"] == []

    later = stored(api, project, 2)
    assert "move baseline" in problem(api.post(BASELINES, json={"run": later}), 409)["detail"]
    moved = ok(api.patch(f"{BASELINES}/{made['id']}", json={"run": later, "notes": "why"}))
    assert (moved["run"], moved["name"], moved["notes"]) == (later, "release 1", "why")
    assert api.delete(f"{BASELINES}/{made['id']}").status_code == 204
    for call in (api.get, api.delete):
        problem(call(f"{BASELINES}/{made['id']}"), 404, "no baseline")
    problem(api.patch(f"{BASELINES}/{made['id']}", json={"name": "x"}), 404)


def test_a_baseline_goes_with_its_run(api: TestClient, project: str) -> None:
    run = stored(api, project, 1)
    made = ok(api.post(BASELINES, json={"run": run}), 201)
    assert made["name"] == f"llama-3-1-8b on {DEVICE}, vllm, 100 → 51 tokens, 1 client"
    api.delete(f"{API}/runs/{run}")
    problem(api.get(f"{BASELINES}/{made['id']}"), 404)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 422, "run"),
        ({"run": 0}, 422, "run"),
        ({"run": 10**6}, 404, "There is no run"),
        ({"run": 1, "colour": "red"}, 422, "colour"),
    ],
)
def test_what_cannot_be_a_baseline(api: TestClient, body: dict[str, Any], status: int, words: str) -> None:
    problem(api.post(BASELINES, json=body), status, words)


def test_a_run_must_say_what_was_measured(api: TestClient) -> None:
    run = ok(api.post(f"{API}/runs", content=data_of(served(tokenizer_id="no hardware"))), 201)["runs"][0]["id"]
    refused = problem(api.post(BASELINES, json={"run": run}), 422, f"Run {run} does not say hardware: name it under Edit")
    assert refused["field"] == "run"
    empty = data_of(served(completed=0, failed=20))
    run = ok(api.post(f"{API}/runs", params={"hardware": "l4"}, content=empty), 201)["runs"][0]["id"]
    problem(api.post(BASELINES, json={"run": run}), 422, "completed no request")


def test_a_new_run_finds_its_baseline_by_what_was_measured(api: TestClient, project: str) -> None:
    base = stored(api, project, 1)
    ok(api.post(BASELINES, json={"run": base}), 201)
    same = stored(api, project, 2, itl_ms=12.0, total_input_tokens=2080)
    query: dict[str, Any] = {"base": "baseline", "run": same, "spec": "itl.mean>+5%"}
    answer = ok(api.get(GATE, params=query))
    assert (answer["verdict"], answer["clauses"][0]["base_run"]) == ("fail", base)
    assert ok(api.get(f"{API}/compare", params={"base": "baseline", "other": same}))["base"] == base
    assert api.get(f"{API}/compare.md", params={"base": "baseline", "other": same}).text.startswith(f"## Run {same} against run {base}")
    # Prompts of twice the length are another question, and nothing it could be set against.
    longer = stored(api, project, 3, total_input_tokens=4000)
    answer = ok(api.get(GATE, params={**query, "run": longer, "spec": "itl.mean>+5%,itl.mean>1s"}))
    assert [(clause["outcome"], clause["broken"]) for clause in answer["clauses"]] == [("missing", True), ("holds", False)]
    assert "was never compared" in answer["clauses"][0]["sentence"]
    assert ok(api.get(GATE, params={**query, "run": longer, "allow_missing": True}))["verdict"] == "pass"
    problem(api.get(f"{API}/compare", params={"base": "baseline", "other": longer}), 404, "was never compared")
    # The baseline itself passes nothing relative either.
    answer = ok(api.get(GATE, params={**query, "run": base}))
    assert "the run is the baseline itself" in answer["clauses"][0]["note"]


def test_what_people_change_on_purpose_stays_in_the_series(api: TestClient, project: str) -> None:
    base = stored(api, project, 1)
    ok(api.post(BASELINES, json={"run": base}), 201)
    other = stored(api, project, 2, fields={"tp": "2", "weight_dtype": "fp8"})
    assert ok(api.get(GATE, params={"base": "baseline", "run": other, "spec": "itl.mean>+5%"}))["verdict"] == "pass"


def test_repeats_say_what_counts(api: TestClient, project: str) -> None:
    """Five repeats of 10 and 10.6 ms: differences of 0.6, so 0.6 / sqrt(2) / 10.24 = 4.1 % between runs, and 8.3 % must be exceeded."""
    runs = [stored(api, project, day, itl_ms=10.6 if day % 2 else 10.0) for day in range(1, 6)]
    within, beyond = stored(api, project, 10, itl_ms=10.8), stored(api, project, 11, itl_ms=11.6)
    query: dict[str, Any] = {"base": runs[1], "spec": "itl.mean>+5%"}
    (clause,) = ok(api.get(GATE, params={**query, "run": within}))["clauses"]
    assert clause["outcome"] == "within noise"
    assert clause["noise"] == pytest.approx(0.083, abs=0.02)
    assert ok(api.get(GATE, params={**query, "run": beyond}))["verdict"] == "fail"
    answer = ok(api.get(f"{API}/compare", params={"base": runs[1], "other": within}))
    assert answer["phase"] == "none"
    assert answer["notes"][0].startswith("A change counts from 3 %, or from twice the spread between repeats")
    # Other settings are no repeats: with them only the floor is left.
    alone = stored(api, project, 20, itl_ms=10.0, fields={"tp": "2"})
    other = stored(api, project, 21, itl_ms=10.6, fields={"tp": "2"})
    (clause,) = ok(api.get(GATE, params={"base": alone, "run": other, "spec": "itl.mean>+5%"}))["clauses"]
    assert (clause["noise"], clause["outcome"]) == (0.03, "broken")


def test_the_run_that_is_judged_does_not_raise_the_noise_it_is_held_against(api: TestClient, project: str) -> None:
    """Of other settings than the base there are two runs at 10 ms and this one at 11: its own jump is no spread between repeats."""
    base = stored(api, project, 1)
    run = [stored(api, project, 2 + number, itl_ms=itl, fields={"tp": "2"}) for number, itl in enumerate((10.0, 10.01, 11.0))][-1]
    (clause,) = ok(api.get(GATE, params={"base": base, "run": run, "spec": "itl.mean>+5%"}))["clauses"]
    assert (clause["outcome"], clause["noise"]) == ("broken", 0.03)
    # With three quiet ones and this one there is a spread, and it is theirs.
    for number in range(3):
        stored(api, project, 10 + number, itl_ms=10.0 + number / 100, fields={"tp": "4"})
    slower = stored(api, project, 20, itl_ms=11.0, fields={"tp": "4"})
    (clause,) = ok(api.get(GATE, params={"base": base, "run": slower, "spec": "itl.mean>+5%"}))["clauses"]
    assert (clause["outcome"], clause["noise"]) == ("broken", 0.03)
