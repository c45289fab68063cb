"""What the browser is given: vendored files as they were fetched, scripts that keep the policy."""

import hashlib
import re
from pathlib import Path

import pytest

STATIC = Path(__file__).resolve().parents[2] / "static"
VERSIONS = (STATIC / "vendor/VERSIONS").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", [line for line in VERSIONS if re.match(r"[0-9a-f]{64}  ", line)])
def test_a_vendored_file_is_unchanged(line: str) -> None:
    """scripts/vendor wrote the sums beside the files; a hand that edits one must fetch it anew."""
    digest, name = line.split("  ")
    assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == digest


def test_every_vendored_file_has_its_sum_and_its_licence() -> None:
    summed = {line.split("  ")[1] for line in VERSIONS if "  " in line}
    there = {f"vendor/{path.name}" for path in (STATIC / "vendor").iterdir()} - {"vendor/VERSIONS"}
    assert there == summed - {"icons.svg"}
    assert {"vendor/LICENSE.htmx", "vendor/LICENSE.plotly", "vendor/LICENSE.lucide"} <= there


def test_the_pinned_versions_are_those_the_design_names() -> None:
    assert any(re.fullmatch(r"htmx\.org 4\.0\.\d+", line) for line in VERSIONS)
    assert any(re.fullmatch(r"plotly\.js-cartesian-dist-min 4\.1\.\d+", line) for line in VERSIONS)


def test_plotly_s_own_rules_are_shipped_for_the_link_that_replaces_them() -> None:
    rules = (STATIC / "vendor/plotly.css").read_text(encoding="utf-8")
    script = (STATIC / "vendor/plotly-cartesian.min.js").read_text(encoding="utf-8")
    start = script.index('{"X,X div":')
    written = len(re.findall(r"(?:[\"']|\bY):[\"']", script[start : script.index("};", start)]))
    assert rules.count("{") == written
    assert ".js-plotly-plot .plotly .modebar {" in rules
    # plotly puts each rule before the others, so the first it names comes last
    assert rules.rstrip().splitlines()[-1].startswith(".js-plotly-plot .plotly,.js-plotly-plot .plotly div {")


@pytest.mark.parametrize("name", ["app.js", "theme.js"])
def test_our_scripts_keep_the_policy(name: str) -> None:
    text = (STATIC / name).read_text(encoding="utf-8")
    for word in ("eval(", "new Function", "innerHTML", "insertAdjacentHTML", ".style.", 'setAttribute("style"', "document.write", "http"):
        assert word not in text, word


def test_charts_never_offer_to_send_data_away() -> None:
    text = (STATIC / "app.js").read_text(encoding="utf-8")
    for setting in ("displaylogo: false", "showSendToCloud: false", 'plotlyServerURL: ""'):
        assert setting in text


def test_every_token_that_is_used_is_defined() -> None:
    tokens = set(re.findall(r"(--[\w-]+):", (STATIC / "tokens.css").read_text(encoding="utf-8")))
    used = set(re.findall(r"var\((--[\w-]+)", (STATIC / "app.css").read_text(encoding="utf-8")))
    assert used <= tokens


def test_stylesheets_load_nothing_from_elsewhere() -> None:
    for name in ("tokens.css", "app.css", "vendor/plotly.css"):
        text = (STATIC / name).read_text(encoding="utf-8")
        assert "@import" not in text
        assert all(address.startswith("data:") for address in re.findall(r"url\([\"']?([^\"')]+)", text))
