"""Words from files, made safe; figures in words."""

import pytest

from app.domain.text import LONGEST, clean_text, duration, percent


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain", "plain"),
        ("  two\n\twords ", "two words"),
        ("a\x00b\x1b[31m", "ab[31m"),
        ("a\ud800b", "ab"),
        ("abc\u202edef\u2066", "abcdef"),
        ("\ufeffname", "name"),
        ("e\u0301", "é"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),  # escaped where it is written, not here
        ("=cmd()|' /C calc'!A0", "=cmd()|' /C calc'!A0"),
        ("../../etc/passwd", "../../etc/passwd"),
        ("\x00", ""),
    ],
)
def test_clean_text(value: str, expected: str) -> None:
    assert clean_text(value) == expected
    clean_text(value).encode("utf-8")


def test_long_names_are_cut() -> None:
    assert clean_text("x" * 4096) == "x" * (LONGEST - 1) + "…"
    assert len(clean_text("x" * 10**6)) == LONGEST
    assert clean_text("x" * 50, 10) == "x" * 9 + "…"


def test_figures_in_words() -> None:
    assert duration(0.0456) == "45.6 ms"
    assert duration(1.25) == "1.25 s"
    assert duration(12_345.6) == "12346 s"
    assert percent(0.115) == "11.5 %"
