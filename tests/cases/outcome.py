"""What an adapter hands back."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Outcome:
    """What the product said about a case: runs by the case's name for each, a comparison and the same the other way round, the rest.

    `diagnoses` are those of single deployments (a comparison is one of its own), `predicted` are sizes and predictions by the case's name
    for each, `phases` the words for where their time is.
    """

    runs: dict[str, dict[str, Any]] = field(default_factory=dict)
    comparison: dict[str, Any] = field(default_factory=dict)
    swapped: dict[str, Any] = field(default_factory=dict)
    diagnoses: list[dict[str, Any]] = field(default_factory=list)
    pairs: dict[str, dict[str, Any]] = field(default_factory=dict)
    answer: dict[str, Any] = field(default_factory=dict)
    status: int | None = None
    text: str = ""
    flags: set[str] = field(default_factory=set)
    predicted: dict[str, dict[str, Any]] = field(default_factory=dict)
    phases: set[str] = field(default_factory=set)
