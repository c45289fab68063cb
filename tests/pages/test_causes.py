"""The block of causes and levers, on a comparison and on a run."""

from collections.abc import Callable
from dataclasses import replace
from re import search

from app.domain.diagnosis import Setup, Subject, diagnose, diagnose_pair
from app.domain.run import Distribution, Run, Workload
from app.pages.causes_view import causes_view
from app.services.diagnosing import Explained
from app.services.lever_effects import LeverEffect, Outlook
from tests.answers import API, ok
from tests.pages.conftest import Site

Words = Callable[[str], str]


def run(ttft: float, itl: float, clients: int) -> Run:
    return Run(
        format="generic",
        workload=Workload(concurrency=clients),
        metrics={"ttft_s": Distribution(mean=ttft), "itl_s": Distribution(mean=itl)},
    )


def outlook(ttft: float, itl: float) -> Outlook:
    return Outlook(ttft, itl, ttft + 99 * itl, 100 / (ttft + 99 * itl), 1, 1e10, 8)


def test_a_comparison_names_the_cause_its_evidence_and_what_would_refute_it(site: Site, words: Words) -> None:
    page = words(f"/compare?base={site.bf16}&other={site.int4}")
    for text in (
        "Why, most likely first",
        "Weights of fewer bits are expanded in the prompt pass prefill medium: 4 of 6 signs",
        "Not known: the core clock of both; the chunk budget of both.",
        "Refuted if the wider weights are as slow in the same version.",
        "predicted for B’s workload",
    ):
        assert text in page


def test_a_run_is_judged_and_its_levers_are_sized(site: Site, words: Words) -> None:
    page = words(f"/runs/{site.loaded}")
    assert "Decode is good:" in page
    assert "The step is the reading of its bytes decode strong: 1 of 1 sign" in page
    # At 32 clients a shorter step lets the next prompt in sooner: both halves move, and each has its own figure.
    ms, share = r"[\d.]+ ms", r"−[\d.]+ %"
    assert search(rf"With half the bytes per weight\. predicted TTFT {ms} → {ms}, {share} ITL {ms} → {ms}, {share}", page)
    assert "Speculative decoding With 3 drafted tokens, each accepted with a chance of 70%." in page


def test_a_run_of_which_nothing_follows_has_no_block(site: Site, words: Words) -> None:
    assert "most likely first" not in words(f"/runs/{site.founding}")


def test_what_would_decide_and_what_is_ruled_out() -> None:
    open_question = diagnose_pair(Subject((run(0.3, 0.02, 32),)), Subject((run(0.6, 0.02, 32),)))
    seen = causes_view(Explained(open_question))
    assert [row.strength.split(":")[0] for row in seen.causes] == ["weak", "weak"]
    asked = seen.undetermined[0]
    assert set(asked.between.split(" and ")) == {"scheduling or admission", "prefill kernel"}
    assert (asked.ask, asked.run) == ("the same question at one client, for both", "concurrency 1")
    assert asked.address == "/jobs/new?kind=endpoint_sweep"
    assert asked.command == "phaseline measure endpoint URL --model MODEL --concurrency 1"
    alone = diagnose_pair(Subject((run(0.3, 0.02, 1),)), Subject((run(0.6, 0.02, 1),)))
    assert [row.found.rule.cause for row in causes_view(Explained(alone)).ruled_out] == ["scheduling_or_admission"]


def test_sized_levers_come_first_and_say_what_they_do_nothing_for() -> None:
    found = diagnose(Subject((replace(run(0.1, 0.01, 1)),), Setup(step_weight_bytes=9e9, bandwidth_bytes_per_s=1e12)))
    effects = {
        "larger_batch": LeverEffect("larger_batch", "twice the batch", outlook(0.1, 0.01), outlook(0.12, 0.011)),
        "fewer_bytes": LeverEffect("fewer_bytes", "half the bytes per weight", outlook(0.1, 0.01), outlook(0.1, 0.005), "it waits"),
    }
    rows = causes_view(Explained(found, effects)).levers
    assert [row.title for row in rows[:2]] == ["Fewer bytes", "Larger batch"]
    assert rows[0].nothing == ("Does nothing for prefill: it waits.",)
    assert rows[0].prefill == ""
    assert rows[0].decode.replace("\xa0", " ") == "ITL 10.0 ms → 5.00 ms, −50.0 %"
    assert all(row.decode == "" for row in rows[2:])


def test_the_block_says_what_the_json_says(site: Site, words: Words) -> None:
    pair = f"compare?base={site.bf16}&other={site.int4}"
    for page, data in ((f"/{pair}", f"{API}/{pair}"), (f"/runs/{site.loaded}", f"{API}/runs/{site.loaded}/diagnosis")):
        findings = ok(site.client.get(data))["findings"]
        assert findings
        assert all(each["title"] in words(page) for each in findings)
