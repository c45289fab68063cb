"""Words of a user or a file come into a figure as plain text."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.charts.text import label, lines
from app.charts.theme import MARK


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("bf16 control", "bf16 control"),
        (
            '<a href="https://evil.example" target="_top">x</a>',
            "&lt;a href=&quot;https://evil.example&quot; target=&quot;_top&quot;&gt;x&lt;/a&gt;",
        ),
        ("<b>bold</b>", "&lt;b&gt;bold&lt;/b&gt;"),
        ("%{customdata[0]}", "{customdata[0]}"),
        ("%%{x}", "{x}"),
        ("100 %", "100 %"),
        ("two\nlines", "two lines"),
    ],
)
def test_label(words: str, text: str) -> None:
    assert label(words) == text


def test_a_long_name_is_cut() -> None:
    assert len(label("x" * 500)) == 80
    assert label("x" * 500).endswith("…")


@given(st.text() | st.text(alphabet="%{}<>&'\"ab"))
def test_nothing_is_left_to_interpret(words: str) -> None:
    text = label(words)
    assert "<" not in text
    assert ">" not in text
    assert '"' not in text
    assert "%{" not in html.unescape(text)
    assert "\n" not in text


def test_lines_leave_out_what_is_empty() -> None:
    assert lines("a", "", "b") == "a<br>b"


def test_a_name_cannot_pass_for_a_colour() -> None:
    assert label(f"run {MARK}ink{MARK} 1") == "run ink 1"
