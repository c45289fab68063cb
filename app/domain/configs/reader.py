"""Typed reading of a Hugging Face `config.json`: a value is what the key promises, or the config is refused by that key's name."""

from collections.abc import Mapping, Sequence

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


_ANY_LIMIT = 1_000_000_000


class ConfigReader:
    """Reads one JSON object. `prefix` is the path of the object inside the file, put before the key in every message.

    `used` collects the keys that were read or declared to be without effect, so that what nobody looked at can be found.
    """

    def __init__(self, values: Mapping[str, object], prefix: str = "") -> None:
        self.values = values
        self.prefix = prefix
        self.used: set[str] = set()

    def ignore(self, *keys: str) -> None:
        """Say that these keys change nothing that is priced (a training loss, a scaling factor, a kernel's choice)."""
        self.used.update(keys)

    def path(self, key: str) -> str:
        """The key with the path of its object, as messages name it."""
        return self.prefix + key

    def refuse(self, key: str, sentence: str) -> UnsupportedModel:
        """The error that names `key`; the sentence continues after the key's name."""
        return UnsupportedModel(self.path(key), f"{self.path(key)} {sentence}")

    def has(self, key: str) -> bool:
        """Whether the config states the key with a value other than null."""
        self.used.add(key)
        return self.values.get(key) is not None

    def whole(self, key: str, default: int | None = None, least: int = 1) -> int:
        """A whole number from `least` to the key's limit; `default` where the key is absent or null, refused where there is none."""
        self.used.add(key)
        value = self.values.get(key)
        if value is None:
            if default is None:
                raise self.refuse(key, "is missing; give the whole config.json of the model.")
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse(key, f"is {shown(value)}, not one whole number; configs with another shape per layer are not priced yet.")
        most = LIMITS.get(key, _ANY_LIMIT)
        if not least <= value <= most:
            raise self.refuse(key, f"is {shown(value)}, outside {least} to {most}; check the config.json.")
        return value

    def count(self, key: str, default: int | None = 0) -> int:
        """A whole number that may be 0."""
        return self.whole(key, default, least=0)

    def first(self, *keys: str, default: int | None = None) -> int:
        """The whole number under the first of these spellings that the config states; they must agree where it states several."""
        stated = [key for key in keys if self.has(key)]
        values = {self.whole(key) for key in stated}
        if len(values) > 1:
            raise self.refuse(stated[1], f"is {self.values[stated[1]]}, but {stated[0]} is {self.values[stated[0]]}; they must agree.")
        return values.pop() if values else self.whole(keys[0], default)

    def each(self, key: str, layers: int, default: int | None = None) -> list[int]:
        """A whole number for each layer: from a list of that length, or one number for all."""
        value = self.values.get(key)
        if not isinstance(value, list | tuple):
            return [self.whole(key, default, least=0)] * layers
        self.used.add(key)
        if len(value) != layers:
            raise self.refuse(key, f"has {len(value)} entries for {layers} layers; check the config.json.")
        for item in value:
            if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item <= _ANY_LIMIT:
                raise self.refuse(key, f"lists {shown(item)}, which is no size; check the config.json.")
        return [int(item) for item in value]

    def kinds(self, key: str, layers: int, known: Sequence[str]) -> list[str] | None:
        """A word for each layer, each one of `known`; None where the config has no such list."""
        value = self.values.get(key)
        self.used.add(key)
        if value is None:
            return None
        if not isinstance(value, list | tuple):
            raise self.refuse(key, f"is {shown(value)}, not a list.")
        for kind in value:
            if kind not in known:
                raise self.refuse(key, f"lists {shown(kind)}; only {' and '.join(known)} layers are priced here.")
        if len(value) != layers:
            raise self.refuse(key, f"has {len(value)} entries for {layers} layers; check the config.json.")
        return [str(kind) for kind in value]

    def places(self, key: str, layers: int) -> frozenset[int]:
        """A list of layer numbers, from 0; empty where the key is absent."""
        value = self.values.get(key)
        self.used.add(key)
        if value is None:
            return frozenset()
        if not isinstance(value, list | tuple) or any(
            isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < layers for item in value
        ):
            raise self.refuse(key, f"is {shown(value)}, no list of layer numbers from 0 to {layers - 1}.")
        return frozenset(value)

    def flag(self, key: str, default: bool) -> bool:
        """true or false; `default` where the key is absent or null."""
        self.used.add(key)
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(key, f"is {shown(value)}, neither true nor false; check the config.json.")
        return value

    def text(self, key: str) -> str | None:
        """A string, None where the key is absent or null."""
        self.used.add(key)
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return value
        raise self.refuse(key, f"is {shown(value)}, not a text; check the config.json.")

    def only(self, key: str, *allowed: object) -> None:
        """Refuse any value but null and these: the class builds other layers then."""
        self.used.add(key)
        value = self.values.get(key)
        if value is not None and not any(value is one or (type(value) is type(one) and value == one) for one in allowed):
            wanted = " or ".join(repr(one) for one in allowed)
            raise self.refuse(key, f"is {shown(value)}; only {wanted} is priced for this model_type.")

    def inner(self, key: str) -> "ConfigReader":
        """The object under `key`. Refused where it is missing or something else."""
        self.used.add(key)
        value = self.values.get(key)
        if not isinstance(value, Mapping):
            raise self.refuse(key, "is missing or no object; the sizes are expected there.")
        return ConfigReader(value, f"{self.prefix}{key}.")
