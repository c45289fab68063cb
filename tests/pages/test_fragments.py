"""A page and its fragment share one address: htmx gets exactly the block that changes, everybody else the whole page."""

import pytest
from fastapi.testclient import TestClient

from tests.applications import served_from
from tests.pages import markup
from tests.pages.conftest import PARTIAL, Site

BLOCKS = [
    ("/", "answer"),
    ("/?prompt_tokens=4000&weight_dtype=int4", "answer"),
    ("/predict?batch=32", "answer"),
    ("/runs?q=bf16", "results"),
    ("/runs?q=nothing-is-called-so", "results"),
    ("/hardware?q=h100", "results"),
    ("/models?q=llama", "results"),
]


@pytest.mark.parametrize(("address", "block"), BLOCKS)
def test_htmx_gets_the_block_as_it_stands_in_the_page(site: Site, address: str, block: str) -> None:
    whole, part = site.client.get(address), site.client.get(address, headers=PARTIAL)
    assert part.status_code == 200
    assert part.headers["vary"] == "HX-Request-Type"
    assert part.text.strip() in whole.text
    first, *rest = markup.read(part.text).elements
    assert first.attributes["id"] == block
    assert all(first in element.ancestors for element in rest), "one element, with everything inside it"
    assert markup.read(part.text).nesting_faults == ()


@pytest.mark.parametrize(("address", "block"), BLOCKS)
def test_the_form_of_the_page_aims_at_the_block(site: Site, address: str, block: str) -> None:
    page = markup.read(site.client.get(address).text)
    (form,) = [element for element in page.all("form") if element.attributes.get("hx-target") == f"#{block}"]
    assert form.attributes["hx-swap"] == "outerHTML"
    assert form.attributes["hx-get"] == form.attributes["action"] == address.split("?")[0]
    assert form.attributes["method"] == "get"
    assert any(element.attributes.get("type") == "submit" and form in element.ancestors for element in page.all("button")), (
        "without scripts"
    )


@pytest.mark.parametrize("headers", [{"HX-Request": "true"}, {"HX-Request": "true", "HX-Request-Type": "full"}, {}])
def test_back_and_reload_get_the_whole_page(site: Site, headers: dict[str, str]) -> None:
    for address, _ in BLOCKS:
        assert site.client.get(address, headers=headers).text.lstrip().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("path", "query", "kept"),
    [
        ("/", "hardware=textbook-h100&model=textbook-8b&weight_dtype=bf16&prompt_tokens=2,000&output_tokens=300&batch=1", ""),
        ("/", "prompt_tokens=4,000&output_tokens=300&batch=1", "?prompt_tokens=4000"),
        ("/predict", "concurrency=&engine=&tp=2&calibration=textbook", "?tp=2"),
        ("/predict", "model=llama-3-1-8b&calibration=default", "?model=llama-3-1-8b&calibration=default"),
    ],
)
def test_the_address_follows_without_the_defaults(site: Site, path: str, query: str, kept: str) -> None:
    assert site.client.get(f"{path}?{query}", headers=PARTIAL).headers["HX-Replace-Url"] == path + kept
    assert "HX-Replace-Url" not in site.client.get(f"{path}?{query}").headers, "a whole page keeps the address it was asked by"


def test_a_question_that_cannot_be_priced_leaves_the_address_alone(site: Site) -> None:
    """Half-typed is not wrong: the fragment says what is missing, and no error stands in the console."""
    answer = site.client.get("/?prompt_tokens=many", headers=PARTIAL)
    assert answer.status_code == 200
    assert "HX-Replace-Url" not in answer.headers
    assert markup.read(answer.text).elements[0].attributes["id"] == "answer"
    assert "This cannot be priced." in answer.text


def test_an_address_below_a_prefix_keeps_the_prefix(tmp_path_factory: pytest.TempPathFactory) -> None:
    with served_from(tmp_path_factory.mktemp("prefixed"), root_path="/lab") as client:
        page = markup.read(client.get("/lab/predict").text)
        inside = [link for link in page.links() if not link.startswith("#")]
        assert [link for link in inside if not link.startswith("/lab/")] == []
        assert client.get("/lab/predict?tp=2", headers=PARTIAL).headers["HX-Replace-Url"] == "/lab/predict?tp=2"
        for link in inside:
            assert client.get(link).status_code == 200, link
        answer = client.post("/lab/runs/samples", follow_redirects=False)
        assert answer.headers["location"].startswith("/lab/compare?base=")
        assert client.get(answer.headers["location"]).status_code == 200


def test_the_two_requests_of_one_address_are_kept_apart_by_caches(client: TestClient) -> None:
    assert client.get("/predict").headers["vary"] == client.get("/predict", headers=PARTIAL).headers["vary"] == "HX-Request-Type"
