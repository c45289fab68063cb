"""Models and devices from files on this machine, for predictions without a server."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.catalog import ModelEntry
from app.domain.configs import from_config
from app.domain.errors import InvalidRequest
from app.services.profile_json import hardware_from, slug_of
from app.services.profiles import ProfileBook


def local_book(book: ProfileBook, model: str, hardware: str) -> tuple[ProfileBook, dict[str, str]]:
    """The book with what `model` (a config.json) and `hardware` (a .json) add when they are paths, and the names to ask it for.

    Raises InvalidRequest for a file that cannot be read, UnsupportedModel for an architecture that is not priced.
    """
    names = {"model": model, "hardware": hardware}
    if _is_path(model):
        name = Path(model).parent.name if Path(model).name == "config.json" else Path(model).stem
        entry = ModelEntry(slug_of(name) or "model", name, from_config(_json(model, "model"), name), (), "user", "a file")
        book, names["model"] = replace(book, own_models={**book.own_models, entry.slug: entry}), entry.slug
    if _is_path(hardware):
        device = hardware_from(
            {key: value for key, value in _json(hardware, "hardware").items() if key not in ("slug", "origin", "provenance")}
        )
        book, names["hardware"] = replace(book, own_hardware={**book.own_hardware, device.slug: device}), device.slug
    return book, names


def _is_path(name: str) -> bool:
    return name.endswith(".json")


def _json(path: str, field: str) -> dict[str, Any]:
    try:
        value = json.loads(Path(path).read_bytes())
    except OSError as error:
        raise InvalidRequest(field, f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(field, f"{path} is not JSON.") from error
    if not isinstance(value, dict):
        raise InvalidRequest(field, f"{path} must hold one JSON object.")
    return value
