"""What files say about themselves: model, formats and sizes of a deployment, with the words that mean "not said" turned away."""

from app.formats.record import Record

NO_MODEL = "The file does not name the model: choose it under Edit."
_UNSAID = frozenset({"auto", "none", "null", ""})
_FEWEST, _MOST = 1, 999_999


def said_word(record: Record, key: str) -> str | None:
    """The word under `key`, None where a tool writes its default in place of one."""
    word = record.text(key)
    return None if word is None or not is_said(word) else word


def is_said(word: str) -> bool:
    """Whether a word says anything: "auto", "none" and "null" do not."""
    return word.lower() not in _UNSAID


def said_size(record: Record, key: str) -> int | None:
    """A number of devices or ranks, None for anything that cannot be one."""
    value = record.raw(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and _FEWEST <= value <= _MOST else None
