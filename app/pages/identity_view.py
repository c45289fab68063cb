"""Who was measured, as pages show it: the word that counts, the file's, a person's, and what may be suggested."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.identity import IDENTITY, Word
from app.domain.quantity import NOT_KNOWN
from app.domain.suggestion import Suggestion
from app.services.runs import RunView

TITLES = {
    "model": "Model",
    "hardware": "Hardware",
    "engine": "Engine",
    "devices": "Devices",
    "tp": "Tensor parallel",
    "pp": "Pipeline parallel",
    "ep": "Expert parallel",
    "dp": "Data parallel",
    "weight_dtype": "Weights",
    "kv_dtype": "KV cache",
    "label": "Label",
}


@dataclass(frozen=True)
class Offer:
    """One word that may be used, and what it is called."""

    value: Word
    name: str


@dataclass(frozen=True)
class IdentityRow:
    """One part of the identity: texts, empty where nothing was said. `offers` are suggestions, `evidence` says where they come from."""

    key: str
    title: str
    counts: str
    by_file: str
    by_person: str
    offers: tuple[Offer, ...]
    evidence: str


def identity_rows(view: RunView) -> list[IdentityRow]:
    """Every part of the identity that somebody said something about, or that something is suggested for."""
    rows = (_row(view, key) for key in IDENTITY)
    return [row for row in rows if row.counts != NOT_KNOWN or row.offers or row.key in ("model", "hardware", "weight_dtype")]


def _row(view: RunView, key: str) -> IdentityRow:
    stored = view.stored
    names = {"model": view.model_name, "hardware": view.hardware_name}
    word = names.get(key, getattr(stored.run, key))
    found = next((each for each in view.suggestions if each.key == key), None)
    return IdentityRow(
        key=key,
        title=TITLES[key],
        counts=NOT_KNOWN if word is None else str(word),
        by_file=str((stored.said_by_file or {}).get(key, "")),
        by_person=str(stored.said_by_person.get(key, "")),
        offers=tuple(Offer(value, offered_name(view, key, value)) for value in found.candidates) if found else (),
        evidence="; ".join(found.evidence) if found else "",
    )


def offered_name(view: RunView, key: str, value: Word) -> str:
    """What a suggested word is called: the catalog's name of a model or device, else the word."""
    entry = {"model": view.book.find_model, "hardware": view.book.find_hardware}.get(key)
    found = entry(str(value)) if entry else None
    return found.name if found else str(value)


@dataclass(frozen=True)
class FileOffer:
    """One suggestion for runs of a file: `run_id` is the first of them, `count` how many there are."""

    key: str
    title: str
    offers: tuple[Offer, ...]
    evidence: str
    run_id: int
    count: int


@dataclass(frozen=True)
class FileOffers:
    """What is suggested for the runs of one file."""

    file: str
    rows: tuple[FileOffer, ...]


def file_offers(views: Sequence[RunView]) -> FileOffers:
    """The suggestions for runs of one file, each once however many runs it is for."""
    groups: dict[tuple[str, tuple[Word, ...]], list[tuple[RunView, Suggestion]]] = {}
    for view in views:
        for found in view.suggestions:
            groups.setdefault((found.key, found.candidates), []).append((view, found))
    rows = []
    for (key, candidates), members in groups.items():
        view, found = members[0]
        offers = tuple(Offer(value, offered_name(view, key, value)) for value in candidates)
        rows.append(FileOffer(key, TITLES[key], offers, "; ".join(found.evidence), view.id, len(members)))
    return FileOffers(views[0].stored.upload.name, tuple(rows))
