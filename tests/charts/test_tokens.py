"""Colour stands in one file, its sums hold, and what plotly is given is the same colour."""

import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from app.charts.theme import DARK, LIGHT, SANS, Theme

ROOT = Path(__file__).resolve().parents[2]
TOKENS = (ROOT / "static/tokens.css").read_text(encoding="utf-8")
PAIRS = dict(re.findall(r"--([\w-]+):\s*light-dark\((#[0-9a-f]{6}, #[0-9a-f]{6})\)", TOKENS))
GROUNDS = ("paper", "surface", "sunken", "raised", "hover")
SCHEMES = ("light", "dark")


def color(token: str, scheme: str) -> str:
    return PAIRS[token].split(", ")[SCHEMES.index(scheme)]


def linear(hex_color: str) -> np.ndarray:
    channels = np.array([int(hex_color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """WCAG 2: (lighter + 0.05) / (darker + 0.05) of the relative luminances."""
    low, high = sorted(float(linear(item) @ (0.2126, 0.7152, 0.0722)) for item in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_the_sums_are_those_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


TEXTS = [
    *((ink, ground) for ink in ("ink", "ink-2", "ink-3") for ground in GROUNDS),
    *((f"{phase}-ink", ground) for phase in ("prefill", "decode") for ground in ("paper", "surface", "hover", "sunken", f"{phase}-wash")),
    *((ink, f"{phase}-wash") for phase in ("prefill", "decode") for ink in ("ink", "ink-2")),
    *((word, ground) for word in ("improved", "regressed") for ground in ("paper", "surface", "raised", f"{word}-wash")),
    ("on-prefill", "prefill"),
    ("on-decode", "decode"),
]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_word_is_readable(scheme: str) -> None:
    weak = {(word, ground): sum_ for word, ground in TEXTS if (sum_ := contrast(color(word, scheme), color(ground, scheme))) < 4.5}
    assert not weak


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_mark_and_edge_is_seen(scheme: str) -> None:
    marks = [(mark, ground) for mark in ("prefill", "decode") for ground in ("paper", "surface", "track")]
    marks += [("rest", "surface"), ("rest", "paper"), *(("edge", ground) for ground in GROUNDS)]
    marks += [(f"g{group}", "surface") for group in range(1, 6)]
    weak = {pair: sum_ for pair in marks if (sum_ := contrast(color(pair[0], scheme), color(pair[1], scheme))) < 3}
    assert not weak


@pytest.mark.parametrize(
    ("one", "other", "scheme", "written"),
    [
        ("improved", "improved-wash", "light", 4.61),
        ("regressed", "regressed-wash", "dark", 5.53),
        ("on-prefill", "prefill", "light", 4.64),
        ("on-decode", "decode", "light", 5.16),
        ("prefill", "surface", "light", 3.83),
        ("decode", "surface", "light", 5.16),
        ("prefill", "track", "light", 3.15),
        ("decode", "track", "light", 4.23),
        ("edge", "sunken", "light", 3.27),
    ],
)
def test_the_figures_of_the_design_page_hold(one: str, other: str, scheme: str, written: float) -> None:
    assert contrast(color(one, scheme), color(other, scheme)) == pytest.approx(written, abs=0.005)


# Machado, Oliveira, Fernandes 2009, severity 1, on linear RGB.
VISION = {
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
TO_LMS = np.array(
    ((0.4122214708, 0.5363325363, 0.0514459929), (0.2119034982, 0.6806995451, 0.1073969566), (0.0883024619, 0.2817188376, 0.62997870))
)
TO_LAB = np.array(
    ((0.2104542553, 0.793617785, -0.0040720468), (1.9779984951, -2.428592205, 0.4505937099), (0.0259040371, 0.7827717662, -0.808675766))
)


def oklab(rgb: np.ndarray) -> np.ndarray:
    return TO_LAB @ np.cbrt(TO_LMS @ np.clip(rgb, 0, 1))


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_two_phases_stay_apart_for_every_eye(vision: str, scheme: str) -> None:
    seen = [oklab(np.array(VISION[vision]) @ linear(color(phase, scheme))) for phase in ("prefill", "decode")]
    assert float(np.linalg.norm(seen[0] - seen[1])) * 100 > 25.5


def test_charts_have_the_colours_of_the_tokens() -> None:
    for theme, scheme in ((LIGHT, "light"), (DARK, "dark")):
        for item in fields(Theme):
            if item.name not in ("name", "groups"):
                assert getattr(theme, item.name) == color(item.name.replace("_", "-"), scheme), item.name
        assert theme.groups == tuple(color(f"g{group}", scheme) for group in range(1, 6))


def test_charts_have_the_type_of_the_tokens() -> None:
    declared = re.search(r"--sans: ([^;]+);", TOKENS)
    assert declared is not None
    assert declared.group(1) == SANS


HEX = r"#(?:[0-9a-fA-F]{3,4}|[0-9a-fA-F]{6}|[0-9a-fA-F]{8})"
# In a stylesheet a colour stands in a declaration, elsewhere in quotes; "#431" in a sentence is a run.
COLORS = {
    ".css": re.compile(rf":[^;{{}}]*(?:{HEX}\b|\b(?:rgba?|hsla?|oklch|oklab)\()"),
    "": re.compile(rf"[\"'](?:{HEX}|(?:rgba?|hsla?)\([^\"']*)[\"']"),
}
MAY_NAME_COLOURS = {"static/tokens.css", "static/mark.svg", "app/charts/theme.py"}


def colours_in(name: str, text: str) -> list[str]:
    return [match.group() for match in COLORS.get(Path(name).suffix, COLORS[""]).finditer(text)]


def test_no_other_file_names_a_colour() -> None:
    sources = [*ROOT.glob("static/*"), *ROOT.glob("templates/**/*.html"), *ROOT.glob("app/**/*.py")]
    names = [path.relative_to(ROOT).as_posix() for path in sources if path.is_file()]
    found = {name: colours_in(name, (ROOT / name).read_text(encoding="utf-8")) for name in names if name not in MAY_NAME_COLOURS}
    assert "static/app.css" in names
    assert not {name: colours for name, colours in found.items() if colours}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("a.css", ".x { color: #fff; }"),
        ("a.css", "b { background: rgb(1 2 3 / .4) }"),
        ("a.py", 'INK = "#2c6bcb"'),
        ("a.html", "<path fill='#abc'>"),
    ],
)
def test_a_colour_is_recognised(name: str, line: str) -> None:
    assert colours_in(name, line)


@pytest.mark.parametrize(
    ("name", "line"), [("a.css", "#answer { color: var(--ink); }"), ("a.html", "run #431"), ("a.html", 'hx-target="#answer"')]
)
def test_a_name_is_no_colour(name: str, line: str) -> None:
    assert not colours_in(name, line)
