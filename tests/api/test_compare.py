"""GET /compare: two runs and several, what adds up, what may not be compared."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.comparison_shapes import ComparisonShape
from tests.answers import API, ok, problem
from tests.result_files import data_of, served, served_in_detail

COMPARE = f"{API}/compare"
REASON_KEYS = {"phase", "findings", "ruled_out", "undetermined", "verdict", "verdicts", "observables", "levels", "flags", "stopped_by"}
PAIR_KEYS = {"repeats", "comparable", "metrics", "attribution", "sentence", "break_even_output_tokens", "notes", *REASON_KEYS}


def stored(client: TestClient, **changes: Any) -> int:
    sent = client.post(f"{API}/runs", content=data_of(served(**changes)))
    number: int = ok(sent, sent.status_code)["runs"][0]["id"]
    return number


def slower(ttft: float, itl: float) -> dict[str, Any]:
    """The sound report with other times: TTFT and ITL in ms, 51 tokens a request, 20 requests one after another."""
    whole = ttft + 50 * itl
    seconds = 20 * whole / 1e3
    times = {
        f"{stat}_{name}_ms": value
        for name, value in (("ttft", ttft), ("tpot", itl), ("itl", itl), ("e2el", whole))
        for stat in ("mean", "median")
    }
    rates = {"request_throughput": 20 / seconds, "output_throughput": 1020 / seconds, "total_token_throughput": 3020 / seconds}
    return {**times, **rates, "duration": seconds}


@pytest.fixture(scope="module")
def base(api: TestClient) -> int:
    """50 ms to the first token, then 10 ms each."""
    return stored(api, **slower(50, 10))


def test_two_runs(api: TestClient, base: int) -> None:
    other = stored(api, **slower(150, 8))
    answer = ok(api.get(COMPARE, params={"base": base, "other": other}))
    ComparisonShape.model_validate(answer)
    assert set(answer) == {"base", "others", "comparisons", *PAIR_KEYS}
    assert (answer["base"], answer["others"]) == (base, [other])
    assert answer["comparable"]["ok"] is True
    assert answer["comparable"]["differing"] == []
    # Prefill 50 -> 150 ms, decode 50 steps of 10 -> 8 ms: 0.55 -> 0.55 s in all, one up, one down.
    attribution = answer["attribution"]
    assert attribution["total_s"] == pytest.approx(0.0, abs=1e-12)
    prefill, decode = attribution["halves"]
    assert (prefill["phase"], prefill["delta_s"]) == ("prefill", pytest.approx(0.1))
    assert (decode["phase"], decode["delta_s"]) == ("decode", pytest.approx(-0.1))
    assert attribution["remainder_s"] == pytest.approx(0.0, abs=1e-12)
    assert answer["phase"] == "prefill"
    sentence = answer["sentence"].replace("\xa0", " ")
    assert sentence.startswith(
        "Prefill got 3.0× slower, decode 20.0 % faster; break-even at 51 output tokens. Most likely: Weights of fewer bits"
    )
    assert answer["verdict"] == "opposite_moves_cancel"
    assert answer["findings"][0]["missing"][0] == "the weight format of both"
    # 100 ms more to win back 2 ms a token: 1 + 50.
    assert answer["break_even_output_tokens"] == 51


def test_each_metric_has_its_direction(api: TestClient, base: int) -> None:
    other = stored(api, **slower(150, 8))
    rows = {(row["key"], row["stat"]): row for row in ok(api.get(COMPARE, params={"base": base, "other": other}))["metrics"]}
    ttft, itl = rows["ttft_s", "mean"], rows["itl_s", "mean"]
    assert (ttft["base"], ttft["other"], ttft["delta"], ttft["ratio"]) == tuple(pytest.approx(value) for value in (0.05, 0.15, 0.1, 3.0))
    assert (ttft["verdict"], itl["verdict"]) == ("regressed", "improved")
    assert rows["decode_tokens_per_s", "value"]["verdict"] == "improved"
    assert rows["e2e_s", "mean"]["verdict"] == "unchanged"
    for row in rows.values():
        assert set(row) == {"key", "stat", "base", "other", "delta", "ratio", "change", "verdict", "n", "noise", "note"}
        assert row["verdict"] in ("improved", "regressed", "unchanged", "insufficient data", "not comparable")


@pytest.mark.parametrize(
    ("ttft", "itl", "phase"), [(50, 10, "none"), (51, 10.1, "none"), (100, 10, "prefill"), (50, 20, "decode"), (70, 12, "both")]
)
def test_the_phase_that_moved(api: TestClient, base: int, ttft: float, itl: float, phase: str) -> None:
    other = stored(api, **slower(ttft, itl), tokenizer_id=f"{ttft} {itl}")
    answer = ok(api.get(COMPARE, params={"base": base, "other": other}))
    assert answer["phase"] == phase
    assert answer["sentence"].endswith(".")


def test_several_runs_are_each_compared_with_the_base(api: TestClient, base: int) -> None:
    others = [stored(api, **slower(50 + n, 10 + n)) for n in range(1, 4)]
    answer = ok(api.get(COMPARE, params={"base": base, "other": others}))
    ComparisonShape.model_validate(answer)
    assert answer["others"] == others
    assert [pair["other"] for pair in answer["comparisons"]] == others
    first = answer["comparisons"][0]
    assert {key: first[key] for key in PAIR_KEYS} == {key: answer[key] for key in PAIR_KEYS}
    for place, other in enumerate(others):
        single = ok(api.get(COMPARE, params={"base": base, "other": other}))
        assert single["comparisons"] == [answer["comparisons"][place]]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model_id": "acme/other"}, "The model differs"),
        ({"max_concurrency": 4}, "The number of clients differs: 1 against 4"),
        ({"total_input_tokens": 4000}, "The mean prompt length differs by more than 5 %: 100 against 200 tokens"),
        ({"total_output_tokens": 2040}, "The mean output length differs by more than 5 %: 51 against 102 tokens"),
        ({"completed": 0, "failed": 20}, "completed no request"),
    ],
)
def test_runs_that_answer_different_questions_say_so(api: TestClient, base: int, changes: dict[str, Any], reason: str) -> None:
    answer = ok(api.get(COMPARE, params={"base": base, "other": stored(api, **changes)}))
    assert answer["comparable"]["ok"] is False
    assert any(reason in told for told in answer["comparable"]["reasons"])
    assert answer["sentence"].startswith("Not comparable: ")
    assert not {row["verdict"] for row in answer["metrics"]} & {"improved", "regressed", "unchanged"}


def test_what_was_changed_on_purpose_is_listed_and_no_obstacle(api: TestClient, base: int) -> None:
    other = stored(api, **slower(50, 5), tokenizer_id="tp 2")
    ok(api.patch(f"{API}/runs/{other}", json={"tp": 2, "weight_dtype": "fp8"}))
    answer = ok(api.get(COMPARE, params={"base": base, "other": other}))
    differing = {item["key"]: (item["base"], item["other"]) for item in answer["comparable"]["differing"]}
    assert (differing["tp"], differing["weight_dtype"]) == ((None, 2), (None, "fp8"))
    assert answer["comparable"]["ok"] is True


def test_a_run_without_phases_gets_no_attribution(api: TestClient, base: int) -> None:
    other = ok(api.post(f"{API}/runs", content=data_of(served_in_detail(itls=[], ttfts=[]))), 201)["runs"][0]["id"]
    answer = ok(api.get(COMPARE, params={"base": base, "other": other}))
    assert answer["sentence"]


def test_a_run_that_is_not_there_is_404(api: TestClient, base: int) -> None:
    for query in ({"base": base, "other": 10**6}, {"base": 10**6, "other": base}):
        problem(api.get(COMPARE, params=query), 404, "There is no run 1000000")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "query.base"),
        ("base=1", "query.other"),
        ("other=1", "query.base"),
        ("base=1&other=1", "two different runs"),
        ("base=1&other=1&other=1", "two different runs"),
        ("base=x&other=1", "query.base"),
        ("base=1&" + "&".join(f"other={n}" for n in range(2, 10)), "query.other"),
    ],
)
def test_a_comparison_needs_a_base_and_others(api: TestClient, base: int, query: str, words: str) -> None:
    problem(api.get(f"{COMPARE}?{query}"), 422, words)


def test_the_sample_runs_show_prefill_slower_and_decode_faster(stocked: TestClient) -> None:
    runs = {run["label"]: run["id"] for run in ok(stocked.get(f"{API}/runs"))["items"]}
    answer = ok(stocked.get(COMPARE, params={"base": runs["bf16 weights"], "other": runs["int4 weights"]}))
    assert answer["phase"] == "prefill"
    assert answer["comparable"]["ok"] is True
    parts = {part["phase"]: part["delta_s"] for part in answer["attribution"]["halves"]}
    assert parts["prefill"] > 0 > parts["decode"]
    assert answer["break_even_output_tokens"] > 1


def test_the_same_as_markdown(api: TestClient, base: int) -> None:
    other = stored(api, **slower(150, 8))
    answer = api.get(f"{COMPARE}.md", params={"base": base, "other": other})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.text.startswith(f"## Run {other} against run {base}\n")
    assert "Refuted if" in answer.text
    problem(api.get(f"{COMPARE}.md", params={"base": base, "other": 999999}), 404)


def test_the_parts_of_the_change_add_up_and_are_drawn(api: TestClient, base: int) -> None:
    other = stored(api, **slower(80, 10), total_input_tokens=8000, max_concurrency=4)
    asked = {"base": base, "other": other}
    found = ok(api.get(COMPARE, params=asked))["attribution"]
    assert sum(part["delta_s"] or 0 for part in found["parts"]) + found["remainder_s"] == pytest.approx(found["total_s"], abs=1e-12)
    assert [part["why"] is None for part in found["parts"]] == [part["kind"] is not None for part in found["parts"]]
    assert found["sentences"][0].replace("\xa0", " ").startswith("A mean request changed by +30.0 ms: first token +30.0 ms")
    drawn = ok(api.get(COMPARE, params={**asked, "figure": "plotly"}))
    assert drawn["layout"]["yaxis"]["categoryarray"][0] == "other"
    assert drawn["layout"]["yaxis"]["categoryarray"][-1] == "base"


def test_a_change_that_cannot_be_split_has_no_figure(api: TestClient, base: int) -> None:
    other = stored(api, completed=0, failed=20)
    problem(api.get(COMPARE, params={"base": base, "other": other, "figure": "plotly"}), 404, "cannot be split")


def test_a_side_of_repeats_is_judged_by_the_spread_between_them(api: TestClient, base: int) -> None:
    # TTFT 45, 50 and 55 ms: a spread of 10 %, so +18 % does not count and +22 % does.
    repeats = [stored(api, **slower(ttft, 10), tokenizer_id="repeat") for ttft in (45, 50, 55)]
    three = ",".join(map(str, repeats))
    for ttft, verdict in ((59, "unchanged"), (61, "regressed")):
        other = stored(api, **slower(ttft, 10), tokenizer_id="other")
        answer = ok(api.get(COMPARE, params={"base": three, "other": other}))
        assert (answer["base"], answer["repeats"]) == (repeats[0], {"base": repeats, "other": [other]})
        row = next(row for row in answer["metrics"] if (row["key"], row["stat"]) == ("ttft_s", "mean"))
        assert (row["base"], row["noise"]) == (pytest.approx(0.05), pytest.approx(0.2))
        assert row["verdict"] == verdict
        assert answer["phase"] == ("none" if verdict == "unchanged" else "prefill")
        assert "3 repeats and a single run: a change counts from 3 %, or" in answer["notes"][0]
        page = api.get("/compare", params={"base": three, "other": other})
        assert page.status_code == 200
        assert "mean of 3 repeats" in page.text


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ({"base": "1,", "other": "2"}, "base"),
        ({"base": "0", "other": "2"}, "name a run by its number"),
        ({"base": str(2**63), "other": "2"}, "name a run by its number"),
        ({"base": "1,2", "other": "2"}, "Run 2 stands on two sides"),
        ({"base": "1", "other": "1"}, "two different runs"),
    ],
)
def test_sides_that_are_none_are_refused(api: TestClient, base: int, sides: dict[str, str], words: str) -> None:
    problem(api.get(COMPARE, params=sides), 422, words)


def test_runs_that_are_no_repeats_are_refused(api: TestClient, base: int) -> None:
    other = stored(api, **slower(50, 10), max_concurrency=4)
    third = stored(api, **slower(51, 10))
    problem(api.get(COMPARE, params={"base": f"{base},{other}", "other": third}), 422, "is no repeat of run", "number of clients differs")


def test_a_label_that_repeats_a_fact_of_the_run_is_no_difference_of_its_own(api: TestClient) -> None:
    base, other = (
        ok(api.post(f"{API}/runs", content=data_of(served(vllm_version=version, preempted=version))), 201)["runs"][0]["id"]
        for version in ("0.12.0", "0.13.0")
    )
    differing = {item["key"] for item in ok(api.get(f"{API}/compare", params={"base": base, "other": other}))["comparable"]["differing"]}
    assert {"engine_version", "label: preempted"} <= differing
    assert "label: vllm_version" not in differing
