"""/runs/{id}/levers."""

from collections.abc import Callable

from tests.answers import API, ok
from tests.pages.conftest import Site

Words = Callable[[str], str]


def test_each_lever_says_what_it_does_to_both_halves(site: Site, words: Words) -> None:
    page = words(f"/runs/{site.loaded}/levers")
    for text in (
        "What would make this run faster, and which half of it",
        "Does nothing for prefill: it waits for requests ahead of it, ",
        "Does nothing for decode: it waits for its reads",
        "the diagnosis names it",
        "seen elsewhere: ITL −5 to −27 % on small GPUs (mini-sglang#132)",
        "Without a size for this run",
    ):
        assert text in page


def test_the_page_has_the_levers_of_the_json_in_its_order(site: Site, words: Words) -> None:
    found = ok(site.client.get(f"{API}/runs/{site.loaded}/levers?sort=decode"))["levers"]
    page = words(f"/runs/{site.loaded}/levers?sort=decode")
    places = [page.index(each["expected"]["what"]) for each in found[:4]]
    assert places == sorted(places)


def test_an_order_that_does_not_exist_is_said_and_the_page_is_there(site: Site, words: Words) -> None:
    answer = site.client.get(f"/runs/{site.loaded}/levers?sort=speed")
    assert answer.status_code == 422
    assert "sort must be one of total, prefill, decode, rate, cost." in answer.text


def test_the_run_and_the_comparison_lead_there(site: Site) -> None:
    assert f'href="/runs/{site.loaded}/levers"' in site.client.get(f"/runs/{site.loaded}").text
    assert f'href="/runs/{site.int4}/levers"' in site.client.get(f"/compare?base={site.bf16}&other={site.int4}").text


def test_a_run_without_a_prediction_has_an_empty_page_with_the_reason(site: Site, words: Words) -> None:
    assert "No prediction to change" in words(f"/runs/{site.unknown}/levers")
