"""Every error that leaves the product: its status, and a sentence without the input."""

import pytest

from app.domain.black_box import NotTold
from app.domain.calibration import CalibrationRefused
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
from app.domain.lease import LeaseGone
from app.services.leasing import SessionOver
from app.services.problems import TITLES, Problem, invalid_input, problem_of
from app.services.secret_key import KeyUnusable
from app.settings import SettingsError
from app.store.database import DatabaseBusy, DatabaseFull, DatabaseUnusable
from app.store.migrate import SchemaOutdated, SchemaTooNew
from app.store.profiles import ReadOnlyProfile, SlugTaken

KINDS: list[tuple[PhaselineError, int, dict[str, object]]] = [
    (InvalidRequest("tp", "x."), 422, {"field": "tp"}),
    (UnsupportedModel("num_experts", "x."), 422, {"field": "num_experts"}),
    (UnknownName("x.", ("a", "b")), 422, {"near": ["a", "b"]}),
    (ImportRefused("x.", (("f", "r"),)), 422, {"tried": [{"format": "f", "reason": "r"}]}),
    (NotFound("x."), 404, {}),
    (Conflict("x."), 409, {}),
    (SlugTaken("x."), 409, {}),
    (ReadOnlyProfile("x."), 409, {}),
    (TooLarge("x."), 413, {}),
    (DatabaseFull("x."), 507, {}),
    (DatabaseBusy("x."), 503, {}),
    (DatabaseUnusable("x."), 503, {}),
    (SchemaTooNew("x."), 503, {}),
    (SchemaOutdated("x."), 503, {}),
    (KeyUnusable("x."), 503, {}),
    (NotAllowed("x."), 403, {}),
    (SessionOver("x."), 409, {}),
    (LeaseGone("x."), 409, {}),
    (NotTold("x."), 422, {}),
    (SettingsError("x."), 422, {}),
    (CalibrationRefused("x."), 422, {}),
    (PhaselineError("x."), 422, {}),
]
# These run in a worker or in a terminal, on the other side of HTTP: what they raise is printed there and answers no request.
ELSEWHERE = ("app.worker.", "app.commands.", "app.client")


@pytest.mark.parametrize(("error", "status", "extra"), KINDS)
def test_each_kind_has_its_status(error: PhaselineError, status: int, extra: dict[str, object]) -> None:
    found = problem_of(error)
    assert (found.status, found.detail, found.extra) == (status, "x.", extra)
    assert found.title == TITLES[status]
    assert found.as_json() == {"type": "about:blank", "title": TITLES[status], "status": status, "detail": "x.", **extra}


def test_every_kind_of_error_is_listed_above() -> None:
    """A new kind must be given a status on purpose."""

    def kinds(root: type[PhaselineError]) -> set[type[PhaselineError]]:
        return {root}.union(*(kinds(kind) for kind in root.__subclasses__()))

    listed = {type(error) for error, _, _ in KINDS}
    answered = {kind for kind in kinds(PhaselineError) if kind.__module__.startswith("app.") and not kind.__module__.startswith(ELSEWHERE)}
    missing = {kind.__qualname__ for kind in answered - listed}
    assert not missing, "give the new kind a status in services/problems.py and a row here"


def test_a_status_without_a_title_is_an_error() -> None:
    assert Problem(418, "x.").title == "Error"


def test_misfits_name_places_and_never_values() -> None:
    errors = [
        {"loc": ("body", "a", 0), "msg": "Value error, must be a dog", "type": "value_error", "input": "secret", "ctx": {"error": "secret"}}
    ]
    found = invalid_input(errors)
    assert found.as_json() == {
        "type": "about:blank", "title": "Cannot be processed", "status": 422, "detail": "body.a.0: must be a dog.",
        "errors": [{"where": "body.a.0", "what": "must be a dog"}],
    }  # fmt: skip


def test_misfits_are_cut_and_cleaned() -> None:
    errors = [{"loc": ("body", "k\x00\u202e" * 1000), "msg": "m", "type": "t"}] * 50
    found = invalid_input(errors)
    assert len(found.extra["errors"]) == 20
    assert len(found.extra["errors"][0]["where"]) <= 200
    assert "\x00" not in found.detail
    assert invalid_input([]).detail == "body: cannot be read."
