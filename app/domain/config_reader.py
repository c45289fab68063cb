"""Typed reading of a Hugging Face `config.json`: a value is what the key promises, or the config is refused by that key's name."""

from collections.abc import Mapping

from app.domain.errors import UnsupportedModel

# Upper bounds far above any model served; a figure beyond them is a broken file, not a large model.
LIMITS: Mapping[str, int] = {
    "num_hidden_layers": 10_000,
    "hidden_size": 1_000_000,
    "intermediate_size": 10_000_000,
    "num_attention_heads": 100_000,
    "num_key_value_heads": 100_000,
    "head_dim": 100_000,
    "vocab_size": 100_000_000,
    "sliding_window": 1_000_000_000,
    "sliding_window_pattern": 10_000,
    "max_window_layers": 10_000,
    "max_position_embeddings": 1_000_000_000,
}


def shown(value: object) -> str:
    """A value as a message may quote it: its repr, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class ConfigReader:
    """Reads one JSON object. `prefix` is the path of the object inside the file, put before the key in every message."""

    def __init__(self, values: Mapping[str, object], prefix: str = "") -> None:
        self.values = values
        self.prefix = prefix

    def path(self, key: str) -> str:
        """The key with the path of its object, as messages name it."""
        return self.prefix + key

    def refuse(self, key: str, sentence: str) -> UnsupportedModel:
        """The error that names `key`; the sentence continues after the key's name."""
        return UnsupportedModel(self.path(key), f"{self.path(key)} {sentence}")

    def has(self, key: str) -> bool:
        """Whether the config states the key with a value other than null."""
        return self.values.get(key) is not None

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number from 1 to the key's limit; `default` where the key is absent or null, refused where there is none."""
        value = self.values.get(key)
        if value is None:
            if default is None:
                raise self.refuse(key, "is missing; give the whole config.json of the model.")
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse(key, f"is {shown(value)}, not one whole number; configs with another shape per layer are not priced yet.")
        if not 1 <= value <= LIMITS[key]:
            raise self.refuse(key, f"is {shown(value)}, outside 1 to {LIMITS[key]}; check the config.json.")
        return value

    def flag(self, key: str, default: bool) -> bool:
        """true or false; `default` where the key is absent or null."""
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(key, f"is {shown(value)}, neither true nor false; check the config.json.")
        return value

    def text(self, key: str) -> str | None:
        """A string, None where the key is absent or null."""
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.refuse(key, f"is {shown(value)}, not a text; check the config.json.")
