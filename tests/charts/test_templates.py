"""The building blocks of pages: whole HTML, no inline style or script, user words escaped, icons that exist."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from jinja2 import Environment

from app.charts import page_figure, svg
from app.domain.decomposition import decompose, explanation
from app.domain.distribution import spread_of
from app.domain.observed import RequestTimes
from app.domain.operating_points import Ceilings, roofline_of
from app.domain.run import Distribution
from app.pages.rendering import make_environment
from tests.made_up import H100, measured_run, operator_prediction, request_samples, textbook_prediction

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>'\""
VOID = {"input", "img", "br", "meta", "link", "hr"}
NBSP = "\u00a0"


TAG = re.compile(r'<(/?)([a-zA-Z][\w-]*)((?:\s+[\w:-]+(?:="[^"]*")?)*)\s*(/?)>')
ATTRIBUTE = re.compile(r'([\w:-]+)(?:="([^"]*)")?')


class Page:
    """The elements of a piece of HTML; fails where a "<" opens none, a value stands unquoted, or tags do not pair up."""

    def __init__(self, text: str) -> None:
        self.found: list[tuple[str, dict[str, str]]] = []
        unclosed: list[str] = []
        assert text.count("<") == len(TAG.findall(text))
        for closing, name, attributes, empty in TAG.findall(text):
            if closing:
                assert unclosed.pop() == name
                continue
            self.found.append((name, dict(ATTRIBUTE.findall(attributes))))
            if not empty and name not in VOID:
                unclosed.append(name)
        assert unclosed == []

    def of(self, name: str) -> list[dict[str, str]]:
        return [attributes for found, attributes in self.found if found == name]


@pytest.fixture(scope="module")
def environment() -> Environment:
    return make_environment()


def drawn(environment: Environment, source: str, **values: Any) -> str:
    macros = {name: environment.get_template(f"parts/{name}.html").make_module({"root": "/base"}) for name in ("ui", "bars")}
    return environment.from_string(source).render(root="/base", **macros, **values)


FULL = operator_prediction()
MEASURED = decompose(FULL, measured_run(), H100)
OVER = decompose(FULL, measured_run(ttft_s=Distribution(mean=0.02)))
POINTS = roofline_of(FULL, Ceilings("x", "bf16", 9.89e14, 3.35e12, 4.2e14, 3.35e12), measured_run())
SPREAD = spread_of(measured_run(), "ttft_s", request_samples(np.linspace(0.09, 0.13, 200)))

BLOCKS: dict[str, tuple[str, dict[str, Any]]] = {
    "icon": ('{{ ui.icon("check") }}', {}),
    "verdicts": (
        '{% for kind in ("improved", "regressed", "unchanged", "insufficient data", "not comparable", "never", "baseline") %}'
        '{{ ui.verdict(kind, "prefill") }}{% endfor %}',
        {},
    ),
    "facts": (
        '{{ ui.key("prefill") }}{{ ui.badge(text, "memory") }}{{ ui.bound("compute") }}{{ ui.tag(text, "/x") }}{{ ui.chip(text, "/x") }}',
        {},
    ),
    "tile": ('<dl>{{ ui.tile(text, "76.2\u00a0ms", text, "prefill", true) }}{{ ui.tile("Queue", "not known", "no") }}</dl>', {}),
    "callout": ('{{ ui.callout(text, text, "bad") }}{% call ui.callout(text) %}<a href="/x">x</a>{% endcall %}', {}),
    "twin": ("{% call ui.twin() %}<table></table>{% endcall %}", {}),
    "legend": ("{{ ui.legend() }}", {}),
    "code": ("{{ ui.code(text) }}", {}),
    "chart": ('{{ ui.chart("roofline", figure, text) }}', {"figure": page_figure("roofline", POINTS)}),
    "roofline table": ("{{ ui.roofline_table(points) }}", {"points": POINTS.points}),
    "spread table": ("{{ ui.spread_table(spread) }}", {"spread": SPREAD}),
    "delta": ('<dl>{{ ui.delta_row(text, 1.5, 1.58) }}{{ ui.delta_row("Decode", 1.0, 1.0, "decode") }}</dl>', {}),
    "form": (
        '{{ ui.field("a", text, text, text, text, "s") }}{{ ui.select("b", text, [(text, text)], text, text) }}'
        '{{ ui.empty(text, text) }}{{ ui.pager("/a", "/b", text) }}',
        {},
    ),
    "phase lines": (
        "{{ bars.phase_line(times) }}{{ bars.cell(times) }}{{ bars.split(times) }}"
        '{{ bars.share(0.5, "decode") }}{{ bars.before_after(times, times) }}',
        {"times": textbook_prediction()},
    ),
    "decomposition": (
        "{{ bars.request(found) }}{{ bars.half(found.prefill, text, explanation(found.prefill)) }}"
        '{{ bars.half(found.decode, "x") }}{{ bars.blocks_table(found) }}',
        {"found": MEASURED, "explanation": explanation},
    ),
    "over-predicted": ('{{ bars.half(found.prefill, "x") }}{{ bars.blocks_table(found) }}', {"found": OVER}),
    "waterfall": (
        "{{ bars.waterfall(rows, text, text) }}",
        {"rows": svg.waterfall(RequestTimes(0.1, 0.01, 9.0), (svg.Step(HOSTILE, HOSTILE, 0.1, "prefill"),), RequestTimes(0.2, 0.01, 9.0))},
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_whole_html_without_style_or_script(environment: Environment, name: str) -> None:
    source, values = BLOCKS[name]
    html = drawn(environment, source, text=HOSTILE, **values)
    page = Page(html)
    assert page.found
    for tag, attributes in page.found:
        assert "style" not in attributes
        assert not any(key.startswith(("on", "hx-on")) for key in attributes)
        assert tag != "img"
        if tag == "script":
            assert attributes == {"type": "application/json"}
    assert "<script>alert" not in html


def test_every_drawing_is_well_formed_svg(environment: Environment) -> None:
    for name in ("phase lines", "decomposition", "over-predicted", "waterfall"):
        source, values = BLOCKS[name]
        drawings = re.findall(r"<svg class=\"(?!icon).*?</svg>", drawn(environment, source, text="x", **values), re.DOTALL)
        assert drawings
        for text in drawings:
            for rect in ElementTree.fromstring(text).iter("rect"):
                assert float(rect.attrib["width"].rstrip("%")) >= 0


def test_the_figure_in_a_page_reads_back(environment: Environment) -> None:
    source, values = BLOCKS["chart"]
    html = drawn(environment, source, text="a finding", **values)
    found = re.search(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    assert json.loads(found.group(1)) == values["figure"]
    assert 'role="img" aria-label="a finding"' in html


def test_a_tile_puts_the_unit_apart(environment: Environment) -> None:
    html = drawn(environment, *BLOCKS["tile"][:1], text="TTFT")
    assert '76.2<span class="unit"> ms</span>' in html
    assert '<span class="quiet">not known</span>' in html


def test_the_table_of_a_decomposition_adds_up(environment: Environment) -> None:
    """The cells of the column "Per request" sum to the two rows of the halves, to their last decimal."""
    html = drawn(environment, "{{ bars.blocks_table(found) }}", found=MEASURED)
    cells = [float(text.replace(",", "").replace("−", "-")) for text in re.findall(rf'<td class="n">([^<]*?){NBSP}ms</td>', html)]
    totals = [float(text.replace(",", "")) for text in re.findall(rf'<th scope="row" class="n">([^<]*?){NBSP}ms</th>', html)]
    assert sum(cells[1::2]) == pytest.approx(sum(totals[1::2]), abs=0.1 * len(cells))


def test_a_change_has_a_direction_and_no_change_is_the_same(environment: Environment) -> None:
    html = drawn(environment, *BLOCKS["delta"][:1], text="Total").replace(NBSP, " ")
    assert "<dd>1.50 s → 1.58 s</dd><dd>+5.3 %</dd>" in html
    assert '<dd class="same">1.00 s</dd><dd class="same">same</dd>' in html


def test_every_icon_that_is_named_exists() -> None:
    sprite = (ROOT / "static/icons.svg").read_text(encoding="utf-8")
    shipped = set(re.findall(r'<symbol id="i-([\w-]+)"', sprite))
    named = set()
    for path in (ROOT / "templates").rglob("*.html"):
        named |= set(re.findall(r'\bicon\("([\w-]+)"\)', path.read_text(encoding="utf-8")))
    assert named
    assert named <= shipped


def test_the_shell_shows_only_pages_that_exist(environment: Environment) -> None:
    macros = {name: environment.get_template(f"parts/{name}.html").make_module({"root": "/base"}) for name in ("ui", "bars")}
    html = environment.get_template("base.html").render(root="/base", path="/runs/12", **macros)
    page = Page(html.replace("<!doctype html>", ""))
    links = [link["href"] for link in page.of("a")]
    assert "/base/runs" in links
    assert "#" not in links
    assert html.count('aria-current="page"') == 2  # in the bar and in the menu
    for script in page.of("script"):
        assert (script.get("src") or "").startswith("/base/static/")
