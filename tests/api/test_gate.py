"""Gates over HTTP: pass or fail with the numbers, and Markdown with the gate on top."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.gate import GateShape
from tests.answers import API, ok, problem
from tests.result_files import data_of, served

GATE = f"{API}/gate"


def stored(api: TestClient, **changes: Any) -> int:
    number: int = ok(api.post(f"{API}/runs", content=data_of(served(**changes))), 201)["runs"][0]["id"]
    return number


@pytest.fixture(scope="module")
def base(api: TestClient) -> int:
    return stored(api)


@pytest.fixture(scope="module")
def slower(api: TestClient) -> int:
    """TTFT as before, 12 ms a token where it was 10."""
    return stored(api, mean_tpot_ms=12.0, median_tpot_ms=12.0, mean_itl_ms=12.0, median_itl_ms=12.0, mean_e2el_ms=650.0)


def test_a_gate_passes_or_fails_with_its_numbers(api: TestClient, base: int, slower: int) -> None:
    answer = ok(api.get(GATE, params={"base": base, "run": slower, "spec": "itl.mean>+5%,ttft.p50>500ms"}))
    GateShape.model_validate(answer)
    assert answer["verdict"] == "fail"
    assert answer["sentence"] == "The gate fails: 1 of 2 clauses broken (itl.mean>+5%)."
    itl, ttft = answer["clauses"]
    assert (itl["base_run"], itl["run"], itl["key"], itl["stat"]) == (base, slower, "itl_s", "mean")
    # 12 / 10 - 1
    assert (itl["base"], itl["value"], itl["change"], itl["noise"]) == tuple(pytest.approx(value) for value in (0.01, 0.012, 0.2, 0.03))
    assert (itl["outcome"], itl["broken"], ttft["outcome"], ttft["broken"]) == ("broken", True, "holds", False)
    assert itl["sentence"].replace("\xa0", " ") == "ITL mean went from 10.0 ms to 12.0 ms, +20.0 %: above +5.0 %."
    assert ttft["sentence"].replace("\xa0", " ") == "TTFT p50 is 49.0 ms: not above 500 ms."
    assert ok(api.get(GATE, params={"base": base, "run": slower, "spec": "itl.mean>+25%"}))["verdict"] == "pass"
    # a plus of an address that was not escaped arrives as a space
    assert ok(api.get(f"{GATE}?base={base}&run={slower}&spec=itl.mean>+5%25"))["verdict"] == "fail"


def test_several_specs_are_one_gate(api: TestClient, base: int, slower: int) -> None:
    answer = ok(api.get(GATE, params={"base": base, "run": slower, "spec": ["itl.mean>+5%", "ttft.mean>+5%"]}))
    assert [clause["broken"] for clause in answer["clauses"]] == [True, False]


def test_nothing_passes_because_it_is_not_known(api: TestClient, base: int, slower: int) -> None:
    query = {"base": base, "run": slower, "spec": "prefill.p50>+5%"}
    answer = ok(api.get(GATE, params=query))
    assert (answer["verdict"], answer["clauses"][0]["outcome"]) == ("fail", "missing")
    assert answer["sentence"] == "The gate fails: 1 of 1 clause broken (prefill.p50>+5%), because it could not be judged."
    allowed = ok(api.get(GATE, params={**query, "allow_missing": True}))
    assert (allowed["verdict"], allowed["clauses"][0]["outcome"]) == ("pass", "missing")
    assert "1 could not be judged" in allowed["sentence"]
    other = stored(api, total_input_tokens=4000)
    answer = ok(api.get(GATE, params={"base": base, "run": other, "spec": "ttft.p50>+5%"}))
    assert (answer["verdict"], answer["clauses"][0]["outcome"]) == ("fail", "not comparable")
    assert "mean prompt length differs" in answer["clauses"][0]["note"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, "base"),
        ({"base": 1, "run": 2}, "A gate needs a spec"),
        ({"base": 1, "run": 2, "spec": "itl.p99>5%"}, "at character 5: p99"),
        ({"base": 1, "run": 2, "spec": "x" * 3000}, "spec"),
        ({"base": 1, "run": 1, "spec": "itl.p50>5%"}, "two different runs"),
        ({"base": 0, "run": 1, "spec": "itl.p50>5%"}, "base"),
        ({"base": 1, "run": "1,x", "spec": "itl.p50>5%"}, "run"),
        ({"base": "1,2", "run": "2,3", "spec": "itl.p50>5%"}, "stands on two sides"),
    ],
)
def test_a_gate_that_cannot_be_read_is_refused(api: TestClient, base: int, query: dict[str, Any], words: str) -> None:
    problem(api.get(GATE, params=query), 422, words)


def decode_at(api: TestClient, itl_ms: float, label: str) -> int:
    figures = dict.fromkeys(("mean_tpot_ms", "median_tpot_ms", "mean_itl_ms", "median_itl_ms"), itl_ms)
    return stored(api, **figures, mean_e2el_ms=50 + 50 * itl_ms, note=label)


def test_repeats_on_both_sides_are_judged_by_their_means_and_their_spread(api: TestClient) -> None:
    base = [decode_at(api, itl, f"base {place}") for place, itl in enumerate((9.0, 10.0, 11.0))]
    other = [decode_at(api, itl, f"other {place}") for place, itl in enumerate((11.0, 11.5, 12.0))]
    query = {"base": ",".join(map(str, base)), "run": ",".join(map(str, other)), "spec": "itl.mean>+5%"}
    answer = ok(api.get(GATE, params=query))
    (clause,) = answer["clauses"]
    # 11.5 / 10 - 1 = 15 %, and the base's repeats lie 1 / 10 apart: twice that is no change.
    assert (clause["base"], clause["value"]) == (pytest.approx(0.010), pytest.approx(0.0115))
    assert (clause["noise"], clause["outcome"], answer["verdict"]) == (pytest.approx(0.2), "within noise", "pass")
    assert clause["repeats"] == {"base": base, "run": other}
    assert (clause["base_run"], clause["run"]) == (base[0], other[0])


def test_of_repeats_against_a_baseline_their_means_are_judged(api: TestClient) -> None:
    model = {"model_id": "acme/gated-8b", "gpu": "ACME G1"}
    first = stored(api, **model)
    later = [stored(api, **model, mean_tpot_ms=itl, mean_itl_ms=itl, mean_e2el_ms=50 + 50 * itl) for itl in (12.0, 12.2, 12.4)]
    ok(api.post(f"{API}/baselines", json={"run": first, "name": "gated"}), 201)
    answer = ok(api.get(GATE, params={"base": "baseline", "run": ",".join(map(str, later)), "spec": "itl.mean>+5%"}))
    (clause,) = answer["clauses"]
    assert (clause["repeats"], clause["value"], clause["broken"]) == ({"base": [first], "run": later}, pytest.approx(0.0122), True)
    among = ok(api.get(GATE, params={"base": "baseline", "run": f"{first},{later[0]}", "spec": "itl.mean>+5%"}))
    assert "the baseline itself" in among["clauses"][0]["note"]


def test_a_repeat_that_is_none_is_refused(api: TestClient, base: int) -> None:
    other = stored(api, total_input_tokens=6000)
    problem(api.get(GATE, params={"base": base, "run": f"{other},{base}", "spec": "itl.p50>5%"}), 422, "stands on two sides")
    problem(
        api.get(GATE, params={"base": stored(api, note="x"), "run": f"{base},{other}", "spec": "itl.p50>5%"}), 422, "is no repeat of run"
    )


def test_a_run_that_is_not_there_is_404(api: TestClient, base: int) -> None:
    problem(api.get(GATE, params={"base": base, "run": 10**6, "spec": "itl.p50>5%"}), 404, "There is no run 1000000")


def test_the_gate_stands_on_top_of_the_markdown(api: TestClient, base: int, slower: int) -> None:
    query: dict[str, Any] = {"base": base, "other": slower, "spec": "itl.mean>+5%,ttft.p50>+5%"}
    text = api.get(f"{API}/compare.md", params=query).text.replace("\xa0", " ")
    assert text.startswith("## Gate failed\n")
    assert r"| itl.mean\>+5% | **broken** | ITL mean went from 10.0 ms to 12.0 ms, +20.0 %: above +5.0 %. |" in text
    assert r"| ttft.p50\>+5% | holds |" in text
    assert f"## Run {slower} against run {base}" in text
    passing = api.get(f"{API}/compare.md", params={**query, "spec": "itl.mean>+30%"}).text
    assert passing.startswith("## Gate passed\n")
    assert not api.get(f"{API}/compare.md", params={"base": base, "other": slower}).text.startswith("## Gate")
    problem(api.get(f"{API}/compare.md", params={**query, "spec": "no"}), 422, "The gate cannot be read")


@pytest.mark.parametrize(("name", "where"), [("base", "query.base"), ("run", "query.run")])
def test_a_side_that_is_no_number_is_told_what_it_must_be(api: TestClient, name: str, where: str) -> None:
    answer = api.get(GATE, params={"base": "1", "run": "2", "spec": "itl.mean>+5%", name: "newest"})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"{where}: must be the number of a run, or the numbers of repeats joined by commas")
