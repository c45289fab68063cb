"""Every page answers, is sound HTML and leads nowhere dead; every error is a page that says what to do."""

from collections import deque
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from fastapi.testclient import TestClient

from tests.applications import BASE_URL
from tests.pages import markup
from tests.pages.conftest import Site, words_of

FOLLOWED = frozenset({"new", "h100-sxm5-80gb", "textbook-h100", "llama-3-1-8b", "textbook-8b"})


def test_every_page_answers_with_sound_html(site: Site) -> None:
    wrong = {}
    for address in site.addresses:
        answer = site.client.get(address)
        found = markup.faults(answer.text)
        if answer.status_code != 200 or found:
            wrong[address] = (answer.status_code, found)
    assert wrong == {}


def test_every_page_names_itself_and_its_place(site: Site) -> None:
    titles = {}
    for address in site.addresses:
        html = site.client.get(address).text
        page = markup.read(html)
        titles[address] = page.all("title")[0].words
        current = [link.words for link in page.all("a") if "aria-current" in link.attributes and link.within("nav")]
        section = urlsplit(address).path.split("/")[1]
        assert current == ([section.capitalize()] if section else []), address
    assert all(title.endswith("· Phaseline") for title in titles.values())
    assert titles["/runs"] != titles["/"] != titles["/predict"]


def test_a_page_is_never_kept_and_may_load_nothing_from_elsewhere(site: Site) -> None:
    for address in site.addresses:
        headers = site.client.get(address).headers
        assert headers["cache-control"] == "no-store"
        assert headers["vary"] == "HX-Request-Type"
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]


def test_no_link_is_dead_and_every_anchor_is_there(site: Site) -> None:
    """Follows the links of every page from the first on: of the catalog's many like pages a few are followed and the others looked up,
    of addresses that differ in the values of their query alone, one.
    """
    slugs = {kind: _slugs(site.client, kind) for kind in ("hardware", "models")}
    followed: dict[str, markup.Page] = {}
    anchors: set[tuple[str, str]] = set()
    dead = []
    waiting = deque(site.addresses)
    seen: set[str | tuple[str, ...]] = set(site.addresses)
    while waiting:
        address = waiting.popleft()
        answer = site.client.get(address, follow_redirects=False)
        if answer.status_code != 200:
            dead.append((address, answer.status_code))
        if not answer.headers.get("content-type", "").startswith("text/html"):
            continue
        page = followed[urlsplit(address).path] = markup.read(answer.text)
        for link in page.links():
            target = urlsplit(urljoin(f"{BASE_URL}{address}", link))
            assert f"{target.scheme}://{target.netloc}" == BASE_URL, (address, link)
            anchors |= {(target.path, target.fragment)} if target.fragment else set()
            following = target._replace(scheme="", netloc="", fragment="").geturl()
            like = (target.path, *sorted(parse_qs(target.query)))
            if following not in seen and like not in seen:
                seen |= {following, like}
                if not _looked_up(following, slugs, dead):
                    waiting.append(following)
    assert dead == []
    assert len(followed) >= 20
    assert [(path, name) for path, name in anchors if path in followed and name not in followed[path].ids] == []
    assert ("/glossary", "ttft_s") in anchors


def test_every_column_sorts_both_ways_and_says_so(site: Site) -> None:
    heads = markup.read(site.client.get("/runs").text)
    links = [link.attributes["href"] for link in heads.all("a") if link.within("thead")]
    assert len(links) == 11
    for link in links:
        sorted_page = markup.read(site.client.get(link).text)
        (head,) = [cell for cell in sorted_page.all("th") if "aria-sort" in cell.attributes]
        again = next(element for element in sorted_page.all("a") if head in element.ancestors).attributes["href"]
        turned = markup.read(site.client.get(again).text)
        (other,) = [cell for cell in turned.all("th") if "aria-sort" in cell.attributes]
        assert {head.attributes["aria-sort"], other.attributes["aria-sort"]} == {"ascending", "descending"}, link


def _slugs(client: TestClient, kind: str) -> set[str]:
    return {item["slug"] for item in client.get(f"/api/v1/{kind}", params={"limit": 500}).json()["items"]}


def _looked_up(address: str, slugs: dict[str, set[str]], dead: list[tuple[str, int]]) -> bool:
    """True for a page of a device or model that is not followed; it must be one that exists."""
    kind, _, slug = address.strip("/").partition("/")
    if kind not in slugs or not slug or slug.split("/")[0].split("?")[0] in FOLLOWED:
        return False
    if slug not in slugs[kind]:
        dead.append((address, 404))
    return True


