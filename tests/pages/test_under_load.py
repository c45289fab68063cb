"""The block "under load" of the predict page: there with clients, with its parts, its bounds and a target; absent without."""

import html
import re

import pytest
from fastapi.testclient import TestClient

from app.domain.errors import InvalidRequest
from app.pages import under_load
from tests.applications import served_from
from tests.pages.conftest import words_of

LOADED = "/predict?model=llama-3-1-8b&hardware=h100-sxm5-80gb&engine=vllm&calibration=default&prompt_tokens=1000&output_tokens=50"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    with served_from(tmp_path_factory.mktemp("load")) as found:
        yield found


def test_without_clients_or_in_textbook_mode_there_is_no_block(client: TestClient) -> None:
    assert "Under load" not in client.get(LOADED).text
    assert "Under load" not in client.get("/predict?concurrency=8").text


def test_clients_see_the_parts_of_their_first_token_and_what_limits_more(client: TestClient) -> None:
    page = client.get(f"{LOADED}&concurrency=8&shortest_length=0.8")
    words = words_of(page.text)
    for part in ("Front-end", "Queue", "Prefill", "8 clients, 10 requests each", "What limits more clients, in this order", "KV pool from"):
        assert part in words
    assert 'data-chart="distribution"' in page.text
    assert 'name="shortest_length" value="0.8"' in page.text  # the target's form keeps the question
    assert "A request of mean length takes" in page.text


def test_requests_at_a_rate_see_how_many_are_in_flight(client: TestClient) -> None:
    page = client.get(f"{LOADED}&request_rate_per_s=5&concurrency=").text
    words = words_of(page)
    for part in (
        "2 in flight, arriving at their own moments",
        "simulated pass by pass",
        "where 5 come a second",
        "What limits more of them",
        "requests on;",
    ):
        assert part in words
    assert 'name="request_rate_per_s" value="5"' in page
    # A preset sets the load, so its address leaves the rate and the open loop out.
    presets = [link for link in links_of(client.get(f"{LOADED}&concurrency=4&open_loop=true").text) if "batch=32" in link]
    assert presets
    assert not [link for link in presets if "open_loop" in link or "request_rate" in link]
    flying = words_of(client.get(f"{LOADED}&concurrency=4&open_loop=true").text)
    assert "4 in flight, arriving at their own moments" in flying


def test_equal_requests_that_keep_step_have_a_word(client: TestClient) -> None:
    word = "Exactly equal requests of a closed loop keep step"
    assert word in words_of(client.get(f"{LOADED}&concurrency=32").text)
    assert word not in words_of(client.get(f"{LOADED}&concurrency=32&shortest_length=0.5").text)
    assert word not in words_of(client.get(f"{LOADED}&concurrency=1").text)
    assert word not in words_of(client.get(f"{LOADED.replace('vllm', 'sglang')}&concurrency=32").text)


def test_rates_stand_with_what_they_keep(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    words = words_of(client.get(f"{LOADED}&concurrency=8").text)
    assert "What this deployment answers" in words
    assert "on average." not in words
    page = client.get(f"{LOADED}&concurrency=8&ttft_target_ms=500&tpot_target_ms=20").text
    (asked,) = (link for link in links_of(page) if "/predict/rates?" in link)
    assert client.get(asked).json()["within_target"]["ttft_s"] == 0.5
    bounded = words_of(page)
    assert re.search(r"Up to [0-9.]+ requests/s have a first token within 500.ms, further ones within 20.0.ms on average", bounded)
    monkeypatch.setattr(under_load, "is_ready", lambda: True)
    nearly_all = words_of(client.get(f"{LOADED}&concurrency=8&ttft_target_ms=500&tpot_target_ms=20").text)
    assert re.search(r"on average; 99.% of the requests, simulated, up to [0-9.]+ requests/s\.", nearly_all)
    hopeless = words_of(client.get(f"{LOADED}&concurrency=8&ttft_target_ms=1").text)
    assert "Not even one request at a time has a first token within 1.00" in hopeless
    assert "What this deployment answers" not in words_of(client.get(f"{LOADED}&concurrency=8&prefill_replicas=1").text)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("request_rate_per_s=many", "request_rate_per_s must be requests per second, such as 2.5"),
        ("request_rate_per_s=2&concurrency=4", "Requests come from clients or at a rate"),
        ("open_loop=maybe", "open_loop must be true or false"),
        ("open_loop=true", "must be left out without concurrency"),
    ],
)
def test_a_wrong_rate_has_its_sentence_beside_the_field(client: TestClient, query: str, words: str) -> None:
    page = client.get(f"{LOADED}&{query}")
    assert page.status_code == 422
    assert words in words_of(page.text)


def test_a_target_gives_goodput_and_a_wrong_one_a_sentence(client: TestClient) -> None:
    def words(target: str) -> str:
        return words_of(client.get(f"{LOADED}&concurrency=4&ttft_target_ms={target}").text)

    assert "of the requests keep it: a goodput of" in words("60000")
    assert "give seconds above 0" in words("-5")
    assert "keep it" not in words("soon")


def test_too_many_clients_are_bounded_and_simulated_on_request_alone(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_load, "_UNASKED_PLAIN", 10)
    monkeypatch.setattr(under_load, "_UNASKED_COMPILED", 10)
    page = client.get(f"{LOADED}&concurrency=4&requests_per_client=2").text
    assert "Not simulated. 4 clients with 2 requests each" in words_of(page)
    assert "What limits more clients" in words_of(page)
    asked = next(link for link in links_of(page) if "simulate=yes" in link)
    words = words_of(client.get(asked.partition("#")[0]).text)
    assert "4 clients, 2 requests each" in words
    assert "Not simulated" not in words


def test_compiled_a_page_waits_for_far_more_clients(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_load, "simulate", refused)
    crowd = f"{LOADED}&concurrency=200"
    for able, words in ((False, "take longer than a page"), (True, "it was asked for")):
        monkeypatch.setattr(under_load, "is_ready", lambda able=able: able)
        assert words in words_of(client.get(crowd).text)


def refused(*_: object, **__: object) -> None:
    raise InvalidRequest("requests", "it was asked for")


def links_of(page: str) -> list[str]:
    return [html.unescape(link) for link in re.findall('href="([^"]*)"', page)]


def test_pools_of_their_own_have_a_block_with_the_pool_that_binds(client: TestClient) -> None:
    assert "Prefill and decode apart" not in words_of(client.get(LOADED).text)
    page = client.get(f"{LOADED}&concurrency=64&prefill_replicas=1&decode_replicas=2&transfer_bytes_per_s=25e9").text
    words = words_of(page)
    for part in (
        "Prefill and decode apart",
        "of 3 devices 1 prefill and 2 decode",
        "sets the pace; both keep up alike at",
        "Admission",
        "are best divided",
    ):
        assert part in words, part
    assert 'name="transfer_bytes_per_s" value="2.5e+10"' in page or "2.5e+10" in page
    simulated = words_of(client.get(f"{LOADED}&concurrency=4&prefill_replicas=1&requests_per_client=2").text)
    assert "the prompt’s cache on its way" in simulated
    single = words_of(client.get(f"{LOADED}&prefill_replicas=1").text)
    assert "First token to second" in single
    assert "are best divided" not in single
    wrong = client.get(f"{LOADED}&prefill_replicas=1&transfer_bytes_per_s=fast")
    assert wrong.status_code == 422
    assert "transfer_bytes_per_s must be bytes per second, such as 50e9." in words_of(wrong.text)
