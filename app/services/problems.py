"""Every error that leaves the product, as status, title and one sentence; the input is never echoed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.errors import (
    Conflict,
    ImportRefused,
    InvalidRequest,
    NotAllowed,
    NotFound,
    PhaselineError,
    TooLarge,
    UnknownName,
    UnsupportedModel,
)
from app.domain.text import clean_text
from app.services.comparing import SIDE_PATTERN
from app.services.secret_key import KeyUnusable
from app.store.database import DatabaseBusy, DatabaseFull, DatabaseUnusable
from app.store.profiles import ReadOnlyProfile, SlugTaken

TITLES = {
    400: "Bad request",
    403: "Refused",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    411: "Length required",
    413: "Too large",
    415: "Unsupported media type",
    422: "Cannot be processed",
    500: "A fault of ours",
    503: "Not ready",
    507: "No room",
}

_MAX_LISTED = 20
_STATUSES: tuple[tuple[type[PhaselineError], int], ...] = (
    (NotFound, 404),
    (NotAllowed, 403),
    (Conflict, 409),
    (SlugTaken, 409),
    (ReadOnlyProfile, 409),
    (TooLarge, 413),
    (DatabaseFull, 507),
    (DatabaseBusy, 503),
    (DatabaseUnusable, 503),
    (KeyUnusable, 503),
)


@dataclass(frozen=True)
class Problem:
    """RFC 9457 members: `detail` says what to do; `extra` holds further members such as `refused` or `errors`."""

    status: int
    detail: str
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """A few words for the status."""
        return TITLES.get(self.status, "Error")

    def as_json(self) -> dict[str, Any]:
        """The body of an application/problem+json answer."""
        return {"type": "about:blank", "title": self.title, "status": self.status, "detail": self.detail, **self.extra}


def problem_of(error: PhaselineError) -> Problem:
    """The answer to an error that was raised on purpose."""
    if isinstance(error, UnsupportedModel | InvalidRequest):
        return Problem(422, str(error), {"field": error.field})
    if isinstance(error, UnknownName):
        return Problem(422, str(error), {"near": list(error.near)})
    if isinstance(error, ImportRefused):
        return Problem(422, error.reason, {"tried": [{"format": name, "reason": reason} for name, reason in error.tried]})
    return Problem(next((status for kind, status in _STATUSES if isinstance(error, kind)), 422), str(error))


def invalid_input(errors: Sequence[Any]) -> Problem:
    """The answer to input that does not fit its schema: where and why, without the value."""
    listed = [_misfit(error) for error in errors[:_MAX_LISTED]] or [{"where": "body", "what": "cannot be read"}]
    return Problem(422, f"{listed[0]['where']}: {listed[0]['what']}.", {"errors": listed})


def _misfit(error: Any) -> dict[str, str]:
    """One place that does not fit. Keys that the sender made up are part of the place, so it is cleaned and cut."""
    place = error["loc"]
    what = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "json_invalid":
        place, what = place[:1], f"not JSON from character {place[-1]} on"
    elif error["type"] == "model_attributes_type" and place == ("body",):
        what = "must be one JSON object, sent with Content-Type: application/json"
    elif error["type"] == "string_pattern_mismatch" and error["ctx"]["pattern"] == SIDE_PATTERN:
        # Pydantic ends the place with the name of a branch where `baseline` may stand too.
        place = tuple(part for part in place if part != "constrained-str")
        what = "must be the number of a run, or the numbers of repeats joined by commas, such as 12,15,18"
    return {"where": clean_text(".".join(str(part) for part in place)), "what": what}