@pytest.mark.parametrize(
    ("method", "address", "status", "words"),
    [
        ("GET", "/nothing-here", 404, "There is nothing at this address."),
        ("GET", "/runs/999999", 404, "There is no run 999999"),
        ("GET", "/runs/999999/edit", 404, "There is no run 999999"),
        ("POST", "/runs/999999/delete", 404, "There is no run 999999"),
        ("GET", "/runs/abc", 422, "run_id"),
        ("GET", "/runs/0", 422, "run_id"),
        ("GET", "/runs/99999999999999999999999", 422, "run_id"),
        ("GET", "/hardware/nothing-here", 404, "nothing-here"),
        ("GET", "/hardware/nothing-here/edit", 404, "nothing-here"),
        ("GET", "/hardware/new?clone_of=nothing-here", 404, "nothing-here"),
        ("POST", "/hardware/nothing-here/delete", 404, "nothing-here"),
        ("POST", "/hardware/h100-sxm5-80gb/delete", 409, "clone it and change the copy"),
        ("GET", "/models/nothing-here", 404, "nothing-here"),
        ("GET", "/models/nothing-here/edit", 404, "nothing-here"),
        ("GET", "/models/new?clone_of=nothing-here", 404, "nothing-here"),
        ("POST", "/models/llama-3-1-8b/delete", 409, "clone it and change the copy"),
        ("POST", "/", 405, "does not take that method"),
        ("DELETE", "/runs/1", 405, "does not take that method"),
    ],
)
def test_an_error_is_a_page_that_says_what_to_do(site: Site, method: str, address: str, status: int, words: str) -> None:
    answer = site.client.request(method, address)
    assert answer.status_code == status
    assert markup.faults(answer.text) == []
    shown = words_of(answer.text)
    assert words in shown
    assert "Traceback" not in shown
    page = markup.read(answer.text)
    assert {"/", "/runs"} <= set(page.links()), "a way on"


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/predict?tp=3&model=llama-3-1-8b&hardware=h100-sxm5-80gb&calibration=default", "tp is 3"),
        ("/predict?prompt_tokens=many", "prompt_tokens must be a whole number from 1 to 10,000,000."),
        ("/?output_tokens=-4", "output_tokens must be a whole number from 1 to 10,000,000."),
        ("/?prompt_tokens=0", "prompt_tokens"),
        ("/?model=nobody-knows-it", "nobody-knows-it"),
        ("/?hardware=nobody-knows-it", "nobody-knows-it"),
        ("/predict?weight_dtype=fp99", "fp99"),
        ("/predict?engine=nobody-knows-it", "nobody-knows-it"),
        ("/predict?calibration=guess", "calibration"),
        ("/runs?sort=colour", "Runs cannot be sorted by"),
        ("/runs?cursor=broken", "The cursor does not belong to this list"),
        ("/runs?since=yesterday", "is no date: write 2026-11-28."),
        ("/compare?base=1&other=1", "two different runs"),
        ("/compare?base=1&other=999999", "There is no run 999999"),
        ("/compare?base=one&other=2", "name a run by its number"),
        ("/compare?run=1&run=2&run=3&run=4&run=5&run=6&run=7&run=8&run=9", "9 runs are too many for one page: 8 at most."),
    ],
)
def test_a_question_that_cannot_be_answered_is_said_on_its_page(site: Site, address: str, words: str) -> None:
    answer = site.client.get(address)
    assert answer.status_code == 422
    assert markup.faults(answer.text) == []
    assert words in words_of(answer.text)
    current = [link.words for link in markup.read(answer.text).all("a") if "aria-current" in link.attributes]
    assert current, "it is the page itself, not the page of errors"


def test_a_wrong_field_is_marked_and_its_message_belongs_to_it(site: Site) -> None:
    page = markup.read(site.client.get("/predict?prompt_tokens=many").text)
    (wrong,) = [element for element in page.all("input", "select") if element.attributes.get("aria-invalid") == "true"]
    assert wrong.attributes["name"] == "prompt_tokens"
    assert wrong.attributes["value"] == "many"
    (message,) = [element for element in page.elements if element.attributes.get("id") == wrong.attributes["aria-describedby"]]
    assert message.words == "prompt_tokens must be a whole number from 1 to 10,000,000."


def test_the_first_visit_has_the_founding_case_and_says_where_runs_come_from(client: TestClient) -> None:
    shown = words_of(client.get("/").text)
    assert "76.2 ms" in shown
    assert "No run is stored yet" in shown
    assert "A comparison needs two runs" in words_of(client.get("/compare").text)
    empty = client.get("/runs")
    assert markup.faults(empty.text) == []
    assert "No run is stored yet" in words_of(empty.text)
