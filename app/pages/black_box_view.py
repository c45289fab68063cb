"""The part of a run's page that says what its sweep tells of the server's inside."""

from dataclasses import dataclass

from app.domain.black_box import Inferred
from app.domain.text import duration, percent
from app.services.black_box import TITLES, SeenFromOutside


@dataclass(frozen=True)
class Row:
    """One inferred figure in words, with its interval and what it is."""

    title: str
    value: str
    interval: str
    said: str


@dataclass(frozen=True)
class BlackBoxView:
    """Rows of figures, of the first token's fit, and of what the server itself says."""

    rows: tuple[Row, ...]
    fit: tuple[tuple[str, str, str, str, str], ...]
    notes: tuple[str, ...]
    runs: tuple[int, ...]


def black_box_view(seen: SeenFromOutside | None) -> BlackBoxView | None:
    """None where the sweep tells nothing of the inside."""
    if seen is None or seen.box is None:
        return None
    rows = tuple(
        Row(TITLES[key], _words(key, figure.value), f"{_words(key, figure.low)} to {_words(key, figure.high)}", figure.said)
        for key, figure in seen.box.figures.items()
    )
    return BlackBoxView(rows, _fit(seen), (*seen.assumptions, *seen.box.untold), seen.run_ids)


def _fit(seen: SeenFromOutside) -> tuple[tuple[str, str, str, str, str], ...]:
    """Prompt tokens, measured and fitted first token, the inferred prompt pass, and the server's own prefill (a dash without one)."""
    assert seen.box is not None
    front: Inferred | None = seen.box.figures.get("front_end_s")
    own = {round(each.prompt_tokens): each.prefill_s for each in seen.server if each.prefill_s is not None}
    found = []
    for tokens, measured, fitted in seen.box.curve:
        inside = fitted - (front.value if front else 0.0)
        said = own.get(round(tokens))
        found.append((f"{tokens:,.0f}", duration(measured), duration(fitted), duration(inside), "–" if said is None else duration(said)))
    return tuple(found)


def _words(key: str, value: float) -> str:
    if key == "attention_share":
        return percent(value)
    if key == "decode_bytes_per_s":
        return f"{value / 1e9:,.4g} GB/s"
    if key == "prefill_tokens_per_s":
        return f"{value:,.0f} tokens/s"
    return duration(value)
