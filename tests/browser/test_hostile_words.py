"""Words of strangers stay words: about forty payloads in every text that a file or a person can bring, on every page that shows it."""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.browser.hostile import CENSUS, LINES, PAYLOADS
from tests.browser.window import Site, Window
from tests.result_files import data_of, served_in_detail

# One worker makes the hostile runs once and has all these tests, where tests are dealt out by groups.
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("hostile")]

# Runs that one comparison page holds.
_SIDES = 8
_STEP = len(LINES)


@dataclass(frozen=True)
class Hostile:
    """What was stored: for each line of payloads a device, a model, a run that nobody can price and one priced by those two."""

    devices: tuple[str, ...]
    models: tuple[str, ...]
    runs: tuple[int, ...]
    priced: tuple[int, ...]


@pytest.fixture(scope="session")
def hostile(server: Site) -> Hostile:
    """Each payload in each field of real uploads, and in the name of a device and of a model that a run is priced by."""
    figures: dict[str, Any] = {"bandwidth_bytes_per_s": 1e12, "peak_flops_per_s": {"bf16": 1e14}}
    devices, models, runs, priced = [], [], [], []
    for number, line in enumerate(LINES):
        name = f"{number} {line}"
        devices.append(server.create("hardware", name=name, vendor=line, notes=line, link_name=line, **figures))
        models.append(server.create("models", name=name, clone_of="llama-3-1-8b", aliases=[f"alias {line}"]))
        words = {"label": line, "tags": f"hostile,{','.join(PAYLOADS[number::_STEP])}", "notes": line, "engine": line, "project": line}
        for model, hardware, stored in ((line, line, runs), (models[-1], devices[-1], priced)):
            report = served_in_detail(model_id=model, backend=line, tokenizer_id=line, **{line: line, f"key {line}": [line]})
            fields = {**words, "hardware": hardware, "devices": "1", "tp": "1", "weight_dtype": "bf16"}
            stored.append(server.add_run(data_of(report), f"{line}.json", **fields))
    return Hostile(tuple(devices), tuple(models), tuple(runs), tuple(priced))


def quiet(window: Window, address: str) -> None:
    """Nothing of the words came to life there: no mark, no element, no link. The window hears the rest."""
    window.size(400, 300).page.goto(address, wait_until="domcontentloaded")
    assert window.page.evaluate(CENSUS) == [], address


def test_lists_and_choices_show_the_words_and_nothing_else(window: Window, hostile: Hostile) -> None:
    for address in ("/", "/predict", "/runs?tag=hostile", "/runs/new", "/compare", "/hardware", "/models", "/hardware/new", "/models/new"):
        quiet(window, address)
    shown = " ".join(window.go("/runs?tag=hostile").page.locator("table.runs").text_content().split())
    missing = [payload for payload in PAYLOADS if payload not in shown]
    assert len(missing) == 1, "as they were written, but for the one with white space and marks that no line can hold"


def test_the_page_of_each_run_shows_the_words_and_nothing_else(window: Window, hostile: Hostile) -> None:
    for number in hostile.runs:
        quiet(window, f"/runs/{number}")


def test_charts_show_the_words_and_nothing_else(window: Window, hostile: Hostile) -> None:
    """Runs priced by a model and a device of these names, once roofline and distributions are drawn."""
    for number in hostile.priced:
        quiet(window, f"/runs/{number}")
        assert window.drawn().count() >= 2
        assert window.page.evaluate(CENSUS) == [], number
    assert window.page.locator("figure[data-chart='roofline']").count() == 1


def test_forms_and_comparisons_show_the_words_and_nothing_else(window: Window, hostile: Hostile) -> None:
    for number in hostile.runs:
        quiet(window, f"/runs/{number}/edit")
    for runs in (hostile.runs, hostile.priced):
        for start in range(0, len(runs), _SIDES):
            base, *others = runs[start : start + _SIDES]
            quiet(window, f"/compare?all=1&base={base}" + "".join(f"&other={other}" for other in others))


def test_the_pages_of_devices_and_models_show_the_words_and_nothing_else(window: Window, hostile: Hostile) -> None:
    for device, model in zip(hostile.devices, hostile.models, strict=True):
        quiet(window, f"/hardware/{device}")
        quiet(window, f"/models/{model}")
    for device, model in list(zip(hostile.devices, hostile.models, strict=True))[::4]:
        quiet(window, f"/hardware/{device}/edit")
        quiet(window, f"/models/{model}/edit")
        quiet(window, f"/hardware/new?clone_of={device}")
        quiet(window, f"/predict?model={model}&hardware={device}&calibration=default")
        window.drawn()
        assert window.page.evaluate(CENSUS) == []


def test_words_in_an_address_are_words_too(window: Window) -> None:
    window.allow("the server responded with a status of 4")
    keys = ("/?model", "/predict?hardware", "/predict?prompt_tokens", "/hardware?q", "/models?q", "/compare?base", "/runs?sort")
    for number, line in enumerate(LINES):
        for key in (keys[number % len(keys)], keys[(number + 3) % len(keys)]):
            quiet(window, f"{key}={quote(line)}")
        quiet(window, f"/runs?{urlencode({'q': line, 'tag': line, 'model': line, 'since': line})}")


def test_what_a_refusal_quotes_is_words_too(window: Window) -> None:
    window.allow("the server responded with a status of 422")
    window.go("/runs/new")
    names = [f"{payload.replace('/', '_')}.json" for payload in PAYLOADS]
    window.choose(*({"name": name, "mimeType": "application/json", "buffer": json.dumps({"model_id": name}).encode()} for name in names))
    window.page.locator('textarea[name="pasted"]').fill(PAYLOADS[24])
    window.page.get_by_role("button", name="Read and store").click()
    window.sees("was refused.")
    assert window.page.evaluate(CENSUS) == []
    assert window.page.locator("#outcome .callout.bad").count() == len(PAYLOADS) + 1


def test_an_uploaded_page_is_handed_back_as_bytes_only(window: Window, hostile: Hostile) -> None:
    answer = window.context.request.get(f"/api/v1/runs/{hostile.runs[0]}/original")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
