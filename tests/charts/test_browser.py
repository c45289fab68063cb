"""Charts in Chromium under the strict policy: drawn, redrawn in the other theme, swapped in by htmx, and not one console message."""

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jinja2 import Environment

from app.charts import page_figure
from app.charts.decomposition import NamedDecomposition
from app.charts.theme import DARK, LIGHT
from app.domain.decomposition import decompose
from app.domain.distribution import spread_of
from app.domain.operating_points import Ceilings, roofline_of
from app.pages.rendering import make_environment
from app.security.headers import CONTENT_SECURITY_POLICY
from tests.made_up import H100, measured_run, operator_prediction, request_samples

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = '<a href="https://evil.example" target="_top">x</a><b style="color:red">%{x}</b>'
PAGE = """{% extends "base.html" %}{% block title %}Charts{% endblock %}{% block main %}
<form hx-get="/part" hx-target="#out" hx-swap="outerHTML" hx-trigger="submit" action="/part"><button id="go">Go</button></form>
<div id="out">{{ ui.chart("roofline", roofline, "first") }}</div>
{% for name, figure in more %}{{ ui.chart(name, figure, "more") }}{% endfor %}
{{ ui.code("curl --version") }}{% endblock %}"""
PART = '<div id="out">{{ ui.chart("roofline", roofline, "second") }}</div>'
RGB = "rgb({}, {}, {})"


def rgb(color: str) -> str:
    return RGB.format(*(int(color[at : at + 2], 16) for at in (1, 3, 5)))


def answers(environment: Environment) -> dict[str, str]:
    full, run = operator_prediction(), measured_run()
    spread = spread_of(run, "ttft_s", request_samples(np.linspace(0.09, 0.13, 300)))
    rows = (NamedDecomposition(HOSTILE, decompose(full, run, H100)), NamedDecomposition("B", decompose(full)))
    values: dict[str, Any] = {
        "roofline": page_figure("roofline", roofline_of(full, Ceilings("x", "bf16", 9.89e14, 3.35e12, 4.2e14, 3.35e12), run)),
        "more": [
            ("decomposition", page_figure("decomposition", decompose(full, run, H100))),
            ("decompositions", page_figure("decompositions", rows)),
            ("distribution", page_figure("distribution", spread)),
        ],
    }
    macros = {name: environment.get_template(f"parts/{name}.html").make_module({"root": ""}) for name in ("ui", "bars")}
    texts = {"/": PAGE, "/part": PART}
    return {path: environment.from_string(text).render(root="", path=path, **macros, **values) for path, text in texts.items()}


class Pages(http.server.SimpleHTTPRequestHandler):
    """Two pages and the static files, every answer with the policy."""

    def __init__(self, *args: Any, pages: dict[str, str], **kwargs: Any) -> None:
        self.pages = pages
        super().__init__(*args, directory=str(ROOT), **kwargs)

    def do_GET(self) -> None:
        text = self.pages.get(self.path.split("?")[0])
        if text is None:
            super().do_GET()
            return
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        self.send_header("content-security-policy", CONTENT_SECURITY_POLICY)
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Tests print nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Pages, pages=answers(make_environment())))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def until(page: Any, condition: str) -> None:
    """Wait for a condition. The page's policy forbids the way in which playwright would poll for it."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"not within ten seconds: {condition}")


def opened(chromium: Any, address: str, width: int = 1200, scheme: str = "light") -> tuple[Any, list[str]]:
    page = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(address)
    until(page, "[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))")
    return page, said


LINE = "getComputedStyle(document.querySelectorAll('#out .plot path.js-line')[3]).stroke"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1440])
def test_charts_are_drawn_without_a_console_message(chromium: Any, address: str, width: int, scheme: str) -> None:
    page, said = opened(chromium, address, width, scheme)
    heights = page.evaluate("[...document.querySelectorAll('[data-chart=roofline] .main-svg')].map((svg) => svg.clientHeight)")
    assert set(heights) == {260 if width == 400 else 330}
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.querySelectorAll('.plot a').length") == 0
    page.close()
    assert said == []


def test_the_theme_redraws_and_a_swap_draws_anew(chromium: Any, address: str) -> None:
    page, said = opened(chromium, address)
    light = page.evaluate(LINE)
    page.click("[data-theme-toggle]")
    until(page, f"{LINE} !== '{light}'")
    assert {light, page.evaluate(LINE)} <= {rgb(theme.mark(hue)) for theme in (LIGHT, DARK) for hue in ("prefill", "decode")} | {
        rgb(LIGHT.ink_3),
        rgb(DARK.ink_3),
    }
    page.click("#go")
    page.wait_for_selector("#out .plot[aria-label=second] .main-svg")
    page.close()
    assert said == []


def test_a_point_tells_what_it_is(chromium: Any, address: str) -> None:
    page, said = opened(chromium, address)
    box = page.locator("#out .plot .points path.point").last.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_selector("#out .hoverlayer .hovertext")
    assert "measured, mean of 59,800" in page.text_content("#out .hoverlayer")
    titles = page.evaluate("[...document.querySelectorAll('#out .modebar-btn')].map((button) => button.dataset.title)")
    assert len(titles) == 4
    assert not any("cloud" in title.lower() or "upload" in title.lower() for title in titles)
    page.close()
    assert said == []
