"""Words that came from somebody's file or form, made safe to store and to show; and figures put into words.

Escaping belongs to where a word is written (HTML, CSV, SVG); here only what no store or screen can carry is taken out.
"""

import unicodedata

LONGEST = 200
# Marks that reorder what a reader sees, and the byte-order mark: a name with them does not read as what it is.
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
_UNSTORABLE = frozenset({"Cc", "Cs"})


def clean_text(value: str, limit: int = LONGEST) -> str:
    """`value` as one line of at most `limit` characters.

    Normalised to NFC; control characters, lone surrogates and marks that reorder text are gone, white space is single spaces.
    """
    # A name of megabytes is cut first: only its beginning can survive.
    spaced = " ".join(value[: limit * 8].split())
    kept = "".join(char for char in spaced if unicodedata.category(char) not in _UNSTORABLE and char not in _REORDERING)
    normal = unicodedata.normalize("NFC", kept).strip()
    return normal if len(normal) <= limit else normal[: limit - 1].rstrip() + "…"


def duration(seconds: float) -> str:
    """A time in words, four significant digits: 0.0456 -> `45.6 ms`, 1.25 -> `1.25 s`."""
    if abs(seconds) < 1:
        return f"{seconds * 1e3:.4g} ms"
    return f"{seconds:.4g} s" if abs(seconds) < 1000 else f"{seconds:.0f} s"


def percent(fraction: float) -> str:
    """A fraction in words, three significant digits: 0.115 -> `11.5 %`."""
    return f"{fraction * 100:.3g} %"
